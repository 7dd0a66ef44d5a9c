//! Decisions on open questions: passed to the active run, or kept for the suspended one, which then resumes.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::oneshot;

use super::{
    Decision, Driver, Input, Item, Outcome, Request, RequestAnswer, RunHandle, SessionMessage,
    expiry::Overdue,
};
use crate::{
    contract::store,
    run::shared::{AllowList, Closings, DecideError},
    session::journal::{Journal, in_time},
    sync,
    value::{
        approval::{HOLDER, Ruled},
        ids::ApprovalId,
    },
};

/// Open questions, and decisions about them.
#[derive(Default)]
pub(super) struct OpenApprovals {
    /// For the turn that was left, until it is resumed.
    pub(super) decisions: Vec<(ApprovalId, Decision)>,
    /// Calls that may run without a further question.
    pub(super) allowed: Arc<AllowList>,
    /// How questions were closed, where no store knows it.
    pub(super) closings: Arc<Closings>,
    /// The open questions of the turn that another owner left.
    pub(super) open: HashSet<ApprovalId>,
    /// When the open questions of the suspended turn are to be looked at.
    pub(super) overdue: Option<Overdue>,
}

impl<T: Item> Driver<T> {
    pub(super) async fn decide(
        &mut self,
        id: ApprovalId,
        ruled: Ruled,
        reply: oneshot::Sender<Result<(), DecideError>>,
    ) {
        if let Some(journal) = self.recorder.journal.clone() {
            // The store accepts exactly one decision, from whichever process; afterwards the decision is
            // handled as if it came from the store.
            let taken = take(&journal, &id, &ruled).await;
            let is_taken = taken.is_ok();
            answer(reply, taken);
            if is_taken {
                self.apply_decision(id, ruled.decision).await;
            }
            return;
        }
        if let Some(closed) = self.approvals.closings.of(&id) {
            answer(reply, Err(closed));
            return;
        }
        if let Some(run) = self.background_run_that_asked(&id) {
            drop(self.cx.scope.spawn("decision", async move {
                answer(reply, run.decide(&id, ruled).await);
            }));
            return;
        }
        if let Some(handle) = self.turns.current.as_ref().and_then(|work| work.handle.clone()) {
            let mailbox = self.cx.shared.mailbox.clone();
            drop(self.cx.scope.spawn("decision", async move {
                match handle.decide(&id, ruled.clone()).await {
                    // The run may have suspended on this very question: retried once the suspension is
                    // handled.
                    Err(DecideError::RunEnded) => {
                        drop(handle.done().await);
                        mailbox.post(SessionMessage::Decide { id, ruled, reply });
                    }
                    taken => answer(reply, taken),
                }
            }));
            return;
        }
        let taken = self.decide_suspended(id, ruled).await;
        answer(reply, taken);
    }

    async fn decide_suspended(&mut self, id: ApprovalId, ruled: Ruled) -> Result<(), DecideError> {
        let is_asked = match self.turns.left.as_ref().and_then(|(work, _)| work.outcome.as_ref()) {
            Some(Outcome::Suspended(waiting)) => waiting.approvals().iter().any(|asked| asked.id == id),
            _ => false,
        };
        if let Some((_, decision)) = self.approvals.decisions.iter().find(|(decided, _)| *decided == id) {
            return Err(DecideError::Decided { by: HOLDER.into(), decision: Box::new(decision.clone()) });
        }
        if !is_asked {
            return Err(DecideError::Unknown);
        }
        // The step may resume the turn; the decision goes with it if it is accepted.
        match self.ask(Input::Decided, Request::Decide(Box::new((id, ruled.decision)))).await {
            Some(RequestAnswer::Resuming) => Ok(()),
            Some(RequestAnswer::TooLate) => Err(DecideError::RunEnded),
            // The turn is about to end, and its question with it.
            _ => Err(DecideError::Withdrawn),
        }
    }

    /// The run of an earlier turn whose background run asked this question.
    pub(super) fn background_run_that_asked(&self, id: &ApprovalId) -> Option<RunHandle> {
        self.turns.background.iter().find(|run| run.waits_below(id)).cloned()
    }

    /// Whether the turn that ended early may have asked this question. A decision for a background run
    /// arrives twice, from the caller here and from the store, and is not about this turn.
    async fn may_be_of_the_left_turn(&mut self, id: &ApprovalId) -> bool {
        match self.turns.left.as_ref().map(|(work, _)| work.outcome.as_ref()) {
            Some(Some(Outcome::Suspended(waiting))) => {
                waiting.approvals().iter().any(|asked| asked.id == *id)
            }
            // Another owner left the turn: its open questions are known since the session was opened.
            Some(None) => self.approvals.open.contains(id),
            // A failure leaves questions open, including those of the runs below.
            Some(Some(Outcome::Failed(_))) => self.is_of_the_left_run(id).await,
            Some(Some(Outcome::Done(_) | Outcome::Stopped(_))) | None => false,
        }
    }

    async fn is_of_the_left_run(&mut self, id: &ApprovalId) -> bool {
        let (Some(journal), Some((left, _))) = (&self.recorder.journal, &self.turns.left) else {
            return false;
        };
        let row = in_time(journal.store().approval(journal.session(), id)).await;
        matches!(row, Ok(Some(row)) if row.asked.run == left.run)
    }

    /// Applies a decision that was accepted.
    pub(super) async fn apply_decision(&mut self, id: ApprovalId, decision: Decision) {
        if let Some(run) = self.background_run_that_asked(&id) {
            drop(self.cx.scope.spawn("decision", async move {
                if run.decide(&id, decision).await.is_err() {
                    // The run has ended meanwhile, and its question was withdrawn.
                }
            }));
            return;
        }
        if let Some(handle) = self.turns.current.as_ref().and_then(|work| work.handle.clone()) {
            let mailbox = self.cx.shared.mailbox.clone();
            drop(self.cx.scope.spawn("decision", async move {
                // A run that is about to suspend resumes with this decision once it has suspended.
                if handle.decide(&id, decision.clone()).await == Err(DecideError::RunEnded) {
                    drop(handle.done().await);
                    mailbox.post(SessionMessage::Decided { id, decision });
                }
            }));
            return;
        }
        // If this process cannot resume the turn, the decision stays in the store for a process that can.
        if !self.may_be_of_the_left_turn(&id).await
            || self.is_foreign()
            || self.approvals.decisions.iter().any(|(decided, _)| *decided == id)
        {
            return;
        }
        if self.machine.is_suspended() {
            self.ask(Input::Decided, Request::Decide(Box::new((id, decision)))).await;
        } else {
            // The turn was cut while it waited: the decision is used when the turn is resumed.
            self.approvals.decisions.push((id, decision));
        }
    }
}

async fn take(journal: &Arc<Journal>, id: &ApprovalId, ruled: &Ruled) -> Result<(), DecideError> {
    let lost = |error: store::Error| DecideError::NotRecorded(error.to_string());
    let (store, session) = (journal.store(), journal.session());
    let row = in_time(store.approval(session, id)).await.map_err(lost)?.ok_or(DecideError::Unknown)?;
    let bytes = serde_json::to_vec(&ruled.decision).unwrap_or_default();
    let (id, principal) = (id.clone(), ruled.by.clone());
    let decision = store::NewDecision { id, digest: row.asked.digest, principal, bytes };
    match in_time(store.decide(session, decision)).await.map_err(lost)? {
        store::DecisionResult::Taken => Ok(()),
        store::DecisionResult::AlreadyDecided { principal: by, bytes, .. } => {
            let unread = |error| format!("the decision of {by} cannot be read: {error}");
            let decision = serde_json::from_slice(&bytes);
            let decision = decision.map_err(|error| DecideError::NotRecorded(unread(error)))?;
            Err(DecideError::Decided { by, decision })
        }
        store::DecisionResult::Expired => Err(DecideError::Expired),
        store::DecisionResult::Withdrawn => Err(DecideError::Withdrawn),
        // The decision refers to the question's own row, so it cannot be about anything else.
        store::DecisionResult::OtherArguments { .. } | store::DecisionResult::Unknown => {
            Err(DecideError::Unknown)
        }
    }
}

fn answer(reply: oneshot::Sender<Result<(), DecideError>>, answer: Result<(), DecideError>) {
    sync::reply(reply, answer);
}
