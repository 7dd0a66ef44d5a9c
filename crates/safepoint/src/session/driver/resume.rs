//! Who takes a turn up that ended early: asked of the planner where another owner began it, before anything depends on it.
//!
//! **Invariants**: a turn is taken up only with an agent in hand; one that nobody here can take up stays as it is.

use tokio::sync::oneshot;

use super::{Action, Answer, CurrentTurn, Driver, Input, Item, Request, asked::tell, plan::report};
use crate::{
    contract::approver::ApprovalMode,
    definition::OnRestart,
    session::machine::StartFrom,
    sync::{self, callback::Panicked},
};

impl<T: Item> Driver<T> {
    pub(super) async fn resume(&mut self, reply: oneshot::Sender<Answer>) {
        if self.is_foreign() {
            return tell(reply, Some(Answer::NothingToResume));
        }
        // Its questions are put once more, to whoever can be asked here; what is overdue need not wait for the clock.
        let goes_on =
            self.is_overdue() || self.turns.left.as_ref().is_some_and(|(work, _)| has_approver(work));
        let asks = self.machine.is_suspended() && goes_on;
        let input = if asks { Input::Decided } else { Input::Resume };
        match self.ask(input, Request::None).await {
            Some(Answer::Resuming) => {
                self.turns.resumers.push(reply);
                self.tell_resumers();
            }
            answer => tell(reply, answer),
        }
    }

    /// Tells whoever asked for a turn to be taken up, once it is, or nothing is about to take it up any more.
    pub(super) fn tell_resumers(&mut self) {
        if self.machine.takes_up() {
            return;
        }
        let answer = if self.machine.took_up() { Answer::Resuming } else { Answer::NothingToResume };
        for resumer in self.turns.resumers.drain(..) {
            sync::reply(resumer, answer);
        }
    }

    /// Of a stop that was asked, and is in the mail: what would begin now does not, as if the stop had been heard before.
    pub(super) fn hold_back(&mut self, effects: &mut Vec<Action>) {
        if !self.cx.shared.family.is_ending() {
            return;
        }
        let begins = effects.iter().find_map(|effect| match effect {
            Action::Start { turn, from, .. } if !matches!(from, StartFrom::Withdrawal(_)) => Some(*turn),
            _ => None,
        });
        let Some(turn) = begins else { return };
        effects.retain(|effect| !matches!(effect, Action::Start { .. }));
        let now = self.now();
        self.machine.step(now, Input::Unstarted(turn), effects);
    }

    /// All that the last owner left is known. A turn that nothing but the end of its process has cut is taken up again, if
    /// its agent opted in; a stop that was asked of it meanwhile, or of the session, was heard before this (S7.8).
    pub(super) async fn adopted(&mut self) {
        self.step(Input::Adopted).await;
        let opted_in = |work: &CurrentTurn| {
            let agent = work.agent.as_ref();
            agent.is_some_and(|agent| agent.def.on_restart == OnRestart::Resume)
        };
        if self.turns.restart.take().is_some()
            && !self.is_foreign()
            && self.turns.left.as_ref().is_some_and(|(work, _)| opted_in(work))
        {
            self.step(Input::Resume).await;
        }
    }

    /// Whether another owner left the turn, and the planner knows nobody here who could go on with it.
    pub(super) fn is_foreign(&mut self) -> bool {
        // One that panics is met where that is an account.
        matches!(self.agent_of_left(), Ok(false))
    }

    /// Makes sure of an agent for the turn that was left; false if there is none here.
    fn agent_of_left(&mut self) -> Result<bool, Panicked> {
        let Some((work, _)) = &mut self.turns.left else { return Ok(true) };
        if work.agent.is_none() {
            let (planner, turn) = (&self.cx.settings.planner, work.turn);
            work.agent = planner.call(|planner| planner.resumes(turn))?;
        }
        Ok(work.agent.is_some())
    }

    /// A turn that nobody here can take up does not begin: the session ends, with the turn as it was.
    pub(super) fn find_agent(&mut self, effects: &mut Vec<Action>) {
        let taken_up = effects.iter().find_map(|effect| match effect {
            Action::Start { turn, from, .. } if *from != StartFrom::Plan => Some(*turn),
            _ => None,
        });
        let Some(turn) = taken_up else { return };
        let why = match self.agent_of_left() {
            Ok(true) => return,
            Ok(false) => "it knows no agent for a turn that another process began".to_owned(),
            Err(Panicked(why)) => why,
        };
        self.fail(report("the planner could not take a turn up", &why));
        effects.retain(|effect| !matches!(effect, Action::Start { .. }));
        let now = self.now();
        self.machine.step(now, Input::Broke, effects);
        self.machine.step(now, Input::Unstarted(turn), effects);
        // A stop that was meant for its run has nobody to reach.
        effects.retain(|effect| !matches!(effect, Action::StopRun { .. }));
    }
}

/// Whether somebody can be asked where the turn goes on.
fn has_approver(work: &CurrentTurn) -> bool {
    let approvals = work.agent.as_ref().map(|agent| &agent.def.approvals);
    matches!(approvals, Some(ApprovalMode::Ask(Some(_), _)))
}
