//! Steers: the planner says what an arriving item says to the turn, and the active run gets it.

use super::{
    Delivery, Driver, Input, Item, ItemId, RunHandle, SessionEvent, TurnId, UserMessage, planning::report,
};
use crate::{
    run::steer::{Steer, SteerTiming},
    session::{item::Policy, machine::PushKind, outcome::RejectReason},
    sync::callback::Panicked,
};

impl<T: Item> Driver<T> {
    /// How an item is pushed, by its policy. For a steer the planner supplies the message, which must not be
    /// blank (S6.5).
    pub(super) async fn how(&mut self, item: ItemId, policy: Policy) -> PushKind {
        if self.recorder.journal.is_some()
            && let Some(held) = self.items.held.get(&item)
            && self.cx.shared.is_blank(&held.item)
        {
            // The item came through the store, past the check at the entrance.
            return PushKind::Refused(RejectReason::Blank);
        }
        // An ending session asks no planner: the item is unhandled under any policy.
        if let (Policy::Steer(..), None) = (policy, self.end.exit) {
            let Some(held) = self.items.held.get(&item) else { return policy.how() };
            match self.cx.settings.planner.call(|planner| planner.steer(&held.item)) {
                Ok(message) if message.is_blank() => return PushKind::Refused(RejectReason::Blank),
                Ok(message) => self.says(item, message),
                Err(Panicked(why)) => {
                    self.broke(report("the planner panicked", &why)).await;
                    return PushKind::Enqueue;
                }
            }
        }
        policy.how()
    }

    pub(super) async fn steer_taken(&mut self, item: ItemId, delivered: Delivery) {
        self.show(SessionEvent::Steered { item, delivered });
        // The run's log took the item together with the fact.
        self.recorder.taken.insert(item);
        if let Some(held) = self.items.held.get(&item) {
            held.slip.delivered(delivered);
        }
        self.step(Input::SteerTaken { turn: delivered.turn, item }).await;
    }

    fn says(&mut self, item: ItemId, message: UserMessage) {
        if let Some(held) = self.items.held.get_mut(&item) {
            held.said = Some(Box::new(message));
        }
    }

    pub(super) fn steer(&self, turn: TurnId, item: ItemId, when: SteerTiming) {
        if let Some(handle) = self.running(turn) {
            self.hand_over(handle, item, when);
        }
    }

    pub(super) fn hand_over(&self, run: &RunHandle, item: ItemId, when: SteerTiming) {
        let said = self.items.held.get(&item).and_then(|held| held.said.clone());
        if let Some(message) = said {
            // The run's events show what becomes of the steer, in their order.
            drop(run.steer(Steer::of_item(item, *message, when)));
        }
    }
}
