//! The message that a performer must send its driver: if it dies first, another one is sent instead (S2.16).

use std::{sync::Arc, thread};

use crate::run::shared::{RunMessage, SharedRun};

/// Sent once: by the performer, or by its death in a panic. If the driver drops the performer, nothing is
/// sent.
pub(super) struct PromisedMessage<P: FnOnce() -> RunMessage> {
    shared: Arc<SharedRun>,
    /// Makes the message of a performer that dies; made only then.
    on_panic: Option<P>,
}

impl<P: FnOnce() -> RunMessage> PromisedMessage<P> {
    /// Sends what `on_panic` makes unless another message is sent first.
    pub(super) fn new(shared: &Arc<SharedRun>, on_panic: P) -> Self {
        Self { shared: Arc::clone(shared), on_panic: Some(on_panic) }
    }

    pub(super) fn send(mut self, msg: RunMessage) {
        self.on_panic = None;
        self.shared.post(msg);
    }
}

impl<P: FnOnce() -> RunMessage> Drop for PromisedMessage<P> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(on_panic) = self.on_panic.take()
        {
            self.shared.post(on_panic());
        }
    }
}
