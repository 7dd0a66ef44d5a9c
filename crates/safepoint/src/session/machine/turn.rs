//! A turn from its plan to its end.

use super::{
    Asked, Effect, End, Ended, EndedBy, From, Guard, Left, Machine, Made, Phase, Record, Running, Undo, Want,
    Wanted, Why, Yet,
};
use crate::{
    session::{
        machine::{Leftover, OnFailure},
        words::{Fate, Preempted},
    },
    value::ids::{ItemId, TurnId},
};

impl Machine {
    /// Takes up the turn that ended early, if that is wanted. The planner is asked for a resume, not for a decision.
    pub(super) fn take_up(&mut self, out: &mut Vec<Effect>) -> bool {
        let from = match std::mem::replace(&mut self.want, Want::Nothing) {
            Want::Nothing => return false,
            Want::Resume => {
                self.ask_planner(Wanted::Resume, out);
                return true;
            }
            Want::Decision => From::Decision,
            Want::Withdrawal(why, asked_at) => {
                let started = self.start_left(From::Withdrawal(why), out);
                if let Phase::Running(running) = &mut self.phase {
                    running.stopped_at = (why == Why::Asked).then_some(asked_at);
                }
                return started;
            }
        };
        self.start_left(from, out)
    }

    fn start_left(&mut self, from: From, out: &mut Vec<Effect>) -> bool {
        let Some(left) = self.left.take() else { return false };
        self.items = left.items;
        self.start(left.turn, from, out);
        true
    }

    /// Asks the planner, if there is something to plan.
    pub(super) fn plan(&mut self, out: &mut Vec<Effect>) -> bool {
        let fresh = match self.barrier {
            None => !self.waiting.is_empty(),
            Some(barrier) => self.waiting.back().is_some_and(|item| *item >= barrier),
        };
        if !fresh || self.is_suspended() {
            return false;
        }
        self.ask_planner(Wanted::Any, out);
        true
    }

    fn ask_planner(&mut self, wanted: Wanted, out: &mut Vec<Effect>) {
        self.plans += 1;
        self.phase = Phase::Planning { plan: self.plans, wanted, asked: Asked::NotYet };
        out.push(Effect::Gather(self.plans));
    }

    /// What was accepted before the plan was wanted is here: the planner is asked about all of it.
    pub(super) fn gathered(&mut self, number: u64, out: &mut Vec<Effect>) {
        let left = self.left();
        let Phase::Planning { plan, wanted, asked: asked @ Asked::NotYet } = &mut self.phase else { return };
        if *plan != number {
            return;
        }
        *asked = Asked::With(self.next_item);
        let waiting = self.waiting.iter().copied().collect();
        out.push(Effect::Plan { plan: number, waiting, left, wanted: *wanted });
    }

    /// Before which item the planner that makes this plan has seen everything.
    fn planned_with(&self, number: u64) -> Option<ItemId> {
        match self.phase {
            Phase::Planning { plan, asked: Asked::With(seen), .. } if plan == number => Some(seen),
            _ => None,
        }
    }

    pub(crate) fn is_planning(&self, number: u64) -> bool {
        self.planned_with(number).is_some()
    }

    /// Stops asking, to ask again: a resume that was promised still holds.
    pub(super) fn plan_anew(&mut self, out: &mut Vec<Effect>) {
        if let Phase::Planning { wanted: Wanted::Resume, .. } = self.phase {
            self.want = Want::Resume;
        }
        self.drop_plan(out);
    }

    /// Stops asking; what waited waits on.
    pub(super) fn drop_plan(&mut self, out: &mut Vec<Effect>) {
        if let Phase::Planning { .. } = self.phase {
            self.phase = Phase::Idle;
            out.push(Effect::DropPlan);
        }
    }

    pub(super) fn planned(&mut self, plan: u64, made: &Made, out: &mut Vec<Effect>) {
        let Some(seen) = self.planned_with(plan) else { return };
        if self.stranger(made).is_some() {
            return self.broke(out);
        }
        self.phase = Phase::Idle;
        match made {
            Made::Resume if self.start_left(From::Resume, out) => {}
            // What the planner has seen begins nothing by itself; what it has not seen does.
            Made::Resume | Made::Wait => self.barrier = Some(seen),
            Made::Turn { take, drop } => {
                let taken = self.take(take);
                for item in self.take(drop) {
                    out.push(Effect::Fate { item, fate: Fate::Dropped });
                }
                if taken.is_empty() {
                    self.barrier = Some(seen);
                    return;
                }
                self.undo.left = self.left.take();
                self.items = taken;
                self.turns += 1;
                self.start(TurnId::new(self.turns), From::Plan, out);
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

    fn start(&mut self, turn: TurnId, from: From, out: &mut Vec<Effect>) {
        let protects = self.streak >= self.rules.patience && !matches!(from, From::Withdrawal(_));
        let guard = if protects { Guard::Protected } else { Guard::Open };
        let forgets = self.preempts.iter().any(|preempt| preempt.is_asked() && preempt.forgets());
        let record = if forgets { Record::Forget } else { Record::Keep };
        self.undo.barrier = self.barrier.take();
        self.phase = Phase::Running(Running {
            turn,
            guard,
            session_stop: Yet::No,
            stopped_at: None,
            record,
            from,
            read: Yet::No,
        });
        let steers = self.steering.iter().map(|steered| (steered.item, steered.when)).collect();
        out.push(Effect::Start { turn, from, steers });
    }

    /// The turn's outcome is fixed: everything that was about it comes to rest, or waits on with it.
    pub(super) fn settled(&mut self, turn: TurnId, end: End, out: &mut Vec<Effect>) {
        let Phase::Running(running) = self.phase else { return };
        if running.turn != turn {
            return;
        }
        self.undo = Undo::default();
        let fate = self.fate_of(running, end);
        self.phase = Phase::Ending { turn, quiet: Yet::No, read: running.read };
        if let Fate::Suspended(_) = fate {
            self.suspend(running, out);
        } else {
            self.return_steers(out);
            self.close_turn(running, fate, end, out);
        }
        out.push(Effect::TurnEnded { turn, fate });
        // What is left of them is the turn's still: its next model request has them, whoever makes it.
        out.extend(self.steering.iter().map(|steered| Effect::Held { turn, item: steered.item }));
    }

    /// S6.11: a failure is a failure, a natural end first is complete, a stop of the session interrupts whatever else
    /// was asked, and only a preempt alone preempts.
    pub(super) fn fate_of(&self, running: Running, end: End) -> Fate {
        let turn = running.turn;
        let is_preempted = self.preempts.iter().any(super::Preempt::is_asked);
        match end {
            End::Done => Fate::Completed(turn),
            End::Failed => Fate::Failed(turn),
            End::Suspended => Fate::Suspended(turn),
            End::Stopped { .. } if running.session_stop == Yet::Yes => Fate::Interrupted(turn),
            End::Stopped { by: EndedBy::Preempt, .. } if is_preempted => match running.record {
                Record::Keep => Fate::Preempted(turn),
                Record::Forget => Fate::RolledBack(turn),
            },
            End::Stopped { .. } => Fate::Interrupted(turn),
        }
    }

    /// It waits for a decision, and those who wanted it stopped did not come through: they do now.
    fn suspend(&mut self, running: Running, out: &mut Vec<Effect>) {
        let items = std::mem::take(&mut self.items);
        for item in &items {
            out.push(Effect::Fate { item: *item, fate: Fate::Suspended(running.turn) });
        }
        self.left = Some(Left { turn: running.turn, items, how: Ended::Suspended });
        self.preempts.iter_mut().for_each(super::Preempt::ask_if_held);
        if self.preempts.iter().any(super::Preempt::is_asked) {
            self.want = Want::Withdrawal(Why::Preempt { points: None, grace: None }, self.next_item);
        } else if let Some(asked_at) = running.stopped_at {
            self.want = Want::Withdrawal(Why::Asked, asked_at);
        }
    }

    fn close_turn(&mut self, running: Running, fate: Fate, end: End, out: &mut Vec<Effect>) {
        let turn = running.turn;
        let was_wanted = !self.preempts.is_empty();
        let came_to = match fate {
            Fate::Preempted(_) | Fate::RolledBack(_) => Preempted::StoppedTurn(turn),
            Fate::Interrupted(_) if running.session_stop == Yet::Yes => Preempted::SupersededByStop,
            _ => Preempted::TurnEndedFirst,
        };
        for preempt in self.preempts.drain(..) {
            out.push(preempt.came_to(came_to));
        }
        let requeues = matches!(fate, Fate::Preempted(_))
            && matches!(end, End::Stopped { after: Leftover::Requeue, .. });
        let items = std::mem::take(&mut self.items);
        for item in &items {
            if requeues {
                self.wait_again(*item);
                out.push(Effect::Requeued(*item));
            } else {
                out.push(Effect::Fate { item: *item, fate });
            }
        }
        self.barrier = match fate {
            // Whoever preempts wants the next turn.
            _ if was_wanted => None,
            Fate::Interrupted(_) => Some(running.stopped_at.unwrap_or(self.next_item)),
            Fate::Failed(_) if self.rules.on_failure == OnFailure::Wait => Some(self.next_item),
            _ => None,
        };
        let preempted = matches!(fate, Fate::Preempted(_) | Fate::RolledBack(_));
        self.streak = if preempted && running.guard == Guard::Open { self.streak + 1 } else { 0 };
        let is_open =
            matches!(fate, Fate::Interrupted(_) | Fate::Failed(_) | Fate::Preempted(_)) && !requeues;
        self.left = is_open.then_some(Left { turn, items, how: Ended::Early });
        if let Fate::RolledBack(turn) = fate {
            out.push(Effect::Forget(turn));
        }
    }

    pub(super) fn quiet(&mut self, turn: TurnId) {
        if let Phase::Ending { turn: ended, quiet, .. } = &mut self.phase
            && *ended == turn
        {
            *quiet = Yet::Yes;
        }
    }

    /// A reader may return before its turn has ended.
    pub(super) fn read(&mut self, turn: TurnId) {
        match &mut self.phase {
            Phase::Running(Running { turn: followed, read, .. })
            | Phase::Ending { turn: followed, read, .. }
                if *followed == turn =>
            {
                *read = Yet::Yes;
            }
            _ => {}
        }
    }

    /// Nothing of it happened: what it took waits again, and what it took up is left as it was.
    pub(super) fn unstarted(&mut self, turn: TurnId) {
        if let Phase::Running(running) = self.phase
            && running.turn == turn
        {
            self.phase = Phase::Idle;
            let items = std::mem::take(&mut self.items);
            let Undo { left, barrier } = std::mem::take(&mut self.undo);
            self.barrier = barrier;
            let how = match running.from {
                From::Plan => {
                    self.left = left;
                    items.into_iter().for_each(|item| self.wait_again(item));
                    return;
                }
                From::Resume => Ended::Early,
                From::Decision | From::Withdrawal(_) => Ended::Suspended,
            };
            self.left = Some(Left { turn, items, how });
        }
    }
}
