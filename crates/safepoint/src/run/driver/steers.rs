//! Steers of a run: kept until the next model request, then recorded, or returned at the end.
//!
//! **Invariants**: each steer is answered once: by its round when it is recorded, or by being dropped
//! unanswered.

use tokio::sync::oneshot;

use super::{Driver, LogFailure};
use crate::{
    run::{
        machine::PendingSteer,
        steer::{Steer, SteerTiming, SteerWithdrawal},
    },
    sync,
    value::{
        event::{Fact, RecordedSteer, SteerSource},
        ids::SteerId,
    },
};

/// Steers that are not part of the history yet, in order of arrival. Dropping a steer returns it to its
/// sender.
#[derive(Default)]
pub(super) struct Steers {
    waiting: Vec<(Steer, oneshot::Sender<u32>)>,
    /// The session's notices for the model, for the next request if there is one.
    notices: Vec<RecordedSteer>,
    /// Steers that were withdrawn in the log before the withdrawal arrived here.
    gone: Vec<SteerId>,
}

impl Steers {
    pub(super) fn add(&mut self, steer: Steer, landed: oneshot::Sender<u32>) {
        if steer.source == SteerSource::Session {
            return self.notices.push(steer.taken());
        }
        self.waiting.push((steer, landed));
    }

    pub(super) fn urgency(&self) -> PendingSteer {
        if self.waiting.is_empty() {
            if self.notices.is_empty() { PendingSteer::No } else { PendingSteer::Noticed }
        } else if self.waiting.iter().any(|(steer, _)| steer.when == SteerTiming::AtOnce) {
            PendingSteer::AtOnce
        } else {
            PendingSteer::Waiting
        }
    }

    /// Returns a steer that is not part of the history yet. One that is not here is part of it.
    pub(super) fn withdraw(&mut self, wanted: &SteerId, reply: oneshot::Sender<SteerWithdrawal>) {
        let place = self.waiting.iter().position(|(steer, _)| steer.is_item(wanted));
        let taken = match place {
            Some(place) => {
                drop(self.waiting.remove(place));
                SteerWithdrawal::Returned
            }
            None if self.gone.contains(wanted) => SteerWithdrawal::Returned,
            None => SteerWithdrawal::Delivered,
        };
        sync::reply(reply, taken);
    }

    /// Returns all steers: the run makes no further model request.
    pub(super) fn return_all(&mut self) {
        self.waiting.clear();
    }
}

impl Driver {
    /// Makes the waiting steers part of the history, as one fact.
    pub(super) async fn take_steers(&mut self) -> Result<(), LogFailure> {
        let round = self.machine.next_round();
        let mut taken = std::mem::take(&mut self.steers.waiting);
        let notices = std::mem::take(&mut self.steers.notices);
        while !(taken.is_empty() && notices.is_empty()) {
            let said = taken.iter().map(|(steer, _)| steer.clone().taken());
            let steers = notices.iter().cloned().chain(said).collect();
            match self.record(Fact::SteerTaken { round, steers }).await {
                Ok(_) => break,
                Err(broken) => self.leave_out_withdrawn(&mut taken, broken)?,
            }
        }
        // Hooks see them too, before they are sent.
        self.hooks.ask_about_request_again();
        for (_, landed) in taken {
            sync::reply(landed, round);
        }
        Ok(())
    }

    /// A steer that its sender has withdrawn in the store is not delivered and fails nothing: the others are
    /// delivered.
    fn leave_out_withdrawn(
        &mut self,
        taken: &mut Vec<(Steer, oneshot::Sender<u32>)>,
        broken: LogFailure,
    ) -> Result<(), LogFailure> {
        let LogFailure::Log(error) = &broken else { return Err(broken) };
        let place =
            error.gone_steer().and_then(|gone| taken.iter().position(|(steer, _)| steer.is_item(gone)));
        let Some(place) = place else { return Err(broken) };
        let (steer, _reply) = taken.remove(place);
        self.steers.gone.push(steer.id);
        Ok(())
    }
}
