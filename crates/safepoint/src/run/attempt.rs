//! Allows one attempt of a run at a time in this process (S7.4).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The lock that all attempts of a run in this process share.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptLock {
    is_held: Arc<AtomicBool>,
    /// Whether nothing keeps a copy of the run from continuing elsewhere.
    is_of_a_copy: bool,
}

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct AttemptGuard(AttemptLock);

impl AttemptLock {
    /// The lock of a run of which any number of copies may continue (S7.19).
    pub(crate) fn of_a_copy() -> Self {
        Self { is_of_a_copy: true, ..Self::default() }
    }

    /// Whether nothing keeps a copy of the run from continuing elsewhere.
    pub(crate) fn is_of_a_copy(&self) -> bool {
        self.is_of_a_copy
    }

    /// Acquires the lock, unless another attempt holds it.
    pub(crate) fn claim(&self) -> Option<AttemptGuard> {
        // One swap, so that of two claims at a time exactly one reads `false`. Acquire pairs with the release in `drop`:
        // the next attempt sees everything that the last one wrote.
        let before = self.is_held.swap(true, Ordering::AcqRel);
        (!before).then(|| AttemptGuard(self.clone()))
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        // Release: pairs with the swap in `claim`. Only the holder stores `false`, so no claim is
        // overwritten.
        self.0.is_held.store(false, Ordering::Release);
    }
}
