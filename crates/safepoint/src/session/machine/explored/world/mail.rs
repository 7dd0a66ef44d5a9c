//! The entrance of a world, and the mail behind it.

use super::{Input, ItemId, ItemPlace, PushKind, Strength, World};

/// What happens next, before or behind the entrance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum WorldStep {
    /// An item is accepted at the entrance.
    Come(PushKind),
    /// A stop of the session is asked.
    Stop(Strength),
    /// The owner handles its oldest message.
    Deliver,
    Happen(Input),
}

/// What is on its way from the entrance to the owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Letter {
    Item(ItemId, PushKind),
    Stop(Strength),
    Gathered(u64),
    Adopted,
}

impl World {
    /// Takes the step, and delivers the mail.
    pub(in super::super) fn take(&mut self, step: &WorldStep) {
        match step {
            WorldStep::Come(how) => {
                self.budget.pushes -= 1;
                let item = self.inbox.admit().expect("there is room");
                self.accepted(item, *how);
            }
            WorldStep::Stop(strength) => {
                self.budget.stops = self.budget.stops.saturating_sub(1);
                self.is_ending = true;
                self.mail.push_back(Letter::Stop(*strength));
            }
            WorldStep::Deliver => self.deliver(),
            WorldStep::Happen(input) => self.happen(input),
        }
        // Items accepted a moment before the end are delivered too.
        while (!self.is_apart || self.ended) && !self.mail.is_empty() {
            self.deliver();
        }
    }

    pub(super) fn accepted(&mut self, item: ItemId, how: PushKind) {
        assert_eq!(item, ItemId::new(self.places.len() as u64), "a position is not the order of acceptance");
        self.places.push(ItemPlace::Coming);
        self.mail.push_back(Letter::Item(item, how));
    }

    pub(super) fn deliver(&mut self) {
        let Some(message) = self.mail.pop_front() else { return };
        self.happen(&match message {
            Letter::Item(item, how) => Input::Push(item, how),
            Letter::Stop(strength) => Input::Stop(strength),
            Letter::Gathered(plan) => Input::Gathered(plan),
            Letter::Adopted => Input::Inherited,
        });
    }

    pub(in super::super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether something that another owner left is still on its way.
    pub(in super::super) fn is_opening(&self) -> bool {
        self.mail.contains(&Letter::Adopted)
    }

    pub(in super::super) fn is_gathering(&self) -> bool {
        self.gathering.is_some()
    }

    /// Whether the strongest stop of the session was requested, delivered or not.
    pub(in super::super) fn stop_is_asked(&self) -> bool {
        self.stopped == Some(Strength::Now) || self.mail.contains(&Letter::Stop(Strength::Now))
    }

    /// The owner has received all items before this one.
    pub(in super::super) fn seen_items(&self) -> ItemId {
        let coming = self.places.iter().position(|place| *place == ItemPlace::Coming);
        ItemId::new(coming.unwrap_or(self.places.len()) as u64)
    }
}
