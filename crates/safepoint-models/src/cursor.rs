//! Which part of a history a conversation has encoded.

use std::sync::Arc;

use safepoint::history::{History, Message};

/// The end of the encoded part. A history that only grew is encoded from there; any other from its start.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    encoded: usize,
    first: Option<Arc<Message>>,
    last: Option<Arc<Message>>,
}

/// What is to be encoded. Exhaustive: the rest, or everything again.
pub(crate) enum Fresh<'h> {
    Rest(&'h [Arc<Message>]),
    All(&'h [Arc<Message>]),
}

impl Cursor {
    pub(crate) fn advance<'h>(&mut self, history: &'h History) -> Fresh<'h> {
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
        if grew { Fresh::Rest(&entries[from..]) } else { Fresh::All(entries) }
    }
}
