//! The runs of all turns of a session, and their background runs: stopped on the thread of the caller.
//!
//! **Invariants**: once [`SessionRuns::stop_by`] has returned, no turn begins. If the stop includes the current turn,
//! no model call and no tool call begins either.

use std::sync::atomic::{AtomicBool, Ordering};

use safepoint_scope::{Scope, StopAck, StopHandle};

use super::{
    machine::Strength,
    stop::{SessionStop, StopWhen},
};

pub(super) struct SessionRuns {
    pub(super) scope: Scope,
    pub(super) stop: StopHandle,
    /// Whether the end of the session was asked, at the next turn's end or sooner.
    ending: AtomicBool,
}

impl SessionRuns {
    pub(super) fn new() -> Self {
        let (scope, stop) = Scope::root();
        Self { scope, stop, ending: AtomicBool::new(false) }
    }

    /// Joins a stop of the session to the demand of its runs, and returns what that added; `None` if the stop
    /// waits for a turn's end. The caller has posted the stop before this: an end that it causes is handled
    /// after it, and a reader that sees [`SessionRuns::is_ending`] finds the stop in the mailbox.
    pub(super) fn stop_by(&self, stop: &SessionStop) -> Option<StopAck> {
        let StopWhen::Strength(strength) = stop.how else { return None };
        // SeqCst: the caller has posted the stop before this store. A driver that reads `true` therefore finds the stop in
        // its mailbox; one that reads `false` starts a turn whose run is below `scope`, and the demand joined next, if any, reaches it.
        self.ending.store(true, Ordering::SeqCst);
        (strength > Strength::AtTurnEnd).then(|| self.stop.stop(stop.request.clone()))
    }

    /// Whether a stop of the session is in the mailbox or has been handled.
    pub(super) fn is_ending(&self) -> bool {
        // Pairs with the store in `stop_by`.
        self.ending.load(Ordering::SeqCst)
    }
}
