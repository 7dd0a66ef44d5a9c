//! Whether a queue can be used, and why not.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use crate::{placement::PlacementError, taker::Wake};

/// What is known of a queue, by what was done with it.
#[derive(Debug, Default)]
pub(super) struct QueueHealth {
    /// Held for one entry; no other lock is taken under it but that of the channel beside it.
    state: Mutex<HealthState>,
    failure: watch::Sender<Option<Arc<PlacementError>>>,
}

#[derive(Debug, Default)]
struct HealthState {
    send: Option<Refused>,
    receive: Option<Arc<PlacementError>>,
}

/// A wake that could not be sent.
#[derive(Debug)]
struct Refused {
    wake: Wake,
    why: Arc<PlacementError>,
    /// Until when nothing is sent.
    until: Instant,
}

impl Refused {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl QueueHealth {
    pub(super) fn failure(&self) -> watch::Receiver<Option<Arc<PlacementError>>> {
        self.failure.subscribe()
    }

    /// Whether it is to be left alone now.
    pub(super) fn is_away(&self) -> bool {
        let state = self.state();
        state.receive.is_some() || state.send.as_ref().is_some_and(|refused| !refused.is_over())
    }

    pub(super) fn sends(&self) {
        self.change(|state| state.send = None);
    }

    /// Nothing is to be sent for this long; then this wake may tell whether anything can be.
    pub(super) fn cannot_send(&self, wake: Wake, why: PlacementError, pause: Duration) {
        self.change(|state| {
            state.send = Some(Refused { wake, why: Arc::new(why), until: Instant::now() + pause });
        });
    }

    /// What could not be sent, once that may be tried again.
    pub(super) fn refused(&self) -> Option<Wake> {
        let state = self.state();
        state.send.as_ref().filter(|refused| refused.is_over()).map(|refused| refused.wake.clone())
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
        let failure = state.receive.as_ref().or(state.send.as_ref().map(|refused| &refused.why)).cloned();
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
