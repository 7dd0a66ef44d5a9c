//! The open questions of a session, and decisions on them through its handle.

use tokio::sync::oneshot;

use super::{Item, SessionHandle, mail::Mail};
use crate::{
    approval::{ApprovalRequest, Decision},
    ids::ApprovalId,
    run::HOLDER,
    shared::{DecideError, Ruled},
};

impl<T: Item> SessionHandle<T> {
    /// Answers an open question of the turn at work, of a background run, or of the suspended turn, which then goes on.
    ///
    /// # Errors
    /// [`DecideError`]: who decided before and what, that the question expired or was taken back, that nobody put it, that
    /// the store did not take the decision, or that the session has ended.
    ///
    /// # Cancel safety
    /// The decision may be taken although nobody waits for the answer.
    pub async fn decide(&self, id: &ApprovalId, decision: Decision) -> Result<(), DecideError> {
        self.decide_as(id, decision, HOLDER).await
    }

    /// The same in the name of `who`, which is kept with the decision, and which those who come later are told.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    ///
    /// # Cancel safety
    /// The decision may be taken although nobody waits for the answer.
    pub async fn decide_as(
        &self,
        id: &ApprovalId,
        decision: Decision,
        who: impl Into<String>,
    ) -> Result<(), DecideError> {
        let (reply, answer) = oneshot::channel();
        let ruled = Ruled { decision, by: who.into() };
        self.shared.mailbox.post(Mail::Decide { id: id.clone(), ruled, reply });
        answer.await.unwrap_or(Err(DecideError::RunEnded))
    }

    /// The open questions of the whole session, oldest first: of the turn at work, of the suspended one, and of background
    /// runs that go on after their turns. Each is answered by [`decide`](Self::decide). None once it has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn approvals(&self) -> Vec<ApprovalRequest> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(Mail::Questions { reply });
        answer.await.unwrap_or_default()
    }
}
