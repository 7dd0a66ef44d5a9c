//! A line of JSON, written piece by piece: neither the line nor a large text in it is ever in memory as a whole (S12.4).

use std::{fmt::Display, io, sync::Arc};

use safepoint::{
    event::EventLine,
    raw::line::{LineText, into_parts},
};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap as _},
};
use serde_json::{Serializer as Json, Value, ser::Formatter};

use super::{Text, WHOLE, is_obeyed};

/// A line of JSON: an object, and texts in it that are written without a copy.
#[derive(Clone)]
pub(crate) struct JsonLine {
    fields: Value,
    /// In the order of their names.
    texts: Vec<(&'static str, Words)>,
}

/// A text. Exhaustive: shared with other holders, or a fragment of a text that arrives in fragments.
#[derive(Clone)]
enum Words {
    Shared(Arc<dyn Display + Send + Sync>),
    Piece(Text),
}

/// The fields of the line itself, not of its text.
const OWN: [&str; 2] = ["seq", "at"];

impl From<Value> for JsonLine {
    fn from(fields: Value) -> Self {
        Self { fields, texts: Vec::new() }
    }
}

/// A line of the engine's encoder: fragments of texts may be joined while it waits.
impl From<EventLine> for JsonLine {
    fn from(line: EventLine) -> Self {
        let (fields, texts) = into_parts(line);
        let words = |text| match text {
            LineText::Whole(text) => Words::Shared(text),
            LineText::Fragment(text) => Words::Piece(Text::Shared(text)),
        };
        Self { fields, texts: texts.into_iter().map(|(name, text)| (name, words(text))).collect() }
    }
}

impl JsonLine {
    /// Appends a line that continues this one and keeps this line's header. Returns the line if the sum would
    /// be too large.
    pub(super) fn join(&mut self, more: Self) -> Option<Self> {
        /// With its fields it fits into one write to a pipe, so that it is whole or absent when its reader is
        /// given up.
        const MOST: usize = WHOLE - (1 << 10);
        let is_joined = is_alike(&self.fields, &more.fields)
            && match (self.texts.as_mut_slice(), more.texts.as_slice()) {
                ([(name, Words::Piece(text))], [(other, Words::Piece(piece))]) if name == other => {
                    text.join(piece.as_str(), MOST)
                }
                _ => false,
            };
        (!is_joined).then_some(more)
    }

    /// The approximate memory of a waiting line, without the parts that other code shares.
    pub(super) fn bytes(&self) -> usize {
        const FIELDS: usize = 1 << 10;
        let pieces = self.texts.iter().map(|(_, words)| match words {
            Words::Shared(_) => 0,
            Words::Piece(text) => text.as_str().len(),
        });
        FIELDS + pieces.sum::<usize>()
    }

    /// The fields without the texts.
    pub(crate) fn fields(&mut self) -> &mut Value {
        &mut self.fields
    }

    /// Writes the line and its end. A character that a terminal would obey is written as its number, which is
    /// the same JSON.
    pub(super) fn write_to(&self, mut out: impl io::Write) -> io::Result<()> {
        self.serialize(&mut Json::with_formatter(&mut out, Harmless))?;
        out.write_all(b"\n")
    }
}

/// Lines that are no event, made by tests.
#[cfg(test)]
impl JsonLine {
    /// Adds this text as the field `name`.
    pub(crate) fn with(self, name: &'static str, text: impl Display + Send + Sync + 'static) -> Self {
        self.hold(name, Words::Shared(Arc::new(text)))
    }

    /// Adds this fragment of a text as the field `name`; later fragments may join it while the line waits.
    pub(crate) fn saying(self, name: &'static str, piece: Text) -> Self {
        self.hold(name, Words::Piece(piece))
    }

    fn hold(mut self, name: &'static str, words: Words) -> Self {
        self.texts.push((name, words));
        self.texts.sort_by_key(|(name, _)| *name);
        self
    }
}

impl Serialize for JsonLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = match &self.fields {
            Value::Object(fields) => fields,
            other if self.texts.is_empty() => return other.serialize(serializer),
            _ => return Err(S::Error::custom("only an object has fields")),
        };
        let mut texts = self.texts.iter().peekable();
        let mut line = serializer.serialize_map(Some(fields.len() + self.texts.len()))?;
        for (name, value) in fields {
            while let Some((before, text)) = texts.next_if(|(text, _)| *text < name.as_str()) {
                line.serialize_entry(before, text)?;
            }
            line.serialize_entry(name, value)?;
        }
        for (name, text) in texts {
            line.serialize_entry(name, text)?;
        }
        line.end()
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Shared(text) => serializer.collect_str(text),
            Self::Piece(text) => serializer.serialize_str(text.as_str()),
        }
    }
}

/// Whether two lines are equal but for their texts.
fn is_alike(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    one.len() == other.len()
        && one.iter().all(|(name, value)| OWN.contains(&name.as_str()) || other.get(name) == Some(value))
}

/// JSON escapes characters below a space; other characters that a terminal obeys occur only in its strings.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        const DELETE: u8 = 0x7f;
        let mut rest = fragment;
        if rest.bytes().all(|byte| byte < DELETE) {
            return out.write_all(rest.as_bytes());
        }
        while let Some((place, letter)) = rest.char_indices().find(|(_, letter)| is_obeyed(*letter)) {
            out.write_all(&rest.as_bytes()[..place])?;
            write!(out, "\\u{:04x}", u32::from(letter))?;
            rest = &rest[place + letter.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(line: &JsonLine) -> String {
        let mut out = Vec::new();
        line.write_to(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_of_json_says_the_same_and_nothing_of_it_is_obeyed() {
        let value = json!({"a\u{9b}": "\x1b]52;c;eA==\x07 \u{7f}\u{202e}\u{2028} grüße"});
        let written = written(&value.clone().into());
        assert!(!written.trim_end().contains(is_obeyed), "{written:?}");
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }

    /// S12.4: a text that is written without a copy looks in its line as a value would.
    #[test]
    fn a_shared_text_is_written_as_a_value_would_be() {
        let text = "\"a\"\n\u{1b}\\ \u{9b}\u{202e} grüße";
        let rest = json!({"answer": null, "state": "open", "v": 1});
        let shared = JsonLine::from(rest.clone()).with("text", text).with("a", "first").with("z", "last");
        let mut whole = rest;
        for (name, text) in [("text", text), ("a", "first"), ("z", "last")] {
            whole[name] = text.into();
        }
        assert_eq!(written(&shared), written(&whole.into()));
    }
}
