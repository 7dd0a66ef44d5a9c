//! Answers to those who may have ceased to wait.

use tokio::sync::oneshot;

/// Answers whoever waits; one that waits no more loses nothing but the answer.
pub(crate) fn reply<T>(to: oneshot::Sender<T>, answer: T) {
    if to.send(answer).is_err() {
        // The caller has dropped its end: what was done stays done.
    }
}
