//! A history encoded once, entry by entry, into a body that only grows.
//!
//! **Invariants**: a history that only grew is encoded from where the last request ended, any other from its start;
//! both give the same bytes.

use safepoint::{History, history::Message};

use crate::{
    body::{Growing, Parts},
    cursor::{Cursor, Fresh},
};

/// How one wire writes entries, and what it must remember between them. Its first value is that of an empty list.
pub(crate) trait Entries: Clone + Send + 'static {
    /// Appends one entry.
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message);
    /// What closes the list and the body.
    fn tail(&self) -> &'static [u8];
}

/// Encodes one conversation.
#[derive(Debug)]
pub(crate) struct Grown<E> {
    prefix: Vec<u8>,
    empty: E,
    body: Growing,
    cursor: Cursor,
    entries: E,
}

impl<E: Entries> Grown<E> {
    /// Begins with what stands before the first entry, the list's bracket included.
    pub(crate) fn new(prefix: Vec<u8>, empty: E) -> Self {
        let mut body = Growing::default();
        body.push(prefix.clone());
        Self { prefix, entries: empty.clone(), empty, body, cursor: Cursor::default() }
    }

    /// The body of a request with this history.
    pub(crate) fn encode(&mut self, history: &History) -> Parts {
        let entries = match self.cursor.advance(history) {
            Fresh::Rest(entries) => entries,
            Fresh::All(entries) => {
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
