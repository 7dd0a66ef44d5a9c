//! A model's or a tool's text while it waits to be written.

use std::sync::Arc;

/// A text: shared with other holders, or joined from several that waited.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Shared(Arc<str>),
    PutTogether(String),
}

impl Text {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Shared(text) => text,
            Self::PutTogether(text) => text,
        }
    }

    /// Appends this text. Returns false, and changes nothing, if the sum would be longer than `most`.
    pub(super) fn join(&mut self, more: &str, most: usize) -> bool {
        if self.as_str().len() + more.len() > most {
            return false;
        }
        match self {
            Self::Shared(text) => *self = Self::PutTogether([&**text, more].concat()),
            Self::PutTogether(text) => text.push_str(more),
        }
        true
    }
}
