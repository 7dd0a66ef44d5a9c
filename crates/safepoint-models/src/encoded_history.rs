//! A history encoded once, entry by entry, into a body that only grows.
//!
//! **Invariants**: a history that only grew is encoded from where the last request ended, any other from its start;
//! both give the same bytes.

use std::sync::Arc;

use bytes::Bytes;
use safepoint::{History, history::Message, raw};

use crate::body::{Growing, Parts};

/// How one wire writes entries, and what it must remember between them. Its first value is that of an empty list.
pub(crate) trait Entries: Clone + Send + 'static {
    /// Appends one entry.
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message);
    /// What closes the list and the body.
    fn tail(&self) -> &'static [u8];
}

/// The bytes that most rounds add, or fewer.
const ROOM: usize = 1 << 10;

/// Encodes one conversation.
#[derive(Debug)]
pub(crate) struct EncodedHistory<E> {
    prefix: Bytes,
    empty: E,
    body: Growing,
    entries: E,
    /// How many entries are in the body, and the first and the last of them.
    encoded: usize,
    ends: Option<[Arc<Message>; 2]>,
}

impl<E: Entries> EncodedHistory<E> {
    /// Begins with what stands before the first entry, the list's bracket included.
    pub(crate) fn new(prefix: Bytes, empty: E) -> Self {
        let (body, entries) = (Growing::default(), empty.clone());
        Self { prefix, empty, body, entries, encoded: 0, ends: None }
    }

    /// How many entries of this history are encoded already.
    pub(crate) fn known(&self, history: &History) -> usize {
        if self.has_grown_to(history.entries()) { self.encoded } else { 0 }
    }

    /// The body of a request with this history.
    pub(crate) fn encode(&mut self, history: &History) -> Parts {
        let entries = history.entries();
        self.encoded = self.known(history);
        if self.encoded == 0 {
            self.body = Growing::behind(self.prefix.clone());
            self.entries = self.empty.clone();
        }
        let mut out = Vec::with_capacity(ROOM);
        for entry in entries.range(self.encoded..) {
            self.entries.entry(&mut out, entry);
        }
        self.body.push(out);
        self.encoded = entries.len();
        self.ends = entries.first().zip(entries.last()).map(|(first, last)| [first.clone(), last.clone()]);
        self.body.with_tail(self.entries.tail())
    }

    /// Whether what is encoded is the beginning of these entries. The first one too: a history that was shortened can
    /// have its last entry where it was.
    fn has_grown_to(&self, entries: &raw::Entries) -> bool {
        let same = |entry: Option<&Arc<Message>>, known| entry.is_some_and(|entry| Arc::ptr_eq(entry, known));
        self.ends.as_ref().is_some_and(|[first, last]| {
            same(entries.first(), first) && same(entries.get(self.encoded - 1), last)
        })
    }
}
