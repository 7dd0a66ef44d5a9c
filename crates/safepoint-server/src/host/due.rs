//! Opens the sessions of the host's agents that want an owner: after a restart, or because another process left something
//! for them.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use safepoint::{raw::store::Due, store::Error};
use tokio::time::timeout;

use super::{HostState, setup::Setup};

/// How often the store is asked.
const LOOK: Duration = Duration::from_millis(500);
/// How many sessions are opened at a time.
const MOST: usize = 16;
/// How many are left to others in one look, before it ends.
const MOST_LEFT: usize = 1_024;

/// Looks until the host drains or is gone.
pub(super) async fn watch(host: Weak<HostState>) {
    let Some(mut draining) = host.upgrade().map(|host| host.draining()) else { return };
    while timeout(LOOK, draining.wait_for(Option::is_some)).await.is_err() {
        let Some(host) = host.upgrade() else { return };
        // A store that does not answer is asked again.
        drop(look(&host).await);
    }
}

/// Opens the sessions that are due for an agent of the host (S13.55). One that is due and in no pool may be of another program: more is
/// asked for in its place, so that it hides none of the host's.
async fn look(host: &Arc<HostState>) -> Result<(), Error> {
    let (mut begun, mut left) = (0, 0);
    while begun < MOST && left < MOST_LEFT {
        let most = MOST - begun;
        let due = host.store.due(most, host.agents.keys().cloned().collect()).await?;
        let is_last = due.len() < most;
        for Due { session, .. } in due {
            let row = host.store.open(&session).await.ok();
            // A session of another program, or of an agent that is elsewhere, is left to it.
            let setup =
                row.as_ref().and_then(Setup::read).filter(|setup| host.agents.contains_key(&setup.agent));
            match (row, setup) {
                (Some(row), Some(setup)) => {
                    drop(host.opening(&row, &setup));
                    begun += 1;
                }
                _ => left += 1,
            }
        }
        if is_last {
            break;
        }
    }
    Ok(())
}
