//! The host as what takes sessions up: those of its agents that want an owner, after a restart, a death, or because another process left
//! something for them.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use safepoint::store::Error;
use safepoint_nodes::{NodeCapacity, Placement, TakeResult, Taker, Wake, wake_due};
use tokio::{sync::watch, time::timeout};

use super::{HostState, open::Opened, setup::Setup};

/// How long it is waited before a placement that failed is served again, or a session is opened that could not be. One that ends is waited
/// for as long: the store names it to others then.
const AGAIN: Duration = Duration::from_secs(5);

/// Takes what the placement hands over, until the host drains or is gone.
pub(super) async fn serve(host: Weak<HostState>, placement: Arc<dyn Placement>, capacity: NodeCapacity) {
    let taker = Arc::new(HostTaker(host.clone()));
    // One that ends by an error is served again: what it had handed over stays open, and what it has not is due.
    while placement
        .serve(Arc::clone(&taker) as _, capacity.clone(), leaving(host.clone()).boxed())
        .await
        .is_err()
    {
        if timeout(AGAIN, leaving(host.clone())).await.is_ok() {
            return;
        }
    }
}

/// Wakes the placement for what wants an owner, until the host drains or is gone.
pub(super) async fn wake(host: Weak<HostState>, placement: Arc<dyn Placement>, pools: Vec<String>) {
    let seen = host.upgrade().map(|host| (Arc::clone(&host.store), host.burials.subscribe()));
    let Some((store, hint)) = seen else { return };
    wake_due(&*store, &pools, &*placement, hint, leaving(host)).await;
}

/// It keeps no host alive.
struct HostTaker(Weak<HostState>);

impl Taker for HostTaker {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            let Some(host) = self.0.upgrade() else { return TakeResult::NoRoom };
            let row = match host.store.open(&wake.session).await {
                Ok(row) => row,
                Err(Error::NoSession(_)) => return TakeResult::Elsewhere,
                Err(_unanswered) => return TakeResult::Lost,
            };
            // A session of another program, or of an agent that is elsewhere, is left to it (S13.55).
            let setup = Setup::read(&row).filter(|setup| host.agents.contains_key(&setup.agent));
            let Some(setup) = setup else { return TakeResult::Elsewhere };
            // What this process has open though no node held it as it was named may have been given back, and end: it is opened behind
            // that end. What goes on was taken since, and finds what there is to do.
            if let Some(opening) = host.opening_now(&row.id)
                && timeout(AGAIN, ended(opening)).await.is_err()
            {
                return TakeResult::Released;
            }
            let mut opening = host.opening(&row, &setup);
            drop(host);
            let opened = opening.wait_for(Option::is_some).await.ok().and_then(|opened| opened.clone());
            let result = opened.map_or(TakeResult::Lost, taken);
            ended(opening).await;
            if result == TakeResult::Lost {
                // It would be due again at once.
                drop(timeout(AGAIN, leaving(self.0.clone())).await);
            }
            result
        }
        .boxed()
    }
}

/// Waits until the task that has the session has forgotten it.
async fn ended(mut opening: watch::Receiver<Option<Opened>>) {
    while opening.changed().await.is_ok() {}
}

/// How a take ends that found this.
fn taken(opened: Opened) -> TakeResult {
    match opened {
        Ok(_) => TakeResult::Released,
        Err(Error::Held(..) | Error::NoSession(_)) => TakeResult::Elsewhere,
        Err(Error::Parked(..)) => TakeResult::Parked,
        Err(Error::Draining(_) | Error::Buried(_) | Error::NodeLapsed(_)) => TakeResult::NoRoom,
        Err(_) => TakeResult::Lost,
    }
}

/// Waits until the host drains or is gone.
pub(super) async fn leaving(host: Weak<HostState>) {
    let Some(mut draining) = host.upgrade().map(|host| host.draining()) else { return };
    // The sender is gone with the host.
    drop(draining.wait_for(Option::is_some).await);
}
