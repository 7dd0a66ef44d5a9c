//! What must follow from a stop of one item.

use super::{
    ItemId, QueueAfterStop, RequestAnswer,
    witness::Promise,
    world::{ItemPlace, World},
};

impl World {
    /// S6.19: it is withdrawn where no run has it; what a run has, or is on its way to, is stopped with its turn.
    pub(super) fn foresee_item_stop(&mut self, item: ItemId, queue: QueueAfterStop, count: ItemId) {
        let held = if queue == QueueAfterStop::Holds { count } else { ItemId::new(0) };
        let may = match self.place_of(item) {
            // No run has it: it is withdrawn. What a run has, or is on its way to, is stopped with its turn.
            ItemPlace::Waiting => Some(RequestAnswer::Withdrawn),
            ItemPlace::Steering(turn) if self.run == Some(turn) => Some(RequestAnswer::StoppingTurn(turn)),
            ItemPlace::Steering(_) => Some(RequestAnswer::Withdrawn),
            ItemPlace::InTurn(turn) => Some(RequestAnswer::StoppingTurn(turn)),
            ItemPlace::Left(turn) if self.machine.is_suspended() && self.machine.left() == Some(turn) => {
                Some(RequestAnswer::StoppingTurn(turn))
            }
            ItemPlace::Left(_) | ItemPlace::AtRest => Some(RequestAnswer::TooLate),
            ItemPlace::Coming => None,
        };
        self.witness.answer = may;
        match may {
            Some(RequestAnswer::StoppingTurn(_)) => {
                let before = self.witness.stopped_at.filter(|before| *before > ItemId::new(0));
                self.witness.stopped_at = Some(before.unwrap_or(held));
                self.witness.promise = Promise::Nothing;
            }
            // The turn that has it is not resumed for a caller that has stopped it.
            Some(RequestAnswer::TooLate) if self.is_left(item) => self.witness.promise = Promise::Nothing,
            _ => {}
        }
    }

    fn place_of(&self, item: ItemId) -> ItemPlace {
        let place = usize::try_from(item.number()).ok().and_then(|index| self.places.get(index));
        place.copied().unwrap_or(ItemPlace::AtRest)
    }

    fn is_left(&self, item: ItemId) -> bool {
        matches!(self.place_of(item), ItemPlace::Left(_))
    }
}
