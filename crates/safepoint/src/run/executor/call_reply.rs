//! Where the answer to a question of a running call goes.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::CallBoard;
use crate::value::approval::Decision;

/// Where the answer to a question of a running call goes. While it exists the call's time stands.
pub(crate) struct CallReply {
    to: Option<oneshot::Sender<Decision>>,
    board: Arc<CallBoard>,
}

impl CallReply {
    pub(crate) fn new(to: oneshot::Sender<Decision>, board: &Arc<CallBoard>) -> Self {
        board.waits.begin();
        Self { to: Some(to), board: Arc::clone(board) }
    }

    /// Whether the call no longer waits for the answer.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.to.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    pub(crate) fn give(mut self, decision: Decision) {
        if self.to.take().is_some_and(|to| to.send(decision).is_err()) {
            // The call has ended, or withdrew its question: the decision has no effect.
        }
    }
}

impl Drop for CallReply {
    fn drop(&mut self) {
        self.board.waits.end();
    }
}
