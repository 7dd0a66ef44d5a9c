//! A history encoded once, entry by entry, into a body that only grows.
//!
//! **Invariants**: a history that only grew is encoded from where the last request ended, any other from its start;
//! both give the same bytes.

use std::sync::Arc;

use safepoint::{History, history::Message};

use crate::body::{Growing, Parts};

/// How one wire writes entries, and what it must remember between them. Its first value is that of an empty list.
pub(crate) trait Entries: Clone + Send + 'static {
    /// Appends one entry.
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message);
    /// What closes the list and the body.
    fn tail(&self) -> &'static [u8];
}

/// Encodes one conversation.
#[derive(Debug)]
pub(crate) struct EncodedHistory<E> {
    prefix: Vec<u8>,
    empty: E,
    body: Growing,
    cursor: Cursor,
    entries: E,
}

impl<E: Entries> EncodedHistory<E> {
    /// Begins with what stands before the first entry, the list's bracket included.
    pub(crate) fn new(prefix: Vec<u8>, empty: E) -> Self {
        let mut body = Growing::default();
        body.push(prefix.clone());
        Self { prefix, entries: empty.clone(), empty, body, cursor: Cursor::default() }
    }

    /// The body of a request with this history.
    pub(crate) fn encode(&mut self, history: &History) -> Parts {
        let entries = match self.cursor.advance(history) {
            ToEncode::Rest(entries) => entries,
            ToEncode::All(entries) => {
                self.body = Growing::default();
                self.body.push(self.prefix.clone());
                self.entries = self.empty.clone();
                entries
            }
        };
        let mut out = Vec::new();
        for entry in entries {
            self.entries.entry(&mut out, entry);
        }
        self.body.push(out);
        self.body.with_tail(self.entries.tail().to_vec())
    }
}

/// The end of the encoded part. A history that only grew is encoded from there; any other from its start.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    encoded: usize,
    first: Option<Arc<Message>>,
    last: Option<Arc<Message>>,
}

/// What is to be encoded. Exhaustive: the rest, or everything again.
pub(crate) enum ToEncode<'h> {
    Rest(&'h [Arc<Message>]),
    All(&'h [Arc<Message>]),
}

impl Cursor {
    pub(crate) fn advance<'h>(&mut self, history: &'h History) -> ToEncode<'h> {
        let entries = history.entries();
        let same = |entry: Option<&Arc<Message>>, known| entry.is_some_and(|entry| Arc::ptr_eq(entry, known));
        let grew = match (&self.first, &self.last) {
            // The first one too: one that was shortened can have its last entry where it was.
            (Some(first), Some(last)) => {
                same(entries.first(), first) && same(entries.get(self.encoded - 1), last)
            }
            (None, _) | (_, None) => self.encoded == 0,
        };
        let from = if grew { self.encoded } else { 0 };
        self.encoded = entries.len();
        self.first = entries.first().cloned();
        self.last = entries.last().cloned();
        if grew { ToEncode::Rest(&entries[from..]) } else { ToEncode::All(entries) }
    }
}
