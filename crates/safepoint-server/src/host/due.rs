//! Opens the sessions of the host's agents that want an owner: after a restart, or because another process left something
//! for them.

use std::{sync::Weak, time::Duration};

use safepoint::raw::store::Due;
use tokio::time::timeout;

use super::{HostState, setup::Setup};

/// How often the store is asked.
const LOOK: Duration = Duration::from_millis(500);
/// How many sessions are opened at a time.
const MOST: usize = 16;

/// Looks until the host drains or is gone.
pub(super) async fn watch(host: Weak<HostState>) {
    let Some(mut draining) = host.upgrade().map(|host| host.draining()) else { return };
    while timeout(LOOK, draining.wait_for(Option::is_some)).await.is_err() {
        let Some(host) = host.upgrade() else { return };
        // A store that does not answer is asked again.
        let Ok(due) = host.store.due(MOST).await else { continue };
        for Due { session, .. } in due {
            let Ok(row) = host.store.open(&session).await else { continue };
            // Another program's session is left to it.
            let Some(setup) = Setup::read(&row) else { continue };
            drop(host.opening(&row, &setup));
        }
    }
}
