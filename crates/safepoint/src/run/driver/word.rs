//! The word that a performer owes its driver: one that dies before it has said it has said the other one (S2.16).

use std::{sync::Arc, thread};

use crate::run::shared::{RunMessage, Shared};

/// Said once: by the performer, or by its death in a panic. One that is dropped by the driver owes nothing.
pub(super) struct Word {
    shared: Arc<Shared>,
    at_death: Option<RunMessage>,
}

impl Word {
    /// A word that is `at_death` unless another one is said.
    pub(super) fn or(shared: &Arc<Shared>, at_death: RunMessage) -> Self {
        Self { shared: Arc::clone(shared), at_death: Some(at_death) }
    }

    pub(super) fn say(mut self, msg: RunMessage) {
        self.at_death = None;
        self.shared.post(msg);
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(msg) = self.at_death.take()
        {
            self.shared.post(msg);
        }
    }
}
