//! Background runs that another owner's end has ended: the person is told at once, the model with its next request.

use super::{Driver, Item, SessionEvent, TurnId};
use crate::{run::Run, session::lost::LostRun, value::ids::SteerId};

/// One of them, and the turn in which the model was told.
struct LostNotice {
    lost: LostRun,
    told: Option<TurnId>,
}

/// What went on in the background of another owner, and ended with it.
#[derive(Default)]
pub(super) struct LostRuns {
    notices: Vec<LostNotice>,
}

impl<T: Item> Driver<T> {
    pub(in crate::session) fn add_lost_runs(&mut self, lost: Vec<LostRun>) {
        for lost in lost {
            self.show(SessionEvent::BackgroundLost(lost.clone()));
            self.lost.notices.push(LostNotice { lost, told: None });
        }
    }

    /// Before the run starts, so that its first request has it.
    pub(super) fn tell_lost(&self, run: &Run) {
        for mourned in self.lost.notices.iter().filter(|mourned| mourned.told.is_none()) {
            // Whether it is taken is seen in the run's events.
            drop(run.handle().steer(mourned.lost.notice()));
        }
    }

    pub(super) fn lost_told(&mut self, turn: TurnId, notice: &SteerId) {
        for mourned in self.lost.notices.iter_mut().filter(|mourned| mourned.lost.id() == *notice) {
            mourned.told = Some(turn);
        }
    }

    /// What a turn that is forgotten was told is told again, and what it began is forgotten with it.
    pub(super) fn forget_lost_runs(&mut self, turn: TurnId) {
        self.lost.notices.retain(|mourned| mourned.lost.turn != turn);
        for mourned in self.lost.notices.iter_mut().filter(|mourned| mourned.told == Some(turn)) {
            mourned.told = None;
        }
    }
}
