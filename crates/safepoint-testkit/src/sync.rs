//! The only place that knows of poisoned locks, and of watches whose other end is gone.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "server")]
use tokio::sync::watch;

/// Locks. A panic under a lock fails its own test, so that others read on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until what is watched fits.
///
/// # Cancel safety
/// Nothing is lost.
#[cfg(feature = "server")]
pub(crate) async fn until<T>(watched: &watch::Sender<T>, fits: impl FnMut(&T) -> bool) {
    if watched.subscribe().wait_for(fits).await.is_err() {
        // The sender is borrowed here.
    }
}
