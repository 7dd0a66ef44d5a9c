//! A turn from its plan to its end.

use super::{
    Action, EarlyTurn, Machine, PendingStart, PlanRequest, PlanResult, Running, SessionPhase, StartFrom,
    StopWhy, TurnEnd,
};
use crate::{
    session::{
        machine::{OnTurnFailure, PreemptedItems},
        outcome::{ItemOutcome, PreemptOutcome},
    },
    value::ids::{ItemId, TurnId},
};

impl Machine {
    /// Resumes the turn that ended early, if that is wanted. The planner is asked for a resume, not for a
    /// decision.
    pub(super) fn resume_if_wanted(&mut self, out: &mut Vec<Action>) -> bool {
        let from = match std::mem::replace(&mut self.want, PendingStart::Nothing) {
            PendingStart::Nothing => return false,
            PendingStart::Resume => {
                self.ask_planner(PlanRequest::Resume, out);
                return true;
            }
            PendingStart::Decision => StartFrom::Decision,
            PendingStart::Withdrawal(why, asked_at) => {
                let started = self.start_left(StartFrom::Withdrawal(why), out);
                if let SessionPhase::Running(running) = &mut self.phase {
                    running.stopped_at = (why == StopWhy::Asked).then_some(asked_at);
                }
                return started;
            }
        };
        self.start_left(from, out)
    }

    fn start_left(&mut self, from: StartFrom, out: &mut Vec<Action>) -> bool {
        let Some(left) = self.left.take() else { return false };
        self.items = left.items;
        self.start(left.turn, from, out);
        true
    }

    /// Asks the planner, if there is something to plan.
    pub(super) fn plan(&mut self, out: &mut Vec<Action>) -> bool {
        let fresh = match self.barrier {
            None => !self.waiting.is_empty(),
            Some(barrier) => self.waiting.back().is_some_and(|item| *item >= barrier),
        };
        if !fresh || self.is_suspended() {
            return false;
        }
        self.ask_planner(PlanRequest::Any, out);
        true
    }

    fn ask_planner(&mut self, wanted: PlanRequest, out: &mut Vec<Action>) {
        self.plans += 1;
        self.phase = SessionPhase::Planning { plan: self.plans, wanted, asked_before: None };
        out.push(Action::Gather(self.plans));
    }

    /// What was accepted before the plan was wanted is here: the planner is asked about all of it.
    pub(super) fn gathered(&mut self, number: u64, out: &mut Vec<Action>) {
        let left = self.left();
        let SessionPhase::Planning { plan, wanted, asked_before: asked @ None } = &mut self.phase else {
            return;
        };
        if *plan != number {
            return;
        }
        *asked = Some(self.next_item);
        let waiting = self.waiting.iter().copied().collect();
        out.push(Action::Plan { plan: number, waiting, left, wanted: *wanted });
    }

    /// Before which item the planner that makes this plan has seen everything.
    fn planned_with(&self, number: u64) -> Option<ItemId> {
        match self.phase {
            SessionPhase::Planning { plan, asked_before, .. } if plan == number => asked_before,
            _ => None,
        }
    }

    pub(crate) fn is_planning(&self, number: u64) -> bool {
        self.planned_with(number).is_some()
    }

    /// Stops asking, to ask again: a resume that was promised still holds.
    pub(super) fn plan_anew(&mut self, out: &mut Vec<Action>) {
        if let SessionPhase::Planning { wanted: PlanRequest::Resume, .. } = self.phase {
            self.want = PendingStart::Resume;
        }
        self.drop_plan(out);
    }

    /// Stops asking; queued items keep waiting.
    pub(super) fn drop_plan(&mut self, out: &mut Vec<Action>) {
        if let SessionPhase::Planning { .. } = self.phase {
            self.phase = SessionPhase::Idle;
            out.push(Action::DropPlan);
        }
    }

    pub(super) fn planned(&mut self, plan: u64, made: &PlanResult, out: &mut Vec<Action>) {
        let Some(seen) = self.planned_with(plan) else { return };
        if self.wrong_item(made).is_some() {
            return self.broke(out);
        }
        self.phase = SessionPhase::Idle;
        match made {
            PlanResult::Resume if self.start_left(StartFrom::Resume, out) => {}
            // What the planner has seen begins nothing by itself; what it has not seen does.
            PlanResult::Resume | PlanResult::Wait => self.barrier = Some(seen),
            PlanResult::Turn { take, drop } => {
                let taken = self.take(take);
                for item in self.take(drop) {
                    out.push(Action::Settle(item, ItemOutcome::Dropped));
                }
                if taken.is_empty() {
                    self.barrier = Some(seen);
                    return;
                }
                self.before_turn.0 = self.left.take();
                self.items = taken;
                self.turns += 1;
                self.start(TurnId::new(self.turns), StartFrom::Plan, out);
            }
        }
    }

    /// Those of them that wait, which wait no more.
    fn take(&mut self, wanted: &[ItemId]) -> Vec<ItemId> {
        let mut taken = Vec::with_capacity(wanted.len());
        for item in wanted {
            if let Ok(index) = self.waiting.binary_search(item) {
                self.waiting.remove(index);
                taken.push(*item);
            }
        }
        taken
    }

    fn start(&mut self, turn: TurnId, from: StartFrom, out: &mut Vec<Action>) {
        let is_protected =
            self.streak >= self.rules.max_preempted && !matches!(from, StartFrom::Withdrawal(_));
        let forgets = self.preempts.iter().any(|preempt| preempt.is_asked() && preempt.spec.forgets);
        self.before_turn.1 = self.barrier.take();
        self.phase = SessionPhase::Running(Running {
            turn,
            is_protected,
            has_session_stop: false,
            stopped_at: None,
            forgets,
            from,
            is_read: false,
        });
        let steers = self.steering.iter().map(|(item, when, _)| (*item, *when)).collect();
        out.push(Action::Start { turn, from, steers });
    }

    /// The turn's outcome is fixed: everything in it is settled, or waits with it.
    pub(super) fn settled(&mut self, turn: TurnId, end: TurnEnd, out: &mut Vec<Action>) {
        let SessionPhase::Running(running) = self.phase else { return };
        if running.turn != turn {
            return;
        }
        self.before_turn = (None, None);
        let fate = self.outcome_of(running, end);
        self.phase = SessionPhase::Ending { turn, is_quiet: false, is_read: running.is_read };
        if let ItemOutcome::Suspended(_) = fate {
            self.suspend(running, out);
        } else {
            self.return_steers(out);
            self.close_turn(running, fate, end, out);
        }
        out.push(Action::TurnEnded(turn, fate));
        // The remaining steers still belong to the turn: its next model request includes them, however it
        // resumes.
        out.extend(self.steering.iter().map(|(item, ..)| Action::Held(turn, *item)));
    }

    /// S6.11: a failure is a failure; a natural end that came first is complete; a stop of the session
    /// interrupts, whatever else was requested; and only a preempt alone preempts.
    pub(super) fn outcome_of(&self, running: Running, end: TurnEnd) -> ItemOutcome {
        let turn = running.turn;
        let is_preempted = self.preempts.iter().any(super::Preempt::is_asked);
        match end {
            TurnEnd::Done => ItemOutcome::Completed(turn),
            TurnEnd::Failed => ItemOutcome::Failed(turn),
            TurnEnd::Suspended => ItemOutcome::Suspended(turn),
            TurnEnd::Stopped | TurnEnd::Preempted(_) if running.has_session_stop => {
                ItemOutcome::Interrupted(turn)
            }
            TurnEnd::Preempted(_) if is_preempted && running.forgets => ItemOutcome::RolledBack(turn),
            TurnEnd::Preempted(_) if is_preempted => ItemOutcome::Preempted(turn),
            TurnEnd::Stopped | TurnEnd::Preempted(_) => ItemOutcome::Interrupted(turn),
        }
    }

    /// It waits for a decision; requests to stop it that did not get through do so now.
    fn suspend(&mut self, running: Running, out: &mut Vec<Action>) {
        let items = std::mem::take(&mut self.items);
        for item in &items {
            out.push(Action::Settle(*item, ItemOutcome::Suspended(running.turn)));
        }
        self.left = Some(Box::new(EarlyTurn { turn: running.turn, items, is_suspended: true }));
        self.preempts.iter_mut().for_each(super::Preempt::ask_if_held);
        if self.preempts.iter().any(super::Preempt::is_asked) {
            self.want =
                PendingStart::Withdrawal(StopWhy::Preempt { points: None, grace: None }, self.next_item);
        } else if let Some(asked_at) = running.stopped_at {
            self.want = PendingStart::Withdrawal(StopWhy::Asked, asked_at);
        }
    }

    fn close_turn(&mut self, running: Running, fate: ItemOutcome, end: TurnEnd, out: &mut Vec<Action>) {
        let turn = running.turn;
        let was_wanted = !self.preempts.is_empty();
        let resolved = match fate {
            ItemOutcome::Preempted(_) | ItemOutcome::RolledBack(_) => PreemptOutcome::StoppedTurn(turn),
            ItemOutcome::Interrupted(_) if running.has_session_stop => PreemptOutcome::SupersededByStop,
            _ => PreemptOutcome::TurnEndedFirst,
        };
        for preempt in self.preempts.drain(..) {
            out.push(preempt.resolved(resolved));
        }
        let requeues =
            matches!(fate, ItemOutcome::Preempted(_)) && end == TurnEnd::Preempted(PreemptedItems::Requeue);
        let items = std::mem::take(&mut self.items);
        for item in &items {
            if requeues {
                self.wait_again(*item);
                out.push(Action::Requeued(*item));
            } else {
                out.push(Action::Settle(*item, fate));
            }
        }
        self.barrier = match fate {
            // A preempting item takes the next turn.
            _ if was_wanted => None,
            ItemOutcome::Interrupted(_) => Some(running.stopped_at.unwrap_or(self.next_item)),
            ItemOutcome::Failed(_) if self.rules.on_failure == OnTurnFailure::Wait => Some(self.next_item),
            _ => None,
        };
        let preempted = matches!(fate, ItemOutcome::Preempted(_) | ItemOutcome::RolledBack(_));
        self.streak = if preempted && !running.is_protected { self.streak + 1 } else { 0 };
        let may_resume = fate.is_open() && !requeues;
        self.left = may_resume.then(|| Box::new(EarlyTurn { turn, items, is_suspended: false }));
        if let ItemOutcome::RolledBack(turn) = fate {
            out.push(Action::Forget(turn));
        }
    }

    pub(super) fn quiet(&mut self, turn: TurnId) {
        if let SessionPhase::Ending { turn: ended, is_quiet, .. } = &mut self.phase
            && *ended == turn
        {
            *is_quiet = true;
        }
    }

    /// A reader may return before its turn has ended.
    pub(super) fn read(&mut self, turn: TurnId) {
        match &mut self.phase {
            SessionPhase::Running(Running { turn: followed, is_read, .. })
            | SessionPhase::Ending { turn: followed, is_read, .. }
                if *followed == turn =>
            {
                *is_read = true;
            }
            _ => {}
        }
    }

    /// Nothing of it happened: what it took waits again, and the turn that it resumed is left as it was.
    pub(super) fn unstarted(&mut self, turn: TurnId) {
        if let SessionPhase::Running(running) = self.phase
            && running.turn == turn
        {
            self.phase = SessionPhase::Idle;
            let items = std::mem::take(&mut self.items);
            let (left, barrier) = std::mem::take(&mut self.before_turn);
            self.barrier = barrier;
            let is_suspended = match running.from {
                StartFrom::Plan => {
                    self.left = left;
                    items.into_iter().for_each(|item| self.wait_again(item));
                    return;
                }
                StartFrom::Resume => false,
                StartFrom::Decision | StartFrom::Withdrawal(_) => true,
            };
            self.left = Some(Box::new(EarlyTurn { turn, items, is_suspended }));
        }
    }
}
