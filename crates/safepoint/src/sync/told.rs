//! What is told to whoever waits for it, as often as they like.
//!
//! **Invariants**: whoever waits sees everything that is told after he began to; nothing that was told is missed by one who
//! looks and then waits.

use super::mutex::{Mutex, Notify};

/// Something that changes, and those who wait until it is so.
pub(crate) struct Told<S> {
    state: Mutex<S>,
    changed: Notify,
}

impl<S> Told<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Changes it, and wakes everybody who waits. Nothing foreign runs in `write`.
    pub(crate) fn tell<R>(&self, write: impl FnOnce(&mut S) -> R) -> R {
        let written = write(&mut self.state.lock());
        self.changed.notify_waiters();
        written
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut self.state.lock())
    }

    /// Waits until there is what `look` looks for.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn wait<R>(&self, mut look: impl FnMut(&mut S) -> Option<R>) -> R {
        loop {
            // Registered, then looked at, so that what is told in between is not missed.
            let changed = self.changed.notified();
            if let Some(found) = self.look(&mut look) {
                return found;
            }
            changed.await;
        }
    }
}
