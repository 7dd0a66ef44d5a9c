//! What is known, outside its stream, of a response that the provider keeps: its id, and whether it still runs.
//!
//! **Invariants**: the lock is never held across an await; an id is handed out for a cancel once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by the reader of a reply and the conversation that may have to call it off. Clones are the same response.
#[derive(Clone, Debug, Default)]
pub(super) struct Handle {
    /// Whether the provider keeps the response when we go: it does in background mode.
    is_kept: bool,
    /// Held to set, copy or take the id; no other lock is taken under it. Taking decides between the end of the response
    /// and a cancel: one of them gets the id.
    id: Arc<Mutex<Option<String>>>,
}

impl Handle {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, ..Self::default() }
    }

    pub(super) fn is_named(&self, id: String) {
        if self.is_kept {
            self.lock().get_or_insert(id);
        }
    }

    /// It has ended at the provider: nothing to read on, nothing to call off.
    pub(super) fn is_over(&self) {
        self.lock().take();
    }

    /// The id, if the provider keeps the response running.
    pub(super) fn kept(&self) -> Option<String> {
        self.lock().clone()
    }

    /// The id, once.
    pub(super) fn take(&self) -> Option<String> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
