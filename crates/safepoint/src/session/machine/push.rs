//! Items that come, and items that are taken back.

use super::{Action, Machine, Moment, PreemptSpec, PushKind, RequestAnswer, SessionPhase};
use crate::{
    run::steer::SteerTiming,
    session::outcome::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason},
    value::ids::{ItemId, TurnId},
};

impl Machine {
    pub(super) fn push(&mut self, now: Moment, item: ItemId, how: PushKind, out: &mut Vec<Action>) {
        self.next_item = self.next_item.max(ItemId::new(item.number() + 1));
        self.idleness.busy();
        if self.phase == SessionPhase::Over {
            // It was accepted a moment before the end.
            out.push(Action::Settle(item, ItemOutcome::Unhandled));
            return;
        }
        match how {
            PushKind::Enqueue => self.wait_again(item),
            PushKind::Reject if self.is_busy() => {
                out.push(Action::Settle(item, ItemOutcome::Returned(RejectReason::Busy(self.in_the_way()))));
            }
            PushKind::Reject => self.wait_again(item),
            PushKind::Refused(why) => out.push(Action::Settle(item, ItemOutcome::Returned(why))),
            PushKind::Preempt(spec) => self.push_preempt(now, item, spec, out),
            PushKind::SteerTurn(turn, ..) if self.target() != Some(turn) => {
                out.push(Action::Settle(item, ItemOutcome::Returned(RejectReason::TurnMismatch)));
            }
            PushKind::Steer(when, or) | PushKind::SteerTurn(_, when, or) => {
                self.push_steer(item, when, or, out);
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.phase != SessionPhase::Idle || self.is_suspended()
    }

    /// The turn that runs, or waits for a decision.
    fn in_the_way(&self) -> Option<TurnId> {
        match self.phase {
            SessionPhase::Running(running) => Some(running.turn),
            SessionPhase::Ending { turn, .. } => Some(turn),
            SessionPhase::Idle | SessionPhase::Planning { .. } | SessionPhase::Over => {
                self.left().filter(|_| self.is_suspended())
            }
        }
    }

    fn push_preempt(&mut self, now: Moment, item: ItemId, spec: PreemptSpec, out: &mut Vec<Action>) {
        let target = self.target();
        if spec.turn.is_some() && spec.turn != target {
            out.push(Action::Settle(item, ItemOutcome::Returned(RejectReason::TurnMismatch)));
            return;
        }
        self.wait_again(item);
        match target {
            Some(_) => self.preempt(now, item, spec, out),
            None => {
                out.push(Action::Resolve(item, PreemptOutcome::NoTurn));
                self.replan_for_preempt(out);
            }
        }
    }

    /// The turn that a push can stop: the running one, or the one that waits for a decision.
    pub(super) fn target(&self) -> Option<TurnId> {
        match self.phase {
            SessionPhase::Running(running) => Some(running.turn),
            SessionPhase::Idle | SessionPhase::Ending { .. } if self.is_suspended() => self.left(),
            SessionPhase::Idle
            | SessionPhase::Planning { .. }
            | SessionPhase::Ending { .. }
            | SessionPhase::Over => None,
        }
    }

    fn push_steer(&mut self, item: ItemId, when: SteerTiming, or: IfUndelivered, out: &mut Vec<Action>) {
        match (self.phase, self.target(), or) {
            (SessionPhase::Running(running), _, _) => {
                self.steering.push((item, when, or));
                out.push(Action::Steer(running.turn, item, when));
            }
            (_, Some(turn), IfUndelivered::Queue) => {
                self.steering.push((item, when, or));
                out.push(Action::Held(turn, item));
            }
            (_, None, IfUndelivered::Queue) => self.wait_again(item),
            (_, _, IfUndelivered::Return) => {
                out.push(Action::Settle(item, ItemOutcome::Returned(RejectReason::NoActiveTurn)))
            }
        }
    }

    pub(super) fn steer_taken(&mut self, turn: TurnId, item: ItemId) {
        if let SessionPhase::Running(running) = self.phase
            && running.turn == turn
            && let Some(index) = self.place_of_steer(item)
        {
            self.steering.remove(index);
            self.items.push(item);
        }
    }

    /// Steers that the turn no longer used wait, or are returned.
    pub(super) fn return_steers(&mut self, out: &mut Vec<Action>) {
        for (item, _, or) in std::mem::take(&mut self.steering) {
            match or {
                IfUndelivered::Queue => {
                    self.wait_again(item);
                    out.push(Action::Requeued(item));
                }
                IfUndelivered::Return => {
                    out.push(Action::Settle(item, ItemOutcome::Returned(RejectReason::NotDelivered)))
                }
            }
        }
    }

    /// Puts an item back to where its position belongs.
    pub(super) fn wait_again(&mut self, item: ItemId) {
        let place = self.waiting.binary_search(&item).unwrap_or_else(|place| place);
        self.waiting.insert(place, item);
    }

    pub(super) fn withdraw(&mut self, item: ItemId, out: &mut Vec<Action>) {
        if self.is_steering(item) && !matches!(self.phase, SessionPhase::Running(_)) {
            // No run has it.
            return self.steer_returned(item, out);
        }
        let Ok(index) = self.waiting.binary_search(&item) else {
            out.push(Action::RequestAnswer(RequestAnswer::Taken));
            return;
        };
        self.waiting.remove(index);
        out.push(Action::Settle(item, ItemOutcome::Withdrawn));
        out.push(Action::RequestAnswer(RequestAnswer::Withdrawn));
        // A plan may be about it already.
        self.plan_anew(out);
    }

    /// The sender has a steer back that was not delivered. If the turn has ended meanwhile, it is an item
    /// like any other.
    pub(super) fn steer_returned(&mut self, item: ItemId, out: &mut Vec<Action>) {
        let Some(index) = self.place_of_steer(item) else {
            return self.withdraw(item, out);
        };
        self.steering.remove(index);
        out.push(Action::Settle(item, ItemOutcome::Withdrawn));
        out.push(Action::RequestAnswer(RequestAnswer::Withdrawn));
    }

    fn place_of_steer(&self, item: ItemId) -> Option<usize> {
        self.steering.iter().position(|(steered, ..)| *steered == item)
    }
}
