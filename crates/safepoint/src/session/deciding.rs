//! The open questions of a session, and decisions on them through its handle.

use tokio::sync::oneshot;

use super::{Item, SessionHandle, mail::SessionMessage};
use crate::{
    run::shared::DecideError,
    value::{
        approval::{ApprovalRequest, Ruled},
        ids::ApprovalId,
    },
};

impl<T: Item> SessionHandle<T> {
    /// Answers an open question of the current turn, of a background run, or of the suspended turn, which
    /// then resumes. The decision may name [who made it](crate::approval::Decision::by).
    ///
    /// # Errors
    /// [`DecideError`]: the question was already decided, has expired, was withdrawn or is unknown; the store
    /// did not accept the decision; or the session has ended.
    ///
    /// # Cancel safety
    /// The decision may be applied even if the caller no longer waits for the answer.
    pub async fn decide(&self, id: &ApprovalId, ruled: impl Into<Ruled>) -> Result<(), DecideError> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Decide { id: id.clone(), ruled: ruled.into(), reply });
        answer.await.unwrap_or(Err(DecideError::RunEnded))
    }

    /// The open questions of the whole session, oldest first: those of the current turn, of the suspended
    /// turn, and of background runs that outlive their turns. Each is answered by [`decide`](Self::decide).
    /// Empty once the session has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn approvals(&self) -> Vec<ApprovalRequest> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Questions { reply });
        answer.await.unwrap_or_default()
    }
}
