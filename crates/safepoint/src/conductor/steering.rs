//! What the run was steered with: kept until the next model request, then recorded, or handed back at the end.
//!
//! **Invariants**: each steer is answered once: by its round when it is recorded, or by being dropped unanswered.

use tokio::sync::oneshot;

use super::{Broken, Conductor};
use crate::{
    event::{Fact, TakenSteer},
    ids::SteerId,
    machine::Steered,
    steer::{Steer, TakenBack, When},
};

/// Steers that are not part of the history yet, in the order in which they came. Dropping one hands it back.
#[derive(Default)]
pub(super) struct Steers(Vec<(Steer, oneshot::Sender<u32>)>);

impl Steers {
    pub(super) fn add(&mut self, steer: Steer, landed: oneshot::Sender<u32>) {
        self.0.push((steer, landed));
    }

    pub(super) fn urgency(&self) -> Steered {
        if self.0.is_empty() {
            Steered::No
        } else if self.0.iter().any(|(steer, _)| steer.when == When::AtOnce) {
            Steered::AtOnce
        } else {
            Steered::Waiting
        }
    }

    /// Gives one back that is not part of the history yet. One that is not here is part of it.
    pub(super) fn take_back(&mut self, wanted: &SteerId, reply: oneshot::Sender<TakenBack>) {
        let place = self.0.iter().position(|(steer, _)| steer.id == *wanted);
        let taken = place.map_or(TakenBack::Delivered, |place| {
            drop(self.0.remove(place));
            TakenBack::Back
        });
        if reply.send(taken).is_err() {
            // Whoever wanted it no longer waits; it is not delivered all the same.
        }
    }

    /// Hands all of them back: the run makes no further model request.
    pub(super) fn hand_back(&mut self) {
        self.0.clear();
    }
}

impl Conductor {
    /// Makes what waits part of the history, as one fact.
    pub(super) async fn take_steers(&mut self) -> Result<(), Broken> {
        let round = self.machine.next_round();
        let taken = std::mem::take(&mut self.steers.0);
        let steers = taken
            .iter()
            .map(|(steer, _)| TakenSteer { id: steer.id.clone(), message: steer.message.clone() })
            .collect();
        self.record(Fact::SteerTaken { round, steers }).await?;
        for (_, landed) in taken {
            if landed.send(round).is_err() {
                // Whoever steered no longer waits; the steer is taken all the same.
            }
        }
        Ok(())
    }
}
