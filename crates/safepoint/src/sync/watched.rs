//! State that any number of tasks can wait on, any number of times.
//!
//! **Invariants**: a waiter sees every change made after it began to wait; no change is missed between its
//! check and its wait.

use super::mutex::{Mutex, Notify};

/// A value that changes, and the tasks that wait for a change.
pub(crate) struct Watched<S> {
    /// Held for one `write` or one `look`, which only move values. Waiters are woken after it is released.
    state: Mutex<S>,
    changed: Notify,
}

impl<S> Watched<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Changes the value and wakes all waiters. No foreign code runs in `write`.
    pub(crate) fn update<R>(&self, write: impl FnOnce(&mut S) -> R) -> R {
        let written = write(&mut self.state.lock());
        self.changed.notify_waiters();
        written
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut self.state.lock())
    }

    /// Waits until `look` finds something.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn wait<R>(&self, mut look: impl FnMut(&mut S) -> Option<R>) -> R {
        loop {
            // Registered before the check, so that a change in between is not missed: `notify_waiters` wakes
            // only registered futures.
            let changed = self.changed.notified();
            if let Some(found) = self.look(&mut look) {
                return found;
            }
            changed.await;
        }
    }
}
