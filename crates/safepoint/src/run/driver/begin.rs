//! The beginning of an attempt: what it starts from, recorded, and the limits on its time.

use super::{Driver, LogFailure, Start};
use crate::value::{
    event::{Fact, RunLimits},
    history::Message,
};

impl Driver {
    pub(super) async fn open(&mut self, start: Start) -> Result<(), LogFailure> {
        let is_blank = matches!(start, Start::Blank(_));
        if let Start::Resume(_, lock) = &start {
            self.attempt.lock = lock.clone();
            if lock.is_of_a_copy() {
                self.cx.shared.tree.set_of_a_copy();
            }
        }
        self.attempt.claim()?;
        let (history, decisions, repairs) = match start {
            Start::Fresh(mut history) | Start::Blank(mut history) => {
                let repairs = history.repair();
                (Some(*history), Vec::new(), repairs)
            }
            Start::Resume(decisions, _) => {
                self.replay().await?;
                (None, self.leave_to_children(decisions), Vec::new())
            }
            Start::Child(input) => (self.resume_child(input).await?, Vec::new(), Vec::new()),
        };
        let run = self.cx.shared.run.clone();
        let attempt = self.machine.attempt() + 1;
        let (at, on_unknown) = (self.attempt.started_at, self.cx.def.on_unknown);
        let limits = Some(RunLimits::of(&self.cx.def.limits, self.cx.def.price.as_ref()));
        self.record(Fact::AttemptOpened { run, attempt, history, at, on_unknown, limits }).await?;
        self.start_clock();
        self.refuse_copied_approvals().await?;
        if !repairs.is_empty() {
            self.record(Fact::HistoryRepaired { repairs }).await?;
        }
        if let Some(flaw) = self.cx.def.flaw() {
            self.machine.fail(flaw.clone());
        }
        if is_blank || self.has_nothing_to_answer() {
            self.fail("input", "the input is blank: there is nothing to answer", None);
        }
        self.close_withdrawn().await?;
        let expired = self.expire_overdue().await?;
        for (id, ruled) in decisions {
            // A decision after the question expired is too late: the model sees the expiry (S8.5).
            if expired.contains(&id) {
                continue;
            }
            if let Err(error) = self.decide(&id, ruled).await? {
                self.not_taken(&id, &error);
            }
        }
        self.reopen_questions().await
    }

    /// Whether no model has been called yet and none could be: there is no message after the last answer.
    fn has_nothing_to_answer(&self) -> bool {
        let last = self.machine.history().entries().last();
        self.machine.rounds() == 0
            && last.is_none_or(|entry| match &**entry {
                Message::User(input) => input.is_blank(),
                Message::Assistant(_) => true,
                Message::Results { .. } => false,
            })
    }
}
