//! The value that unwinds: proof that something must end. It is not an error (S2.14).

use std::{fmt, sync::Arc};

use crate::{
    reason::Reason,
    scope::node::{Firing, Node},
};

/// Proof that a scope must end. Pass it on with `?`; only the scope that issued it can take it back.
///
/// It is no [`Error`](std::error::Error), cannot be shown, cloned or made, so it does not fit into `anyhow`, into a
/// `Box<dyn Error>` or into a log line that calls it a failure.
#[must_use = "propagate it with `?`, or hand it to `Scope::absorb`"]
pub struct Stop {
    origin: Arc<Node>,
    reason: Reason,
}

impl Stop {
    pub(crate) fn new(Firing { origin, reason }: Firing<'_>) -> Self {
        Self { origin: Arc::clone(origin), reason }
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    pub(crate) fn absorb(self, by: &Arc<Node>) -> Result<Reason, Self> {
        if Arc::ptr_eq(&self.origin, by) { Ok(self.reason) } else { Err(self) }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stop({:?})", self.reason)
    }
}
