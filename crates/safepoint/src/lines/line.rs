//! One line: an object of a few fields, and texts in it that are written from where they are.

use std::{
    fmt::{self, Display},
    io,
    sync::Arc,
};

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap as _},
};
use serde_json::Value;

use crate::value::event::Event;

/// An event or an outcome as one JSON object. It serialises ([`serde`]) and shows ([`Display`]) as that object, in one line
/// without its end; its fields are in the order of their names.
///
/// Made by an [`EventEncoder`](crate::event::EventEncoder), which has an example.
#[derive(Clone)]
pub struct EventLine {
    fields: Value,
    /// In the order of their names.
    texts: Vec<(&'static str, LineText)>,
    /// The id of the event that it is the line of; empty without one.
    id: String,
}

/// A text in a line. Exhaustive: one that is whole, or a fragment of a text that arrives in fragments, so that the
/// fragments of two lines may be joined.
#[derive(Clone)]
pub enum LineText {
    /// All of it.
    Whole(Arc<dyn Display + Send + Sync>),
    /// A fragment.
    Fragment(Arc<str>),
}

impl EventLine {
    /// The fields of a line; [`with`](Self::with) puts its texts in their places.
    pub(super) fn of(fields: &impl Serialize) -> Self {
        let fields = serde_json::to_value(fields).expect("the types of lines have texts as keys");
        Self { fields, texts: Vec::new(), id: String::new() }
    }

    /// The line as that of this event.
    pub(super) fn of_event<K>(mut self, event: &Event<K>) -> Self {
        self.id = event.id();
        self
    }

    /// Says this text as the field `name`.
    pub(super) fn with(mut self, name: &'static str, text: LineText) -> Self {
        if let Value::Object(fields) = &mut self.fields {
            fields.remove(name);
        }
        self.texts.push((name, text));
        self.texts.sort_by_key(|(name, _)| *name);
        self
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.fields[name] = value;
    }

    /// What kind of line it is: its field `type`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.fields["type"].as_str().unwrap_or_default()
    }

    /// The id of its event ([`Event::id`]): the `id` of a server-sent event, which the browser sends back as `Last-Event-ID`.
    /// Empty for a line of no event, such as `outcome` and `stream_restarted`. It is no part of the line.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its number among the lines of its encoder: its field `seq`. It is not the number of the event.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.fields["seq"].as_u64().unwrap_or_default()
    }
}

/// The fields of a line without its texts, and its texts in the order of their names.
#[must_use]
pub fn into_parts(line: EventLine) -> (Value, Vec<(&'static str, LineText)>) {
    (line.fields, line.texts)
}

impl Serialize for EventLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = &self.fields else {
            return Err(S::Error::custom("only an object has fields"));
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

impl Serialize for LineText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(text) => serializer.collect_str(text),
            Self::Fragment(text) => serializer.serialize_str(text),
        }
    }
}

impl Display for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        serde_json::to_writer(PieceWriter(f), self).map_err(|_not_written| fmt::Error)
    }
}

impl fmt::Debug for EventLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl fmt::Debug for LineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(text) => Display::fmt(text, f),
            Self::Fragment(text) => Display::fmt(text, f),
        }
    }
}

/// A formatter that JSON is written to. Its pieces are whole characters: JSON is written string by string.
struct PieceWriter<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl io::Write for PieceWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text of something, written from where it is.
pub(super) struct TextOf<T>(pub(super) T, pub(super) fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result);

impl<T> Display for TextOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1(&self.0, f)
    }
}

impl<T: Send + Sync + 'static> From<TextOf<T>> for LineText {
    fn from(text: TextOf<T>) -> Self {
        Self::Whole(Arc::new(text))
    }
}
