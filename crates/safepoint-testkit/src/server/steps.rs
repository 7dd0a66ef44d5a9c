//! The connection's end of an exchange that a test drives.

use tokio::sync::{mpsc, oneshot};

use super::render::WireStep;

/// The connection's end of a gate.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) steps: mpsc::UnboundedReceiver<WireStep>,
    pub(super) arrived: Option<oneshot::Sender<usize>>,
}

impl Steps {
    pub(super) fn arrived(&mut self, id: usize) {
        if let Some(arrived) = self.arrived.take()
            && arrived.send(id).is_err()
        {
            // The gate was dropped: the next step closes the connection.
        }
    }

    pub(super) async fn next(&mut self) -> Option<WireStep> {
        self.steps.recv().await
    }
}
