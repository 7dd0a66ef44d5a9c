//! A declaration as one line: tokens with the blanks that rustfmt would leave between them.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// The tokens as one line.
pub(super) fn line(tokens: &impl ToTokens) -> String {
    let mut words = Vec::new();
    split(tokens.to_token_stream(), &mut words);
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let is_last_comma = word == "," && words.get(index + 1).is_some_and(|next| closes(next));
        if is_last_comma {
            continue;
        }
        if let Some(before) = index.checked_sub(1).map(|before| words[before].as_str())
            && is_apart(before, word)
        {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

fn closes(word: &str) -> bool {
    matches!(word, ")" | "]" | ">" | "}")
}

fn split(tokens: TokenStream, words: &mut Vec<String>) {
    let mut joined = String::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' && tokens.peek().is_some_and(is_doc) => {
                tokens.next();
            }
            TokenTree::Punct(mark) => {
                joined.push(mark.as_char());
                // `>>` closes two lists.
                let is_whole = mark.spacing() == Spacing::Alone || matches!(mark.as_char(), '<' | '&');
                let ends_lists = joined.ends_with('>') && !joined.starts_with(['-', '=']);
                if is_whole || ends_lists {
                    words.push(std::mem::take(&mut joined));
                }
            }
            TokenTree::Ident(name) => words.push(std::mem::take(&mut joined) + &name.to_string()),
            TokenTree::Literal(literal) => words.push(std::mem::take(&mut joined) + &literal.to_string()),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.extend((!joined.is_empty()).then(|| std::mem::take(&mut joined)));
                words.extend((!open.is_empty()).then(|| open.to_owned()));
                split(group.stream(), words);
                words.extend((!close.is_empty()).then(|| close.to_owned()));
            }
        }
    }
    words.extend((!joined.is_empty()).then_some(joined));
}

/// Whether it is the rest of `#[doc = "…"]`.
fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// Whether a blank stands between the two.
fn is_apart(before: &str, word: &str) -> bool {
    /// Words that are followed by a type, and not by arguments.
    const OPEN: [&str; 11] =
        ["mut", "dyn", "impl", "const", "as", "where", "return", "in", "pub", "async", "unsafe"];
    let is_name = |word: &str| word.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '\'');
    match (before, word) {
        (_, "," | ";" | "." | ")" | "]" | ">" | ":" | "::" | "!") => false,
        ("(" | "[" | "<" | "&" | "::" | "." | "!" | "#" | "?" | "*", _) => false,
        ("pub", "(") => false,
        (_, "[" | "(") => {
            let is_called = is_name(before) && !before.starts_with('\'') || matches!(before, ">" | ")");
            !is_called || OPEN.contains(&before)
        }
        (_, "<") => !is_name(before),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_it_would_be_written() {
        for written in [
            "pub fn run<T: Item>(&self, f: impl Fn(&str) -> bool + Send + 'static) -> Result<Vec<T>, Error>",
            "pub async fn read(&mut self, at: [u8; 4], of: &'a [u8], _: (u8, u8)) -> Option<&'a str> where Self: Sized",
            "#[derive(Clone, Debug)] pub struct Event<K = EventKind>",
            "impl<'a, T: ?Sized + Item> From<&'a T> for Box<dyn Error + Send>",
            "pub(crate) fn each<F: FnMut(u8) -> u8>(f: F) -> <F as Of>::Out",
        ] {
            let tokens: TokenStream = written.parse().unwrap();
            assert_eq!(line(&tokens), written);
        }
    }
}
