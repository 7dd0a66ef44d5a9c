//! The atomics and the lock of the node, swapped for loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::AtomicU32};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicU32};

// The atomics of loom take these orderings too.
pub(crate) use std::sync::atomic::Ordering;

/// Locks, going on after a panic elsewhere: no code of ours can panic while it holds one, and user code never runs
/// under one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
