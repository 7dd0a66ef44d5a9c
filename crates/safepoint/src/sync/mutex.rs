//! The lock and the notification of the mailboxes, the session's entrance and the tickets, replaced by loom's
//! under `--cfg loom`.

use std::{fmt, sync::PoisonError};

#[cfg(loom)]
use loom::sync as real;
#[cfg(not(loom))]
use std::sync as real;

pub(crate) use real::MutexGuard;

/// A mutex that a panic elsewhere does not poison: no foreign code runs while one is held.
#[derive(Default)]
pub(crate) struct Mutex<T>(real::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(real::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(not(loom))]
pub(crate) use tokio::sync::Notify;

/// The real one, with a yield before each use, so that others may run first: loom does not see its inside.
#[cfg(loom)]
pub(crate) struct Notify {
    moment: loom::sync::atomic::AtomicUsize,
    real: tokio::sync::Notify,
}

#[cfg(loom)]
impl Notify {
    pub(crate) fn new() -> Self {
        Self { moment: loom::sync::atomic::AtomicUsize::new(0), real: tokio::sync::Notify::new() }
    }

    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        // Only a point at which loom may switch threads: the number orders nothing, so any ordering would do.
        self.moment.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.real.notified()
    }

    pub(crate) fn notify_waiters(&self) {
        // As above: a point at which loom may switch threads.
        self.moment.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.real.notify_waiters();
    }
}
