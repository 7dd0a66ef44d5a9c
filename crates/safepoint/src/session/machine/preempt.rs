//! Preempts: bound to the turn that they found, asked of its run when their time comes, and settled with it.

use super::{Action, Machine, Moment, PendingStart, PreemptSpec, SessionPhase, StopWhy};
use crate::{
    session::outcome::PreemptOutcome,
    value::ids::{ItemId, TurnId},
};

/// One preempt that its turn has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Preempt {
    pub(super) item: ItemId,
    pub(super) spec: PreemptSpec,
    step: PreemptStep,
}

/// How far it is. Exhaustive: it waits for its time, for the protected turn's end, or for the end of the run it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PreemptStep {
    Delayed { until: Moment },
    Held,
    Asked { escalates: Option<Moment> },
}

impl Preempt {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.step, PreemptStep::Asked { .. })
    }

    /// A turn that waits for a decision is protected no longer: a person may not come for days.
    pub(super) fn ask_if_held(&mut self) {
        if self.step == PreemptStep::Held {
            self.step = PreemptStep::Asked { escalates: None };
        }
    }

    /// When time alone changes this one.
    pub(super) fn due_at(&self) -> Option<Moment> {
        match self.step {
            PreemptStep::Delayed { until } => Some(until),
            PreemptStep::Asked { escalates } => escalates,
            PreemptStep::Held => None,
        }
    }

    pub(super) fn resolved(self, preempted: PreemptOutcome) -> Action {
        Action::Resolve(self.item, preempted)
    }
}

impl Machine {
    /// Binds a preempt to the turn that it finds.
    pub(super) fn preempt(&mut self, now: Moment, item: ItemId, spec: PreemptSpec, out: &mut Vec<Action>) {
        let Some(turn) = self.target() else { return };
        let step = match spec.delay {
            Some(delay) => PreemptStep::Delayed { until: now.after(delay) },
            None => self.ask_preempt(now, turn, spec, out),
        };
        self.preempts.push(Preempt { item, spec, step });
    }

    /// Asks the turn, in whatever state it is.
    fn ask_preempt(
        &mut self,
        now: Moment,
        turn: TurnId,
        spec: PreemptSpec,
        out: &mut Vec<Action>,
    ) -> PreemptStep {
        let plain = StopWhy::Preempt { points: spec.points, grace: spec.grace };
        let SessionPhase::Running(running) = &mut self.phase else {
            // It waits for a decision, which is a safe point for every set (S8.3).
            self.want = PendingStart::Withdrawal(plain, self.next_item);
            return PreemptStep::Asked { escalates: None };
        };
        if running.is_protected {
            return PreemptStep::Held;
        }
        running.forgets |= spec.forgets;
        out.push(Action::StopRun(turn, plain));
        PreemptStep::Asked { escalates: spec.grace.map(|grace| now.after(grace)) }
    }

    /// Asks those whose delay is over, and escalates those whose grace is.
    pub(super) fn pass_preempts(&mut self, now: Moment, out: &mut Vec<Action>) {
        let Some(turn) = self.target() else { return };
        for index in 0..self.preempts.len() {
            let Preempt { spec, step, .. } = self.preempts[index];
            self.preempts[index].step = match step {
                PreemptStep::Delayed { until } if until <= now => self.ask_preempt(now, turn, spec, out),
                PreemptStep::Asked { escalates: Some(at) } if at <= now => {
                    if let SessionPhase::Running(_) = self.phase {
                        out.push(Action::StopRun(turn, StopWhy::Escalated));
                    }
                    PreemptStep::Asked { escalates: None }
                }
                step => step,
            };
        }
    }

    /// A preempt that finds the planner running: it is asked again, with the new item, unless that happened
    /// too often.
    pub(super) fn replan_for_preempt(&mut self, out: &mut Vec<Action>) {
        if let SessionPhase::Planning { asked_before: Some(_), .. } = self.phase
            && self.streak < self.rules.max_preempted
        {
            self.streak += 1;
            self.drop_plan(out);
        }
    }
}
