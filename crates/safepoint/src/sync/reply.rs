//! Answers to callers that may no longer wait.

use tokio::sync::oneshot;

/// Sends the answer to a caller; one that no longer waits loses only the answer.
pub(crate) fn reply<T>(to: oneshot::Sender<T>, answer: T) {
    if to.send(answer).is_err() {
        // The caller has dropped its receiver: what was done stays done.
    }
}
