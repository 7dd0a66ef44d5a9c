//! Which part of a history a conversation has encoded.

use std::sync::Arc;

use safepoint::history::{Entry, History};

/// The end of the encoded part. A history that only grew is encoded from there; any other from its start.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    encoded: usize,
    last: Option<Arc<Entry>>,
}

/// What is to be encoded. Exhaustive: the rest, or everything again.
pub(crate) enum Fresh<'h> {
    Rest(&'h [Arc<Entry>]),
    All(&'h [Arc<Entry>]),
}

impl Cursor {
    pub(crate) fn advance<'h>(&mut self, history: &'h History) -> Fresh<'h> {
        let entries = history.entries();
        let grew = match &self.last {
            None => self.encoded == 0,
            Some(last) => entries.get(self.encoded - 1).is_some_and(|entry| Arc::ptr_eq(entry, last)),
        };
        let from = if grew { self.encoded } else { 0 };
        self.encoded = entries.len();
        self.last = entries.last().cloned();
        if grew { Fresh::Rest(&entries[from..]) } else { Fresh::All(entries) }
    }
}
