//! A line for the shell as its commands, and these as their words: as far as a program's name needs it.

use std::{ffi::OsStr, iter::Peekable, path::Path, str::Chars};

/// A word of a command, without its quotes. In place of an expansion it has a `$`.
#[derive(Debug, Default)]
pub(super) struct Word {
    text: String,
    /// How many bytes stand before the first quote.
    unquoted: Option<usize>,
}

impl Word {
    /// A word that no shell reads.
    pub(super) fn argument(text: &OsStr) -> Self {
        Self { text: text.to_string_lossy().into_owned(), unquoted: Some(0) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a shell takes it as `NAME=value`.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _value)) = self.text.split_once('=') else { return false };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_of_name);
        is_name && !name.is_empty() && self.unquoted.is_none_or(|unquoted| name.len() < unquoted)
    }

    /// The file name of a path, where it is certain that this is one.
    pub(super) fn file_name(&self) -> Option<String> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '@');
        let is_path = !self.text.starts_with('-') && !self.text.contains("://");
        let name = Path::new(&self.text).file_name()?.to_str()?;
        (is_path && name.chars().all(is_plain)).then(|| name.to_owned())
    }

    fn quote(&mut self) {
        self.unquoted.get_or_insert(self.text.len());
    }

    fn is_number(&self) -> bool {
        self.unquoted.is_none() && self.text.chars().all(|c| c.is_ascii_digit())
    }
}

/// The commands of a line, without what they redirect.
pub(super) fn commands(line: &str) -> Vec<Vec<Word>> {
    let mut reader =
        Reader { chars: line.chars().peekable(), word: None, is_target: false, commands: vec![] };
    reader.commands.push(Vec::new());
    while let Some(c) = reader.chars.next() {
        reader.read(c);
    }
    reader.end_word();
    reader.commands
}

struct Reader<'l> {
    chars: Peekable<Chars<'l>>,
    word: Option<Word>,
    /// The next word is the place of a redirection.
    is_target: bool,
    commands: Vec<Vec<Word>>,
}

impl Reader<'_> {
    fn read(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' | ';' | '&' | '|' => self.end_command(),
            '#' if self.word.is_none() => {
                self.chars.by_ref().take_while(|c| *c != '\n').for_each(drop);
                self.end_command();
            }
            '<' | '>' => self.redirection(c),
            '\'' => {
                self.word().quote();
                while let Some(c) = self.chars.next().filter(|c| *c != '\'') {
                    self.push(c);
                }
            }
            '"' => self.double_quotes(),
            '\\' if self.chars.next_if_eq(&'\n').is_some() => {}
            '\\' => {
                self.word().quote();
                self.escaped();
            }
            '$' | '`' => self.expansion(c),
            c => self.push(c),
        }
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, c: char) {
        self.word().text.push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_target = std::mem::take(&mut self.is_target);
        if let (false, Some(command)) = (is_target, self.commands.last_mut()) {
            command.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_target = false;
        self.commands.push(Vec::new());
    }

    /// A text behind `<<` is not followed: its mark stays a word, which is no name of a program.
    fn redirection(&mut self, c: char) {
        if self.word.as_ref().is_some_and(Word::is_number) {
            self.word = None;
        }
        self.end_word();
        if c == '<' && self.chars.next_if_eq(&'<').is_some() {
            return self.word().text.push_str("<<");
        }
        while self.chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
        self.is_target = true;
    }

    fn double_quotes(&mut self) {
        self.word().quote();
        while let Some(c) = self.chars.next().filter(|c| *c != '"') {
            match c {
                '\\' if self.chars.peek().is_some_and(|c| "$`\"\\\n".contains(*c)) => self.escaped(),
                '$' | '`' => self.expansion(c),
                c => self.push(c),
            }
        }
    }

    fn escaped(&mut self) {
        if let Some(c) = self.chars.next().filter(|c| *c != '\n') {
            self.push(c);
        }
    }

    /// A variable, or a command within the word. Where the end of it is not certain, it takes the rest of the line.
    fn expansion(&mut self, c: char) {
        self.push('$');
        let end = match (c, self.chars.peek()) {
            ('`', _) => '`',
            (_, Some('(')) => ')',
            (_, Some('{')) => '}',
            _ => return,
        };
        if end != '`' {
            self.chars.next();
        }
        let is_uncertain = |c: char| "'\"`\\(){}#\n".contains(c);
        loop {
            match self.chars.next() {
                Some(c) if c == end => return,
                Some(c) if !is_uncertain(c) => {}
                _ => break,
            }
        }
        self.chars.by_ref().for_each(drop);
    }
}
