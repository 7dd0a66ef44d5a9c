//! The lock and the bell of the mailboxes, the door and the tickets, swapped for loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks, going on after a panic elsewhere: no foreign code runs under one of these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(not(loom))]
pub(crate) use tokio::sync::Notify;

/// The real one, with a moment before each use in which others may come first: loom does not see what is inside.
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
        self.moment.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.real.notified()
    }

    pub(crate) fn notify_waiters(&self) {
        self.moment.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.real.notify_waiters();
    }
}
