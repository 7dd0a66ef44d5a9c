//! Who goes on with a run in this process: one attempt at a time (S7.4).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// What all attempts of a run in this process share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Desk(Arc<AtomicBool>);

/// The desk, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(Desk);

impl Desk {
    /// Takes it, unless another attempt has it.
    pub(crate) fn claim(&self) -> Option<Claim> {
        let before = self.0.swap(true, Ordering::AcqRel);
        (!before).then(|| Claim(self.clone()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
