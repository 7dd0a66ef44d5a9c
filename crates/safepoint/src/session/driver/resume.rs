//! Resuming a turn that ended early. If another owner began it, the planner names the agent before anything
//! depends on it.
//!
//! **Invariants**: a turn resumes only with a known agent; a turn that this process cannot resume stays as it
//! is.

use super::{
    Action, CurrentTurn, Driver, Input, Item, Reply, Request, RequestAnswer, TurnId, report, stops::tell,
};
use crate::{
    contract::approver::ApprovalMode,
    definition::OnRestart,
    session::machine::StartFrom,
    sync::{self, callback::Panicked},
};

impl<T: Item> Driver<T> {
    pub(super) async fn resume(&mut self, reply: Reply<RequestAnswer>) {
        if self.is_foreign() {
            return tell(reply, Some(RequestAnswer::NothingToResume));
        }
        // The approver here gets the turn's questions again; overdue ones do not wait for the clock.
        let goes_on =
            self.is_overdue() || self.turns.left.as_ref().is_some_and(|(work, _)| has_approver(work));
        let asks = self.machine.is_suspended() && goes_on;
        let input = if asks { Input::Decided } else { Input::Resume };
        match self.ask(input, Request::None).await {
            Some(RequestAnswer::Resuming) => {
                self.turns.resumers.push(reply);
                self.tell_resumers();
            }
            answer => tell(reply, answer),
        }
    }

    /// Answers callers that asked to resume a turn, once it is resumed or nothing is left to resume it.
    pub(super) fn tell_resumers(&mut self) {
        if self.machine.takes_up() {
            return;
        }
        let answer =
            if self.machine.took_up() { RequestAnswer::Resuming } else { RequestAnswer::NothingToResume };
        for resumer in self.turns.resumers.drain(..) {
            sync::reply(resumer, answer);
        }
    }

    /// A stop was requested and is in the mailbox. What would begin now does not begin, as if the stop had
    /// been handled first.
    pub(super) fn hold_back(&mut self, effects: &mut Vec<Action>) {
        // This check is where a turn begins. A stop that comes after it, while the beginning is being
        // recorded, finds a turn that has begun: at the turn's end it waits for that turn, and otherwise the
        // demand of the family reaches its run.
        if !self.cx.shared.family.is_ending() {
            return;
        }
        if let Some((turn, from)) = started(effects)
            && !matches!(from, StartFrom::Withdrawal(_))
        {
            self.take_start_back(turn, effects);
        }
    }

    /// The turn does not begin: nothing of it happened.
    pub(super) fn take_start_back(&mut self, turn: TurnId, effects: &mut Vec<Action>) {
        effects.retain(|effect| !matches!(effect, Action::Start { .. }));
        self.machine.step(self.now(), Input::Unstarted(turn), effects);
    }

    /// Everything that the last owner left has arrived. A turn that was cut only by the end of its process is
    /// resumed, if its agent opted in. A stop of that turn or of the session that was requested meanwhile was
    /// handled before this (S7.8).
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

    /// Whether another owner left the turn and the planner names no agent that can resume it.
    pub(super) fn is_foreign(&mut self) -> bool {
        // A panicking planner is handled where it can be reported.
        matches!(self.agent_of_left(), Ok(false))
    }

    /// Finds the agent of the turn that was left; false if this process has none.
    fn agent_of_left(&mut self) -> Result<bool, Panicked> {
        let Some((work, _)) = &mut self.turns.left else { return Ok(true) };
        if work.agent.is_none() {
            let (planner, turn) = (&self.cx.settings.planner, work.turn);
            work.agent = planner.call(|planner| planner.resumes(turn))?;
        }
        Ok(work.agent.is_some())
    }

    /// A turn that this process cannot resume does not begin: the session ends, and the turn stays as it was.
    pub(super) fn find_agent(&mut self, effects: &mut Vec<Action>) {
        let Some((turn, _)) = started(effects).filter(|(_, from)| *from != StartFrom::Plan) else { return };
        let why = match self.agent_of_left() {
            Ok(true) => return,
            Ok(false) => "it knows no agent for a turn that another process began".to_owned(),
            Err(Panicked(why)) => why,
        };
        self.fail(report("the planner could not take a turn up", &why));
        self.machine.step(self.now(), Input::Broke, effects);
        self.take_start_back(turn, effects);
        // A stop of its run has no run to reach.
        effects.retain(|effect| !matches!(effect, Action::StopRun(..)));
    }
}

/// The turn that these actions start, and from what.
pub(super) fn started(effects: &[Action]) -> Option<(TurnId, StartFrom)> {
    effects.iter().find_map(|effect| match effect {
        Action::Start { turn, from, .. } => Some((*turn, *from)),
        _ => None,
    })
}

/// Whether the resumed turn has an approver.
fn has_approver(work: &CurrentTurn) -> bool {
    let approvals = work.agent.as_ref().map(|agent| &agent.def.approvals);
    matches!(approvals, Some(ApprovalMode::Ask(Some(_), _)))
}
