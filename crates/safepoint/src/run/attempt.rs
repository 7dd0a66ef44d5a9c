//! Who goes on with a run in this process: one attempt at a time (S7.4).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// What all attempts of a run in this process share.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptLock(Arc<AtomicBool>);

/// The desk, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct AttemptGuard(AttemptLock);

impl AttemptLock {
    /// Takes it, unless another attempt has it.
    pub(crate) fn claim(&self) -> Option<AttemptGuard> {
        let before = self.0.swap(true, Ordering::AcqRel);
        (!before).then(|| AttemptGuard(self.clone()))
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
