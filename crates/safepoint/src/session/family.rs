//! The runs of all turns of a session, and what they began in the background: asked to stop on the thread of whoever asks.
//!
//! **Invariants**: once [`Family::ask`] has returned no turn begins; where the stop is meant for the turn at work too, no
//! model call and no call of a tool begins either.

use std::sync::atomic::{AtomicBool, Ordering};

use safepoint_scope::{Scope, StopAck, StopHandle};

use super::{
    machine::Strength,
    stop::{How, SessionStop},
};

pub(super) struct Family {
    pub(super) scope: Scope,
    pub(super) stop: StopHandle,
    /// Whether the end of the session was asked, at the next turn's end or sooner.
    ending: AtomicBool,
}

impl Family {
    pub(super) fn new() -> Self {
        let (scope, stop) = Scope::root();
        Self { scope, stop, ending: AtomicBool::new(false) }
    }

    /// Joins a stop of the session to what is demanded of its runs, and says what that added; none if it waits for a turn's
    /// end. The stop is in the mail before this: what ends by it is heard after it, and who sees [`Family::is_ending`] finds
    /// it there.
    pub(super) fn ask(&self, stop: &SessionStop) -> Option<StopAck> {
        let How::Strength(strength) = stop.how else { return None };
        self.ending.store(true, Ordering::SeqCst);
        (strength > Strength::AtTurnEnd).then(|| self.stop.stop(stop.request.clone()))
    }

    /// Whether a stop of the session is in the mail, or was heard.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}
