//! The moment of a request, for what counts from when it is done.

use std::time::Instant;

use safepoint::raw::store::Since;

/// When something was asked that counts only from when it is done: it may have waited for others before.
#[derive(Clone, Copy)]
pub(super) struct AskedAt {
    since: Since,
    at: Instant,
}

impl AskedAt {
    pub(super) fn now() -> Self {
        Self { since: Since::now(), at: Instant::now() }
    }

    /// Now that the wait is over. The task's clock can be read only where the task is.
    pub(super) fn waited(self) -> Since {
        self.since.later_by(self.at.elapsed())
    }
}
