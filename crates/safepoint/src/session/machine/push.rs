//! Items that come, and items that are taken back.

use super::{Answer, Effect, How, Machine, Moment, Phase, Steered, Wish};
use crate::{
    run::steer::When,
    session::words::{Fate, Or, Preempted, Refusal},
    value::ids::{ItemId, TurnId},
};

impl Machine {
    pub(super) fn push(&mut self, now: Moment, item: ItemId, how: How, out: &mut Vec<Effect>) {
        self.next_item = self.next_item.max(ItemId::new(item.number() + 1));
        self.idleness.busy();
        if self.phase == Phase::Over {
            // It was accepted a moment before the end.
            out.push(Effect::Fate { item, fate: Fate::Unhandled });
            return;
        }
        match how {
            How::Enqueue => self.wait_again(item),
            How::Reject if self.is_busy() => {
                out.push(Effect::Return { item, why: Refusal::Busy(self.in_the_way()) });
            }
            How::Reject => self.wait_again(item),
            How::Refused(why) => out.push(Effect::Return { item, why }),
            How::Preempt(wish) => self.push_preempt(now, item, wish, out),
            How::Steer { when, or } => self.push_steer(item, when, or, out),
        }
    }

    fn is_busy(&self) -> bool {
        self.phase != Phase::Idle || self.is_suspended()
    }

    /// The turn that is at work, or waits for a decision.
    fn in_the_way(&self) -> Option<TurnId> {
        match self.phase {
            Phase::Running(running) => Some(running.turn),
            Phase::Ending { turn, .. } => Some(turn),
            Phase::Idle | Phase::Planning { .. } | Phase::Over => self.left().filter(|_| self.is_suspended()),
        }
    }

    fn push_preempt(&mut self, now: Moment, item: ItemId, wish: Wish, out: &mut Vec<Effect>) {
        let target = self.target();
        if wish.turn.is_some() && wish.turn != target {
            out.push(Effect::Return { item, why: Refusal::TurnMismatch });
            return;
        }
        self.wait_again(item);
        match target {
            Some(_) => self.preempt(now, item, wish, out),
            None => {
                out.push(Effect::Resolve { item, preempted: Preempted::NoTarget });
                self.replan_for_preempt(out);
            }
        }
    }

    /// The turn that a push can hit: the one at work, or the one that waits for a decision.
    pub(super) fn target(&self) -> Option<TurnId> {
        match self.phase {
            Phase::Running(running) => Some(running.turn),
            Phase::Idle | Phase::Ending { .. } if self.is_suspended() => self.left(),
            Phase::Idle | Phase::Planning { .. } | Phase::Ending { .. } | Phase::Over => None,
        }
    }

    fn push_steer(&mut self, item: ItemId, when: When, or: Or, out: &mut Vec<Effect>) {
        match (self.phase, self.target(), or) {
            (Phase::Running(running), _, _) => {
                self.steering.push(Steered { item, when, or });
                out.push(Effect::Steer { turn: running.turn, item, when });
            }
            (_, Some(turn), Or::Queue) => {
                self.steering.push(Steered { item, when, or });
                out.push(Effect::Held { turn, item });
            }
            (_, None, Or::Queue) => self.wait_again(item),
            (_, _, Or::Return) => out.push(Effect::Return { item, why: Refusal::NoActiveTurn }),
        }
    }

    pub(super) fn steer_taken(&mut self, turn: TurnId, item: ItemId) {
        if let Phase::Running(running) = self.phase
            && running.turn == turn
            && let Some(index) = self.place_of_steer(item)
        {
            self.steering.remove(index);
            self.items.push(item);
        }
    }

    /// What the turn made no more use of waits, or goes back.
    pub(super) fn return_steers(&mut self, out: &mut Vec<Effect>) {
        for Steered { item, or, .. } in std::mem::take(&mut self.steering) {
            match or {
                Or::Queue => {
                    self.wait_again(item);
                    out.push(Effect::Requeued(item));
                }
                Or::Return => out.push(Effect::Return { item, why: Refusal::NotDelivered }),
            }
        }
    }

    /// Puts an item back to where its position belongs.
    pub(super) fn wait_again(&mut self, item: ItemId) {
        let place = self.waiting.binary_search(&item).unwrap_or_else(|place| place);
        self.waiting.insert(place, item);
    }

    pub(super) fn withdraw(&mut self, item: ItemId, out: &mut Vec<Effect>) {
        if self.is_steering(item) && !matches!(self.phase, Phase::Running(_)) {
            // No run has it.
            return self.took_back(item, out);
        }
        let Ok(index) = self.waiting.binary_search(&item) else {
            out.push(Effect::Answer(Answer::Taken));
            return;
        };
        self.waiting.remove(index);
        out.push(Effect::Fate { item, fate: Fate::Withdrawn });
        out.push(Effect::Answer(Answer::Withdrawn));
        // A plan may be about it already.
        self.plan_anew(out);
    }

    /// Its sender has a steer again that was not delivered. Where the turn has ended meanwhile it is an item like any.
    pub(super) fn took_back(&mut self, item: ItemId, out: &mut Vec<Effect>) {
        let Some(index) = self.place_of_steer(item) else {
            return self.withdraw(item, out);
        };
        self.steering.remove(index);
        out.push(Effect::Fate { item, fate: Fate::Withdrawn });
        out.push(Effect::Answer(Answer::Withdrawn));
    }

    fn place_of_steer(&self, item: ItemId) -> Option<usize> {
        self.steering.iter().position(|steered| steered.item == item)
    }
}
