//! Which call a message answers, found without keeping the message.

/// Looks for `id` and `method` at the top of a JSON object, byte by byte. What is not JSON gives nothing or nonsense, but
/// never fails; an unknown id is thrown away later.
#[derive(Debug, Default)]
pub struct Scan {
    depth: usize,
    place: JsonPlace,
    /// Whether it is in a value of the top object, and not before or in a key.
    is_in_value: bool,
    word: Vec<u8>,
    is_id: bool,
    id: Option<i64>,
    /// Whether it asks something, and so answers nothing.
    has_method: bool,
}

/// Where a byte stands. Exhaustive: outside of a string, in one, or behind a backslash in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    #[default]
    Outside,
    Inside,
    Escaped,
}

impl JsonPlace {
    pub(crate) fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Outside, b'"') | (Self::Escaped, _) => Self::Inside,
            (Self::Inside, b'"') => Self::Outside,
            (Self::Inside, b'\\') => Self::Escaped,
            (place, _) => place,
        }
    }
}

/// Longer than any key or id that is looked for.
const WORD_BYTES: usize = 24;
const TOP: usize = 1;

impl Scan {
    /// What is seen of this line.
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut scan = Self::default();
        scan.feed(line);
        scan
    }

    /// Looks at more of the line.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    /// The number of the question that this answers, if it is an answer to a numbered one.
    #[must_use]
    pub fn answers(&self) -> Option<i64> {
        self.id.filter(|_| !self.has_method)
    }

    /// The number of the question that this is, if it is a numbered one.
    #[must_use]
    pub fn asks(&self) -> Option<i64> {
        self.id.filter(|_| self.has_method)
    }

    fn take(&mut self, byte: u8) {
        let was = self.place;
        self.place = was.after(byte);
        match byte {
            _ if was != JsonPlace::Outside && self.place == JsonPlace::Inside => self.push(byte),
            // A string's quotes and its backslashes are not of its word.
            _ if was != JsonPlace::Outside || self.place != JsonPlace::Outside => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_of_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == TOP && !self.is_in_value => {
                self.is_id = self.word == b"id";
                self.has_method |= self.word == b"method";
                self.is_in_value = true;
                self.word.clear();
            }
            b',' if self.depth == TOP => {
                self.end_of_value();
                self.is_in_value = false;
                self.word.clear();
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.push(byte),
        }
    }

    fn push(&mut self, byte: u8) {
        if self.depth == TOP && self.word.len() < WORD_BYTES {
            self.word.push(byte);
        }
    }

    fn end_of_value(&mut self) {
        if self.depth == TOP && self.is_id {
            self.is_id = false;
            self.id = std::str::from_utf8(&self.word).ok().and_then(|word| word.parse().ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str) -> Option<i64> {
        let mut scan = Scan::default();
        for byte in text.bytes() {
            scan.feed(&[byte]);
        }
        scan.answers()
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        assert_eq!(answers(r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"x":["id",9]}}"#), Some(7));
        assert_eq!(answers(r#"{ "result": {"a":"}\"id\":3,"}, "id" : "12" }"#), Some(12));
        assert_eq!(answers(r#"{"result":[[[{"id":1}]]],"id":-4}"#), Some(-4));
    }

    #[test]
    fn a_question_a_notice_and_noise_answer_nothing() {
        for text in [
            r#"{"id":7,"method":"ping"}"#,
            r#"{"method":"notifications/progress","params":{"id":7}}"#,
            "Listening on id: 7",
            r#"{"id":null,"error":{}}"#,
            "",
            "]]}}",
        ] {
            assert_eq!(answers(text), None, "{text}");
        }
    }
}
