//! The message that a performer must send its driver: if it dies first, another one is sent instead (S2.16).

use std::{sync::Arc, thread};

use crate::run::shared::{RunMessage, SharedRun};

/// Sent once: by the performer, or by its death in a panic. If the driver drops the performer, nothing is
/// sent.
pub(super) struct Word {
    shared: Arc<SharedRun>,
    at_death: Option<RunMessage>,
}

impl Word {
    /// Sends `at_death` unless another message is sent first.
    pub(super) fn or(shared: &Arc<SharedRun>, at_death: RunMessage) -> Self {
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
