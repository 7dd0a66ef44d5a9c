//! Allows one attempt of a run at a time in this process (S7.4).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The lock that all attempts of a run in this process share.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptLock(Arc<AtomicBool>);

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct AttemptGuard(AttemptLock);

impl AttemptLock {
    /// Acquires the lock, unless another attempt holds it.
    pub(crate) fn claim(&self) -> Option<AttemptGuard> {
        // One swap, so that of two claims at a time exactly one reads `false`. Acquire pairs with the release in `drop`:
        // the next attempt sees everything that the last one wrote.
        let before = self.0.swap(true, Ordering::AcqRel);
        (!before).then(|| AttemptGuard(self.clone()))
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        // Release: pairs with the swap in `claim`. Only the holder stores `false`, so no claim is
        // overwritten.
        self.0.0.store(false, Ordering::Release);
    }
}
