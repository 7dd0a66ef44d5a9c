//! The message that a performer must send its driver: if it dies first, another one is sent instead (S2.16).

use std::{sync::Arc, thread};

use crate::run::shared::{RunMessage, SharedRun};

/// Sent once: by the performer, or by its death in a panic. If the driver drops the performer, nothing is
/// sent.
pub(super) struct PromisedMessage {
    shared: Arc<SharedRun>,
    on_panic: Option<RunMessage>,
}

impl PromisedMessage {
    /// Sends `on_panic` unless another message is sent first.
    pub(super) fn new(shared: &Arc<SharedRun>, on_panic: RunMessage) -> Self {
        Self { shared: Arc::clone(shared), on_panic: Some(on_panic) }
    }

    pub(super) fn send(mut self, msg: RunMessage) {
        self.on_panic = None;
        self.shared.post(msg);
    }
}

impl Drop for PromisedMessage {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(msg) = self.on_panic.take()
        {
            self.shared.post(msg);
        }
    }
}
