//! Preempts: bound to the turn that they found, asked of its run when their time comes, and settled with it.

use super::{Action, Machine, Moment, PendingStart, Phase, PreemptSpec, StopWhy};
use crate::{
    session::outcome::PreemptOutcome,
    value::ids::{ItemId, TurnId},
};

/// One preempt that its turn has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Preempt {
    item: ItemId,
    wish: PreemptSpec,
    step: Step,
}

/// How far it is. Exhaustive: it waits for its time, for the protected turn's end, or for the end of the run it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Delayed { until: Moment },
    Held,
    Asked { escalates: Option<Moment> },
}

impl Preempt {
    pub(super) fn item(&self) -> ItemId {
        self.item
    }

    pub(super) fn is_asked(&self) -> bool {
        matches!(self.step, Step::Asked { .. })
    }

    /// A turn that waits for a decision is protected no longer: a person may not come for days.
    pub(super) fn ask_if_held(&mut self) {
        if self.step == Step::Held {
            self.step = Step::Asked { escalates: None };
        }
    }

    pub(super) fn forgets(&self) -> bool {
        self.wish.forgets
    }

    pub(super) fn superseded(self) -> Action {
        self.came_to(PreemptOutcome::SupersededByStop)
    }

    pub(super) fn came_to(self, preempted: PreemptOutcome) -> Action {
        Action::Resolve { item: self.item, preempted }
    }
}

impl Machine {
    /// Binds a preempt to the turn that it finds.
    pub(super) fn preempt(&mut self, now: Moment, item: ItemId, wish: PreemptSpec, out: &mut Vec<Action>) {
        let Some(turn) = self.target() else { return };
        let step = match wish.delay {
            Some(delay) => Step::Delayed { until: now.after(delay) },
            None => self.ask_preempt(now, turn, wish, out),
        };
        self.preempts.push(Preempt { item, wish, step });
    }

    /// Asks the turn, in whatever state it is.
    fn ask_preempt(&mut self, now: Moment, turn: TurnId, wish: PreemptSpec, out: &mut Vec<Action>) -> Step {
        let plain = StopWhy::Preempt { points: wish.points, grace: wish.grace };
        let Phase::Running(running) = &mut self.phase else {
            // It waits for a decision, which is a safe point for every set (S8.3).
            self.want = PendingStart::Withdrawal(plain, self.next_item);
            return Step::Asked { escalates: None };
        };
        if running.is_protected {
            return Step::Held;
        }
        running.forgets |= wish.forgets;
        out.push(Action::StopRun { turn, why: plain });
        Step::Asked { escalates: wish.grace.map(|grace| now.after(grace)) }
    }

    /// When time alone changes this one.
    pub(super) fn due_at(&self, preempt: &Preempt) -> Option<Moment> {
        match preempt.step {
            Step::Delayed { until } => Some(until),
            Step::Asked { escalates } => escalates,
            Step::Held => None,
        }
    }

    /// Asks those whose delay is over, and escalates those whose grace is.
    pub(super) fn pass_preempts(&mut self, now: Moment, out: &mut Vec<Action>) {
        let Some(turn) = self.target() else { return };
        for index in 0..self.preempts.len() {
            let Preempt { wish, step, .. } = self.preempts[index];
            self.preempts[index].step = match step {
                Step::Delayed { until } if until <= now => self.ask_preempt(now, turn, wish, out),
                Step::Asked { escalates: Some(at) } if at <= now => {
                    if let Phase::Running(_) = self.phase {
                        out.push(Action::StopRun { turn, why: StopWhy::Escalated });
                    }
                    Step::Asked { escalates: None }
                }
                step => step,
            };
        }
    }

    /// A preempt that finds the planner running: it is asked again, with the new item, unless that happened
    /// too often.
    pub(super) fn replan_for_preempt(&mut self, out: &mut Vec<Action>) {
        if let Phase::Planning { asked_before: Some(_), .. } = self.phase
            && self.streak < self.rules.patience
        {
            self.streak += 1;
            self.drop_plan(out);
        }
    }
}
