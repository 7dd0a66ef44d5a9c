//! Background runs that ended with another owner: the user learns of them at once, the model with its next
//! request.

use super::{Driver, Item, SessionEvent, TurnId};
use crate::{run::Run, session::lost_runs::LostRun, value::ids::SteerId};

impl<T: Item> Driver<T> {
    pub(in crate::session) fn add_lost_runs(&mut self, lost: Vec<LostRun>) {
        for lost in lost {
            self.show(SessionEvent::BackgroundLost(lost.clone()));
            self.lost.push((lost, None));
        }
    }

    /// Called before the run starts, so that its first request includes the notices.
    pub(super) fn notify_lost(&self, run: &Run) {
        for (lost, _) in self.lost.iter().filter(|(_, notified)| notified.is_none()) {
            // The run's events show whether it is taken.
            drop(run.handle().steer(lost.notice()));
        }
    }

    pub(super) fn lost_notified(&mut self, turn: TurnId, notice: &SteerId) {
        for (_, notified) in self.lost.iter_mut().filter(|(lost, _)| lost.id() == *notice) {
            *notified = Some(turn);
        }
    }

    /// The turn is forgotten: what it began is forgotten too, and its notices are sent to the model again.
    pub(super) fn forget_lost_runs(&mut self, turn: TurnId) {
        self.lost.retain(|(lost, _)| lost.turn != turn);
        for (_, notified) in &mut self.lost {
            notified.take_if(|notified| *notified == turn);
        }
    }
}
