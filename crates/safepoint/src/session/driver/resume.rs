//! Resuming a turn that ended early. If another owner began it, the planner names the agent before anything
//! depends on it.
//!
//! **Invariants**: a turn resumes only with a known agent; a turn that this process cannot resume stays as it
//! is.

use super::{
    Action, CurrentTurn, Driver, Input, Item, Reply, Request, RequestAnswer, TurnId, report,
    stops::answer_caller,
};
use crate::{
    contract::approver::ApprovalMode,
    definition::OnRestart,
    session::{journal::InheritedTurn, machine::StartFrom},
    sync::{self, callback::Panicked},
};

impl<T: Item> Driver<T> {
    pub(super) async fn resume(&mut self, reply: Reply<RequestAnswer>) {
        if self.lacks_agent() {
            return answer_caller(reply, Some(RequestAnswer::NothingToResume));
        }
        // The approver here gets the turn's questions again; overdue ones do not wait for the clock.
        let has_answers =
            self.is_overdue() || self.turns.left.as_ref().is_some_and(|(work, _)| has_approver(work));
        let asks = self.machine.is_suspended() && has_answers;
        let input = if asks { Input::Decided } else { Input::Resume };
        match self.step_with(input, Request::None).await {
            Some(RequestAnswer::Resuming) => {
                self.turns.resumers.push(reply);
                self.answer_resumers();
            }
            answer => answer_caller(reply, answer),
        }
    }

    /// Answers callers that asked to resume a turn, once it is resumed or nothing is left to resume it.
    pub(super) fn answer_resumers(&mut self) {
        if self.machine.is_about_to_resume() {
            return;
        }
        let answer =
            if self.machine.has_resumed() { RequestAnswer::Resuming } else { RequestAnswer::NothingToResume };
        for resumer in self.turns.resumers.drain(..) {
            sync::reply(resumer, answer);
        }
    }

    /// A stop was requested and is in the mailbox. What would begin now does not begin, as if the stop had
    /// been handled first.
    pub(super) fn hold_back_start(&mut self, actions: &mut Vec<Action>) {
        // This check is where a turn begins. A stop that comes after it, while the beginning is being
        // recorded, finds a turn that has begun: at the turn's end it waits for that turn, and otherwise the
        // demand of the scope above all runs reaches its run.
        if !self.cx.shared.runs.is_ending() {
            return;
        }
        if let Some((turn, from)) = started(actions)
            && !matches!(from, StartFrom::Withdrawal(_))
        {
            self.take_start_back(turn, actions);
        }
    }

    /// The turn does not begin: nothing of it happened.
    pub(super) fn take_start_back(&mut self, turn: TurnId, actions: &mut Vec<Action>) {
        actions.retain(|action| !matches!(action, Action::Start { .. }));
        self.machine.step(self.now(), Input::Unstarted(turn), actions);
    }

    /// Everything that the last owner left has arrived. A turn that was cut only by the end of its process is
    /// resumed, if its agent opted in. A stop of that turn or of the session that was requested meanwhile was
    /// handled before this (S7.8).
    pub(super) async fn inherited(&mut self) {
        self.step(Input::Inherited).await;
        let opted_in = |work: &CurrentTurn| {
            let agent = work.agent.as_ref();
            agent.is_some_and(|agent| agent.def.on_restart == OnRestart::Resume)
        };
        if std::mem::take(&mut self.turns.inherited) == InheritedTurn::CutOff
            && !self.lacks_agent()
            && self.turns.left.as_ref().is_some_and(|(work, _)| opted_in(work))
        {
            self.step(Input::Resume).await;
        }
    }

    /// Whether another owner left the turn and the planner names no agent that can resume it.
    pub(super) fn lacks_agent(&mut self) -> bool {
        // A panicking planner is handled where it can be reported.
        matches!(self.find_agent_of_left(), Ok(false))
    }

    /// Finds the agent of the turn that was left; false if this process has none.
    fn find_agent_of_left(&mut self) -> Result<bool, Panicked> {
        let Some((work, _)) = &mut self.turns.left else { return Ok(true) };
        if work.agent.is_none() {
            let (planner, turn) = (&self.cx.shared.planner, work.turn);
            work.agent = planner.call(|planner| planner.resumes(turn))?;
        }
        Ok(work.agent.is_some())
    }

    /// A turn that this process cannot resume does not begin: the session ends, and the turn stays as it was.
    pub(super) fn require_agent(&mut self, actions: &mut Vec<Action>) {
        let Some((turn, _)) = started(actions).filter(|(_, from)| *from != StartFrom::Plan) else { return };
        let why = match self.find_agent_of_left() {
            Ok(true) => return,
            Ok(false) => "it knows no agent for a turn that another process began".to_owned(),
            Err(Panicked(why)) => why,
        };
        self.fail(report("the planner could not take a turn up", &why));
        self.machine.step(self.now(), Input::Broke, actions);
        self.take_start_back(turn, actions);
        // A stop of its run has no run to reach.
        actions.retain(|action| !matches!(action, Action::StopRun(..)));
    }
}

/// The turn that these actions start, and from what.
pub(super) fn started(actions: &[Action]) -> Option<(TurnId, StartFrom)> {
    actions.iter().find_map(|action| match action {
        Action::Start { turn, from, .. } => Some((*turn, *from)),
        _ => None,
    })
}

/// Whether the resumed turn has an approver.
fn has_approver(work: &CurrentTurn) -> bool {
    let approvals = work.agent.as_ref().map(|agent| &agent.def.approvals);
    matches!(approvals, Some(ApprovalMode::Ask(Some(_), _)))
}
