//! A lock that a panic does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after a thread that held it has panicked.
pub(crate) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
