//! The only place that knows of poisoned locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. A panic under a lock ends the simulation with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
