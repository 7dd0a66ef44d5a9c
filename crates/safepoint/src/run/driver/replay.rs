//! How an attempt applies the records: the run's own facts, those of its child runs, and decisions for both.

use super::{Driver, LogFailure, parent::ChildStart};
use crate::{
    run::{
        machine::CallState,
        shared::{Closing, DecideError},
    },
    sync,
    value::{
        approval::Ruled,
        history::{History, Message as Said},
        ids::ApprovalId,
        message::UserMessage,
    },
};

impl Driver {
    /// Reads the records of this run, and leaves those of its child runs to them.
    pub(super) async fn replay(&mut self) -> Result<(), LogFailure> {
        let path = &self.cx.shared.path;
        let mut runs = self.recorder.replay(&self.cx).await?;
        for recorded in runs.values().flatten() {
            self.cx.shared.tree.always.take(recorded.fact());
            self.cx.shared.tree.closings.take(recorded.fact());
        }
        for recorded in runs.remove(path).unwrap_or_default() {
            self.machine.apply(&recorded);
        }
        self.cx.shared.tree.remember(runs);
        Ok(())
    }

    /// A child run begins on its input, or resumes where it was.
    pub(super) async fn resume_child(&mut self, input: UserMessage) -> Result<Option<History>, LogFailure> {
        let entry = self.tree.entry();
        let past = self.cx.shared.tree.past_of(&self.cx.shared.path);
        if past.is_empty() && entry != ChildStart::Anew {
            // Resumed by the same attempt of the parent that began it: its records have not been read yet.
            self.replay().await?;
        }
        for recorded in past {
            self.machine.apply(&recorded);
        }
        if self.machine.attempt() > 0 {
            return Ok(None);
        }
        let mut history = History::new();
        history.push(Said::User(input));
        Ok(Some(history))
    }

    /// Leaves decisions for child runs in the tree; they are applied when those runs are resumed.
    pub(super) fn leave_to_children(&self, decisions: Vec<(ApprovalId, Ruled)>) -> Vec<(ApprovalId, Ruled)> {
        let (inside, own): (Vec<_>, Vec<_>) =
            decisions.into_iter().partition(|(id, _)| self.is_asked_below(id));
        for (id, ruled) in inside {
            self.cx.shared.tree.leave(id, (ruled, None));
        }
        own
    }

    /// Whether a run below, which resumes with this one, asked this. A run that was cut while it waited, or
    /// before it could wait again, has not reported its question to its parent: its own records have it.
    fn is_asked_below(&self, id: &ApprovalId) -> bool {
        let Some(asker) = self.cx.shared.tree.left_open_by(id) else { return false };
        self.machine.runs_to_resume().any(|call| asker.is_within(&self.cx.shared.path.of(call)))
    }

    /// Closes the questions that a stop of a run above took back, before anything else is made of them: they are asked again
    /// under new ids (S8.3).
    pub(super) async fn close_withdrawn(&mut self) -> Result<(), LogFailure> {
        let all = self.tree.entry() == ChildStart::Again { asks: true };
        if all {
            self.machine.ask_again();
        }
        for call in self.machine.open_calls() {
            let CallState::AwaitingApproval(request) = &call.step else { continue };
            // Also by the records of the tree, which hold however often this run is cut before it has asked again.
            if all || self.cx.shared.tree.closings.of(&request.id) == Some(DecideError::Withdrawn) {
                self.close(&request.id, &call.call.id, Closing::Withdrawn).await?;
            }
        }
        Ok(())
    }

    /// The questions that an earlier attempt left open: answered meanwhile, or still open.
    pub(super) async fn reopen_questions(&mut self) -> Result<(), LogFailure> {
        self.withdraw_all().await?;
        for call in self.machine.open_calls() {
            let CallState::AwaitingApproval(request) = &call.step else { continue };
            self.cx.shared.tree.asks(request, &self.cx.shared);
            let Some((ruled, reply)) = self.cx.shared.tree.take(&request.id) else {
                // Not answered yet: an approver that is available now is asked again.
                self.ask_approver_or_wait(request.clone());
                continue;
            };
            let reply = match (self.unfit(&request.id, &ruled), reply) {
                (Some(unfit), Some(reply)) => {
                    sync::reply(reply, Err(unfit));
                    self.ask_approver_or_wait(request.clone());
                    continue;
                }
                (_, reply) => reply,
            };
            let taken = self.decide(&request.id, ruled).await?;
            if let (Err(error), None) = (&taken, &reply) {
                self.not_taken(&request.id, error);
            }
            if let Some(reply) = reply {
                sync::reply(reply, taken);
            }
        }
        Ok(())
    }

    /// A decision that came with a resume was too late or about nothing: the run fails.
    pub(super) fn not_taken(&mut self, id: &ApprovalId, error: &DecideError) {
        self.fail("approval", format!("the decision on {id} was not taken: {error}"), None);
    }
}
