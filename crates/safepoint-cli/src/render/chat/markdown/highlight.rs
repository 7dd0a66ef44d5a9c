//! Colours for code: a reader of words, texts, numbers and comments that goes over each line once.
//!
//! No grammar and no regular expression is run over what a model sends, so a hostile line costs no more than any other, and nothing is lost: the spans of a
//! line are the line.

use ratatui_core::text::Span;

use super::{
    languages::{self, Language, Trait},
    look::{Look, Token},
};

/// Where in a line a word is. Exhaustive: at its start, behind blanks alone, or anywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordPlace {
    Start,
    First,
    Inside,
}

/// Reads the lines of one block of code, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer {
    language: &'static Language,
    /// What ends the comment or text of several lines that is open.
    open: Option<(&'static str, Token)>,
}

impl Lexer {
    /// For the language of this name; none if it is not known.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(Self { language: languages::named(name)?, open: None })
    }

    /// The next line.
    pub(super) fn line(&mut self, line: &str, look: &Look) -> Vec<Span<'static>> {
        let mut spans = Spans { spans: Vec::new(), look };
        if self.language.has(Trait::Diff) {
            let token = match line.as_bytes().first() {
                Some(b'+') => Some(Token::Added),
                Some(b'-') => Some(Token::Removed),
                Some(b'@') => Some(Token::Name),
                _ => None,
            };
            spans.push(line, token);
            return spans.spans;
        }
        let mut rest = line;
        if let Some((end, token)) = self.open {
            let (inside, after) = until(rest, end);
            spans.push(inside, Some(token));
            self.open = self.open.filter(|_| after.is_none());
            rest = after.unwrap_or_default();
        }
        let mut place = if rest.len() == line.len() { WordPlace::Start } else { WordPlace::Inside };
        while !rest.is_empty() {
            let (length, token) = self.next(rest, place);
            let (text, after) = rest.split_at(length);
            let is_first = place != WordPlace::Inside && text.trim().is_empty();
            place = if is_first { WordPlace::First } else { WordPlace::Inside };
            spans.push(text, token);
            rest = after;
        }
        spans.spans
    }

    /// How long the next word is, and what.
    fn next(&mut self, rest: &str, place: WordPlace) -> (usize, Option<Token>) {
        let language = self.language;
        if language.comments.iter().any(|mark| rest.starts_with(mark)) {
            return (rest.len(), Some(Token::Comment));
        }
        for (begin, end, token) in language.spans {
            if let Some(after) = rest.strip_prefix(begin) {
                let (inside, ended) = until(after, end);
                if ended.is_none() {
                    self.open = Some((end, *token));
                }
                return (begin.len() + inside.len(), Some(*token));
            }
        }
        let first = rest.chars().next().unwrap_or_default();
        if language.quotes.contains(first) {
            return self.quoted(rest, first);
        }
        let width = |is_in: fn(char) -> bool| rest.find(|letter| !is_in(letter)).unwrap_or(rest.len());
        match first {
            '0'..='9' => (
                width(|letter| letter.is_alphanumeric() || letter == '.' || letter == '_'),
                Some(Token::Number),
            ),
            '$' if language.has(Trait::Variables) => {
                let name =
                    rest[1..].find(|letter: char| !(letter.is_alphanumeric() || "_{}".contains(letter)));
                (name.map_or(rest.len(), |end| end + 1).max(1), Some(Token::Name))
            }
            '[' if language.has(Trait::Keys)
                && place == WordPlace::Start
                && rest.trim_end().ends_with(']') =>
            {
                (rest.len(), Some(Token::Keyword))
            }
            first if first.is_alphabetic() || first == '_' || first == '@' => {
                let length = rest.char_indices().skip(1).find(|(_, letter)| {
                    !(letter.is_alphanumeric()
                        || *letter == '_'
                        || language.has(Trait::Keys) && ".-".contains(*letter))
                });
                let length = length.map_or(rest.len(), |(end, _)| end);
                (length, self.word(&rest[..length], &rest[length..], place != WordPlace::Inside))
            }
            ' ' => {
                let blanks = width(|letter| letter == ' ');
                (blanks, None)
            }
            '#' => (1, None),
            first => (first.len_utf8(), None),
        }
    }

    fn word(&self, word: &str, after: &str, is_first: bool) -> Option<Token> {
        let language = self.language;
        let is_known = |words: &str| {
            words.split(' ').any(|known| {
                if language.has(Trait::AnyCase) { known.eq_ignore_ascii_case(word) } else { known == word }
            })
        };
        match () {
            () if language.has(Trait::Keys) && is_first && after.trim_start().starts_with([':', '=']) => {
                Some(Token::Name)
            }
            () if is_known(language.keywords) => Some(Token::Keyword),
            () if is_known(languages::CONSTANTS) => Some(Token::Number),
            () if language.has(Trait::Types) && word.starts_with(char::is_uppercase)
                || word.starts_with('@') =>
            {
                Some(Token::Name)
            }
            () => None,
        }
    }

    /// A text of one line. A quote of Rust that is a lifetime, or an apostrophe, ends with its word.
    fn quoted(&self, rest: &str, quote: char) -> (usize, Option<Token>) {
        let mut letters = rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            if letter == '\\' {
                letters.next();
            } else if letter == quote {
                let end = at + quote.len_utf8();
                let is_key = self.language.has(Trait::Keys) && rest[end..].trim_start().starts_with(':');
                return (end, Some(if is_key { Token::Name } else { Token::Text }));
            } else if self.language.has(Trait::Lifetimes) && quote == '\'' && at == 1 && letter != '\\' {
                let is_letter = rest[at + letter.len_utf8()..].starts_with('\'');
                if !is_letter {
                    return (1, None);
                }
            }
        }
        (rest.len(), Some(Token::Text))
    }
}

/// What stands up to the end of this mark, and what comes after it; nothing, if the mark is not there.
fn until<'a>(text: &'a str, end: &str) -> (&'a str, Option<&'a str>) {
    match text.find(end) {
        Some(at) => {
            let (inside, after) = text.split_at(at + end.len());
            (inside, Some(after))
        }
        None => (text, None),
    }
}

struct Spans<'a> {
    spans: Vec<Span<'static>>,
    look: &'a Look,
}

impl Spans<'_> {
    fn push(&mut self, text: &str, token: Option<Token>) {
        let style = token.map(|token| self.look.token(token)).unwrap_or_default();
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span::styled(text.to_owned(), style)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(name: &str, code: &str) -> Vec<(String, Token)> {
        let look = Look::default();
        let mut lexer = Lexer::of(name).unwrap();
        let known = [Token::Keyword, Token::Text, Token::Comment, Token::Name, Token::Removed];
        let mut found = Vec::new();
        for line in code.lines() {
            let spans = lexer.line(line, &look);
            assert_eq!(spans.iter().map(|span| span.content.as_ref()).collect::<String>(), line);
            for span in spans {
                let token = known.iter().find(|token| look.token(**token) == span.style);
                found.extend(token.map(|token| (span.content.to_string(), *token)));
            }
        }
        found
    }

    fn has(name: &str, code: &str, expected: &[(&str, Token)]) {
        let found = tokens(name, code);
        for (text, token) in expected {
            assert!(found.iter().any(|(seen, kind)| seen == text && kind == token), "{text}: {found:?}");
        }
    }

    /// S12.54: the spans of a line are the line, and the words of the usual languages have their colours.
    #[test]
    fn code_of_the_usual_languages_is_coloured() {
        has(
            "rust",
            "fn f<'a>(x: &'a str) { let c = 'x'; // it's\n/* a\nb */ \"q\\\"\" }",
            &[
                ("fn", Token::Keyword),
                ("let", Token::Keyword),
                ("'x'", Token::Text),
                ("// it's", Token::Comment),
                ("b */", Token::Comment),
                ("\"q\\\"\"", Token::Text),
            ],
        );
        has(
            "py",
            "def f():\n    \"\"\"a\n    b\"\"\"\n    return None  # why",
            &[("def", Token::Keyword), ("    b\"\"\"", Token::Text), ("# why", Token::Comment)],
        );
        has("json", "{\"key\": \"value\"}", &[("\"key\"", Token::Name), ("\"value\"", Token::Text)]);
        has(
            "sh",
            "if [ -e \"$x\" ]; then echo $HOME; fi # c",
            &[("if", Token::Keyword), ("$HOME", Token::Name), ("# c", Token::Comment)],
        );
        has(
            "toml",
            "[a.b]\nname = \"x\" # c",
            &[("[a.b]", Token::Keyword), ("name", Token::Name), ("# c", Token::Comment)],
        );
        has("sql", "select a from t -- c", &[("select", Token::Keyword), ("-- c", Token::Comment)]);
        has("diff", "-old\n+new", &[("-old", Token::Removed)]);
        assert!(Lexer::of("brainfuck").is_none() && Lexer::of("").is_none());
    }
}
