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
    /// Answers an open question of the turn at work, of a background run, or of the suspended turn, which then goes on;
    /// perhaps [in somebody's name](crate::approval::Decision::by).
    ///
    /// # Errors
    /// [`DecideError`]: who decided before and what, that the question expired or was taken back, that nobody put it, that
    /// the store did not take the decision, or that the session has ended.
    ///
    /// # Cancel safety
    /// The decision may be taken although nobody waits for the answer.
    pub async fn decide(&self, id: &ApprovalId, ruled: impl Into<Ruled>) -> Result<(), DecideError> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Decide { id: id.clone(), ruled: ruled.into(), reply });
        answer.await.unwrap_or(Err(DecideError::RunEnded))
    }

    /// The open questions of the whole session, oldest first: of the turn at work, of the suspended one, and of background
    /// runs that go on after their turns. Each is answered by [`decide`](Self::decide). None once it has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn approvals(&self) -> Vec<ApprovalRequest> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Questions { reply });
        answer.await.unwrap_or_default()
    }
}
