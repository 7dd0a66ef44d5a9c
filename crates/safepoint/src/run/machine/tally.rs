//! How many calls of a round are in which state, updated with each change, so that no step of a wide round
//! counts them again.

use super::{Call, CallState};
use crate::value::receipt::StopSource;

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// To be looked at.
    pub(super) unjudged: usize,
    /// Waiting for a person, themselves or inside.
    pub(super) questions: usize,
    pub(super) cleared: usize,
    pub(super) running: usize,
    pub(super) over: usize,
    /// Of those that are over: ended by the run's stop.
    pub(super) stopped: usize,
    /// Whose beginning was announced.
    pub(super) begun: usize,
}

impl Tally {
    pub(super) fn add(&mut self, call: &Call) {
        for slot in self.slots(call).into_iter().flatten() {
            *slot += 1;
        }
    }

    pub(super) fn remove(&mut self, call: &Call) {
        for slot in self.slots(call).into_iter().flatten() {
            *slot -= 1;
        }
    }

    fn slots(&mut self, call: &Call) -> [Option<&mut usize>; 3] {
        let Self { unjudged, questions, cleared, running, over, stopped, begun } = self;
        let mut by_run = None;
        let step = match &call.step {
            CallState::Requested
            | CallState::Approved(_)
            | CallState::Resuming { .. }
            | CallState::EffectUnknown => unjudged,
            CallState::AwaitingApproval(_) | CallState::Suspended { .. } => questions,
            CallState::Ready { .. } => cleared,
            CallState::Running => running,
            CallState::Ended { report, .. } => {
                by_run = (report.stopped_by == Some(StopSource::Run)).then_some(stopped);
                over
            }
        };
        [Some(step), by_run, call.effect.is_some().then_some(begun)]
    }
}
