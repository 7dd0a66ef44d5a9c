//! Parts Rust into code and prose: the insides of comments, strings and character literals.
//!
//! **Invariants**: both have as many lines as the text, and what they hold keeps its line.

/// The text in two.
pub(super) struct Parted {
    /// With comments gone and strings empty.
    pub(super) code: String,
    /// What comments and strings hold.
    pub(super) prose: String,
}

/// Parts a text.
pub(super) fn part(text: &str) -> Parted {
    let (code, prose) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let mut reader = Blanker { chars: text.chars().collect(), at: 0, code, prose };
    while reader.at < reader.chars.len() {
        reader.step();
    }
    Parted { code: reader.code, prose: reader.prose }
}

struct Blanker {
    chars: Vec<char>,
    at: usize,
    code: String,
    prose: String,
}

impl Blanker {
    fn step(&mut self) {
        let c = self.chars[self.at];
        match c {
            '/' if self.ahead(1) == Some('/') => self.line_comment(),
            '/' if self.ahead(1) == Some('*') => self.block_comment(),
            '"' => self.string(),
            'r' if !self.is_in_word() => match self.hashes() {
                Some(hashes) => self.raw_string(hashes),
                None => self.keep(),
            },
            '\'' if self.ahead(1) == Some('\\') || self.ahead(2) == Some('\'') => self.character(),
            _ => self.keep(),
        }
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn keep(&mut self) {
        let c = self.chars[self.at];
        self.code.push(c);
        self.prose.push(if c == '\n' { c } else { ' ' });
        self.at += 1;
    }

    /// Passes over a character that is not code; a line's end is kept.
    fn skip(&mut self) {
        let Some(c) = self.ahead(0) else { return };
        if c == '\n' {
            self.code.push('\n');
        }
        self.prose.push(c);
        self.at += 1;
    }

    /// Whether the character before belongs to a name; the `b` of `br"…"` does not count.
    fn is_in_word(&self) -> bool {
        let before = |by: usize| self.at.checked_sub(by).map(|at| self.chars[at]);
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        joins(before(1)) && (before(1) != Some('b') || joins(before(2)))
    }

    /// How many `#` stand between this `r` and a quote, if it opens a raw string.
    fn hashes(&self) -> Option<usize> {
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        (self.ahead(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn line_comment(&mut self) {
        while self.ahead(0).is_some_and(|c| c != '\n') {
            self.skip();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.chars.len() {
            match (self.ahead(0), self.ahead(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.at += 2;
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.at += 2;
                }
                _ => self.skip(),
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.keep();
        while let Some(c) = self.ahead(0).filter(|c| *c != '"') {
            if c == '\\' {
                self.at += 1;
            }
            self.skip();
        }
        self.close();
    }

    fn raw_string(&mut self, hashes: usize) {
        self.at += 1 + hashes;
        self.keep();
        let ends = |reader: &Self| {
            reader.ahead(0) == Some('"') && (1..=hashes).all(|by| reader.ahead(by) == Some('#'))
        };
        while self.at < self.chars.len() && !ends(self) {
            self.skip();
        }
        self.close();
        self.at += hashes;
    }

    fn character(&mut self) {
        // The quote, a backslash if there is one, and what stands there, which may itself be a quote.
        self.at += if self.ahead(1) == Some('\\') { "'\\n".len() } else { "'n".len() };
        while self.ahead(0).is_some_and(|c| c != '\'') {
            self.skip();
        }
        self.at += 1;
        self.code.push_str("' '");
    }

    fn close(&mut self) {
        if self.at < self.chars.len() {
            self.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        part(text).code
    }

    #[test]
    fn comments_and_strings_say_nothing() {
        assert_eq!(code("a(\"x // y\"); // kill\nb"), "a(\"\"); \nb");
        assert_eq!(code("a /* x /* y */\n z */ b"), "a \n b");
        assert_eq!(code("r#\"a \" b\"# + br\"c\" + for r in r"), "\"\" + b\"\" + for r in r");
    }

    #[test]
    fn quotes_and_lifetimes_open_no_string() {
        assert_eq!(code("f('\"', '\\'', &'a str); g(\"x\")"), "f(' ', ' ', &'a str); g(\"\")");
    }

    #[test]
    fn prose_is_what_comments_and_strings_hold() {
        let prose = part("a(\"x\ny\"); // kill\nb /* c */").prose;
        let lines: Vec<&str> = prose.lines().map(str::trim).collect();
        assert_eq!(lines, ["x", "y    // kill", "c"]);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "let a = \"one \\\n two\n three\";\nkill();\n";
        assert_eq!(code(text).lines().nth(3), Some("kill();"));
    }
}
