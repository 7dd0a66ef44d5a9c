//! The languages whose code is coloured: their words, and how their comments and texts begin and end.

use super::look::Token;

/// How a language is read.
#[derive(Debug)]
pub(super) struct Language {
    names: &'static str,
    pub(super) keywords: &'static str,
    /// What begins a comment up to the end of the line.
    pub(super) comments: &'static [&'static str],
    /// What may go over several lines: its begin, its end, and what it is.
    pub(super) spans: &'static [(&'static str, &'static str, Token)],
    pub(super) quotes: &'static str,
    /// What else holds in it.
    pub(super) has: &'static [Trait],
}

/// What holds in some languages. Exhaustive: each is read in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    /// A word that begins with a capital is a type.
    Types,
    /// A word, or a text, before `:` or `=` is a key, and a line in brackets a section.
    Keys,
    /// `$name` is a variable.
    Variables,
    /// `'a` is no text that begins.
    Lifetimes,
    /// Keywords are written in capitals too.
    AnyCase,
    /// Lines are added or removed.
    Diff,
}

/// Words that are a value in most languages.
pub(super) const CONSTANTS: &str = "true false null nil none None True False undefined NULL nullptr";

const BASE: Language = Language {
    names: "",
    keywords: "",
    comments: &["//"],
    spans: &[("/*", "*/", Token::Comment)],
    quotes: "\"'",
    has: &[Trait::Types],
};
const HASH: &[&str] = &["# ", "#!", "##"];
const SCRIPT: Language = Language { comments: HASH, spans: &[], ..BASE };
const DATA: Language = Language { has: &[Trait::Keys], ..SCRIPT };

static LANGUAGES: [Language; 19] = [
    Language {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self \
                   static struct super trait type unsafe use where while yield union macro_rules",
        has: &[Trait::Types, Trait::Lifetimes],
        ..BASE
    },
    Language {
        names: "python py python3",
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal \
                   not or pass raise return try while with yield self",
        spans: &[("\"\"\"", "\"\"\"", Token::Text), ("'''", "'''", Token::Text)],
        ..SCRIPT
    },
    Language {
        names: "javascript js jsx typescript ts tsx mjs node",
        keywords: "abstract any as async await boolean break case catch class const continue debugger default delete do else enum export extends finally for from \
                   function get if implements import in instanceof interface keyof let namespace never new number of private protected public readonly return \
                   set static string super switch this throw try type typeof unknown var void while with yield",
        spans: &[("/*", "*/", Token::Comment), ("`", "`", Token::Text)],
        ..BASE
    },
    Language {
        names: "go golang",
        keywords: "any bool break byte case chan const continue default defer else error fallthrough float64 for func go goto if import int int64 interface map \
                   package range return rune select string struct switch type uint64 var",
        spans: &[("/*", "*/", Token::Comment), ("`", "`", Token::Text)],
        ..BASE
    },
    Language {
        names: "c h cpp c++ cc cxx hpp objc cuda",
        keywords: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern final float for \
                   friend goto if inline int long mutable namespace new noexcept operator override private protected public register return short signed \
                   sizeof static struct switch template this throw try typedef typename union unsigned using virtual void volatile while size_t",
        ..BASE
    },
    Language {
        names: "java kotlin kt scala groovy",
        keywords: "abstract assert boolean break byte case catch char class companion const continue data def default do double else enum extends final finally \
                   float for fun if implements import in instanceof int interface internal is lateinit long native new object open override package private \
                   protected public record return sealed short static super suspend switch synchronized this throw throws trait try typealias val var void \
                   volatile when while with yield",
        spans: &[("/*", "*/", Token::Comment), ("\"\"\"", "\"\"\"", Token::Text)],
        ..BASE
    },
    Language {
        names: "csharp cs c# dotnet",
        keywords: "abstract as async await base bool break byte case catch char class const continue decimal default delegate do double else enum event explicit \
                   extern finally fixed float for foreach get if implicit in init int interface internal is lock long namespace new object operator out override \
                   params private protected public readonly record ref return sealed set short sizeof static string struct switch this throw try typeof uint \
                   using var virtual void volatile when where while with yield",
        ..BASE
    },
    Language {
        names: "swift dart",
        keywords: "actor as associatedtype async await break case catch class continue default defer do else enum extension fallthrough final for func guard if \
                   import in init inout internal is lazy let mutating override private protocol public repeat return self static struct super switch throw \
                   throws try typealias var weak where while void",
        ..BASE
    },
    Language {
        names: "php",
        keywords: "abstract as break case catch class const continue declare default do echo else elseif enum extends final finally fn for foreach function global \
                   if implements interface match namespace new private protected public readonly return static switch throw trait try use var while yield",
        comments: &["//", "# "],
        has: &[Trait::Types, Trait::Variables],
        ..BASE
    },
    Language {
        names: "ruby rb elixir ex exs",
        keywords: "alias and begin break case class cond def defmodule defp do else elsif end ensure false fn for if import in module next not or raise redo rescue \
                   require retry return self super then unless until use when while with yield",
        ..SCRIPT
    },
    Language {
        names: "shell sh bash zsh console shellsession fish",
        keywords: "break case continue declare do done elif else esac exit export fi for function if in local readonly return set shift source then trap unset until \
                   while sudo cd echo",
        has: &[Trait::Variables],
        ..SCRIPT
    },
    Language { names: "json jsonc json5 jsonl", comments: &["//"], ..DATA },
    Language { names: "toml ini cfg conf properties", spans: &[("\"\"\"", "\"\"\"", Token::Text)], ..DATA },
    Language { names: "yaml yml", ..DATA },
    Language {
        names: "sql postgres postgresql mysql sqlite",
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists \
                   explain foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer over \
                   partition primary references returning right rollback select set table then transaction trigger union unique update using values view when \
                   where with bigint boolean integer text timestamp varchar",
        comments: &["--"],
        has: &[Trait::AnyCase],
        ..BASE
    },
    Language {
        names: "html xml svg vue svelte xhtml",
        keywords: "a body button code div form h1 h2 h3 head html img input li link main meta nav ol p pre script section span style table td th title tr ul",
        comments: &[],
        spans: &[("<!--", "-->", Token::Comment)],
        quotes: "\"",
        ..BASE
    },
    Language {
        names: "css scss sass less",
        keywords: "important media import supports keyframes",
        comments: &[],
        has: &[Trait::Keys],
        ..BASE
    },
    Language {
        names: "dockerfile docker makefile make cmake lua hcl terraform tf nix",
        keywords: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN USER VOLUME WORKDIR include ifeq else endif define endef function local \
                   end if then do for while return in let with inherit import resource variable module provider output data",
        comments: &["# ", "#!", "##", "--"],
        spans: &[],
        has: &[Trait::Variables],
        ..BASE
    },
    Language { names: "diff patch", has: &[Trait::Diff], ..BASE },
];

impl Language {
    pub(super) fn has(&self, what: Trait) -> bool {
        self.has.contains(&what)
    }
}

/// The language of this name, as it stands behind a fence.
pub(super) fn named(name: &str) -> Option<&'static Language> {
    let is_it =
        |language: &&Language| language.names.split(' ').any(|known| known.eq_ignore_ascii_case(name));
    if name.is_empty() { None } else { LANGUAGES.iter().find(is_it) }
}
