//! JSON that is still arriving, as a value: what of it is certain.
//!
//! **Invariants**: each text, number and word in the value is complete, save one text that still arrives, which is the beginning
//! of what it will be; a field stands in it once its value has begun; nothing that was in it leaves it again.

use serde_json::Value;

/// The text so far, and how far it can be closed into a whole value.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialJson {
    start: Start,
    text: String,
    /// What closes the open lists and objects, the innermost last.
    open: Vec<u8>,
    /// Up to here, and closed, it is a value; 0 until anything is.
    certain: usize,
    at: At,
    /// Whether the next text is the name of a field.
    is_name_next: bool,
    /// Whether all of it is there: what comes behind it is not looked at.
    is_whole: bool,
}

/// Whether the value has begun: some models write a fence around it, as in a page.
#[derive(Clone, Debug)]
enum Start {
    /// Not yet; what has arrived may be a fence.
    Undecided(String),
    Begun,
}

impl Default for Start {
    fn default() -> Self {
        Self::Undecided(String::new())
    }
}

/// Where the text ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Between values.
    #[default]
    Between,
    /// In a number, or in a word such as `true`, that began here.
    Scalar(usize),
    /// In a text, which is the name of a field or a value.
    Name(Escape),
    Text(Escape),
}

/// How far an escaped character of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// This many of its four digits are missing; the number so far.
    Digits(u8, u16),
    /// The first half of a character of two halves is there.
    Half,
    HalfBegun,
}

impl PartialJson {
    /// What is known of a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut partial = Self::default();
        partial.push(text);
        partial
    }

    /// Adds what has arrived.
    pub(crate) fn push(&mut self, more: &str) {
        const FENCE: &str = "```json";
        let Start::Undecided(mut held) = std::mem::replace(&mut self.start, Start::Begun) else {
            return self.read(more);
        };
        held.push_str(more);
        let head = held.trim_start();
        if FENCE.starts_with(head) {
            self.start = Start::Undecided(held);
            return;
        }
        let head = head.strip_prefix(FENCE).or_else(|| head.strip_prefix("```")).unwrap_or(head);
        self.read(head);
    }

    fn read(&mut self, more: &str) {
        let from = self.text.len();
        self.text.push_str(more);
        for (place, byte) in more.bytes().enumerate() {
            self.byte(from + place, byte);
        }
        if self.at == At::Text(Escape::None) {
            self.certain = self.text.len();
        }
    }

    /// All of it, once it is there: what came behind it is left out.
    pub(crate) fn whole(&self) -> Option<&str> {
        self.text.get(..self.certain).filter(|_| self.is_whole)
    }

    /// What is certain; none if nothing is, or if it is no JSON.
    pub(crate) fn value(&self) -> Option<Value> {
        if self.certain == 0 {
            return None;
        }
        let mut whole = String::with_capacity(self.certain + self.open.len() + 1);
        whole.push_str(self.text.get(..self.certain)?);
        if matches!(self.at, At::Text(_)) {
            whole.push('"');
        }
        whole.extend(self.open.iter().rev().map(|close| char::from(*close)));
        serde_json::from_str(&whole).ok()
    }

    fn byte(&mut self, place: usize, byte: u8) {
        match self.at {
            _ if self.is_whole => {}
            At::Between => self.between(place, byte),
            At::Scalar(from) => self.scalar(from, place, byte),
            At::Name(escape) => match self.escaped(escape, byte) {
                Some(escape) => self.at = At::Name(escape),
                None => self.at = At::Between,
            },
            At::Text(escape) => match self.escaped(escape, byte) {
                // Up to here nothing of it is half: what comes in this piece is looked at as a whole.
                Some(next) => {
                    if escape == Escape::None && next == Escape::Begun {
                        self.certain = place;
                    }
                    self.at = At::Text(next);
                }
                None => {
                    self.certain = place + 1;
                    self.at = At::Between;
                    self.is_whole = self.open.is_empty();
                }
            },
        }
    }

    fn between(&mut self, place: usize, byte: u8) {
        match byte {
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.is_name_next = byte == b'{';
                self.certain = place + 1;
            }
            b'}' | b']' => {
                self.open.pop();
                self.is_name_next = false;
                self.certain = place + 1;
                self.is_whole = self.open.is_empty();
            }
            b',' => self.is_name_next = self.open.last() == Some(&b'}'),
            b':' => self.is_name_next = false,
            b'"' if self.is_name_next => self.at = At::Name(Escape::None),
            b'"' => {
                self.certain = place + 1;
                self.at = At::Text(Escape::None);
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => self.at = At::Scalar(place),
        }
    }

    /// A number is whole at its end alone: `1` may become `12`.
    fn scalar(&mut self, from: usize, place: usize, byte: u8) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') {
            return;
        }
        self.at = At::Between;
        if from < place {
            self.certain = place;
        }
        self.between(place, byte);
    }

    /// Where a text is behind this byte; none where the byte ends it.
    fn escaped(&self, escape: Escape, byte: u8) -> Option<Escape> {
        const DIGITS: u8 = 4;
        const HIGH: std::ops::RangeInclusive<u16> = 0xd800..=0xdbff;
        Some(match (escape, byte) {
            (Escape::None, b'"') => return None,
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::Begun | Escape::HalfBegun, b'u') => Escape::Digits(DIGITS, 0),
            (Escape::Digits(left, number), digit) => {
                let digit =
                    char::from(digit).to_digit(16).and_then(|digit| u16::try_from(digit).ok()).unwrap_or(0);
                let number = number << 4 | digit;
                match left {
                    1 if HIGH.contains(&number) => Escape::Half,
                    1 => Escape::None,
                    _ => Escape::Digits(left - 1, number),
                }
            }
            (Escape::Half, b'\\') => Escape::HalfBegun,
            (Escape::None | Escape::Begun | Escape::Half | Escape::HalfBegun, _) => Escape::None,
        })
    }
}

#[cfg(test)]
mod tests;
