//! Whether a queue can be used, and why not.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use crate::placement::PlacementError;

/// What is known of a queue, by what was done with it.
#[derive(Debug, Default)]
pub(super) struct QueueHealth {
    /// Held for one entry; no other lock is taken under it but that of the channel beside it.
    state: Mutex<HealthState>,
    failure: watch::Sender<Option<Arc<PlacementError>>>,
}

#[derive(Debug, Default)]
struct HealthState {
    /// Why nothing can be sent, and until when that is not tried.
    send: Option<(Arc<PlacementError>, Instant)>,
    receive: Option<Arc<PlacementError>>,
}

impl QueueHealth {
    pub(super) fn failure(&self) -> watch::Receiver<Option<Arc<PlacementError>>> {
        self.failure.subscribe()
    }

    /// Whether it is to be left alone now.
    pub(super) fn is_away(&self) -> bool {
        let state = self.state();
        state.receive.is_some() || state.send.as_ref().is_some_and(|(_, until)| Instant::now() < *until)
    }

    pub(super) fn sends(&self) {
        self.change(|state| state.send = None);
    }

    pub(super) fn cannot_send(&self, why: PlacementError, pause: Duration) {
        self.change(|state| state.send = Some((Arc::new(why), Instant::now() + pause)));
    }

    pub(super) fn receives(&self) {
        self.change(|state| state.receive = None);
    }

    pub(super) fn cannot_receive(&self, why: PlacementError) {
        self.change(|state| state.receive = Some(Arc::new(why)));
    }

    fn change(&self, change: impl FnOnce(&mut HealthState)) {
        let mut state = self.state();
        change(&mut state);
        let failure = state.receive.as_ref().or(state.send.as_ref().map(|(why, _)| why)).cloned();
        // An operator learns of the beginning and of the end.
        self.failure.send_if_modified(|known| {
            let is_other = known.is_some() != failure.is_some();
            if is_other {
                *known = failure;
            }
            is_other
        });
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
