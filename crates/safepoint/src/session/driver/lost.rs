//! Background runs that ended with another owner: the user learns of them at once, the model with its next
//! request.

use super::{Driver, Item, SessionEvent, TurnId};
use crate::{run::Run, session::lost::LostRun, value::ids::SteerId};

/// A lost run, and the turn in which the model was notified.
struct LostNotice {
    lost: LostRun,
    turn: Option<TurnId>,
}

/// Background runs of another owner that ended with it.
#[derive(Default)]
pub(super) struct LostRuns {
    notices: Vec<LostNotice>,
}

impl<T: Item> Driver<T> {
    pub(in crate::session) fn add_lost_runs(&mut self, lost: Vec<LostRun>) {
        for lost in lost {
            self.show(SessionEvent::BackgroundLost(lost.clone()));
            self.lost.notices.push(LostNotice { lost, turn: None });
        }
    }

    /// Called before the run starts, so that its first request includes the notices.
    pub(super) fn notify_lost(&self, run: &Run) {
        for notice in self.lost.notices.iter().filter(|notice| notice.turn.is_none()) {
            // The run's events show whether it is taken.
            drop(run.handle().steer(notice.lost.notice()));
        }
    }

    pub(super) fn lost_notified(&mut self, turn: TurnId, notice: &SteerId) {
        for known in self.lost.notices.iter_mut().filter(|known| known.lost.id() == *notice) {
            known.turn = Some(turn);
        }
    }

    /// The turn is forgotten: what it began is forgotten too, and its notices are sent to the model again.
    pub(super) fn forget_lost_runs(&mut self, turn: TurnId) {
        self.lost.notices.retain(|notice| notice.lost.turn != turn);
        for notice in self.lost.notices.iter_mut().filter(|notice| notice.turn == Some(turn)) {
            notice.turn = None;
        }
    }
}
