//! Opens the sessions of the host's agents that want an owner: after a restart, or because another process left something
//! for them.
//!
//! **Invariants**: what the store names once is opened, or left to others; a session that could not be opened is not tried again with
//! each look.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use safepoint::{
    ids::SessionId,
    raw::store::Due,
    store::{Error, SessionRow},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{HostState, open::Opened, setup::Setup};

/// How often the store is asked.
const LOOK: Duration = Duration::from_millis(500);
/// How many sessions are opened at a time.
const MOST: usize = 16;
/// How many are left to others in one look, before it ends.
const MOST_LEFT: usize = 1_024;
/// How long a session that could not be opened is left alone, and one that ends is waited for: as long as the store names to no other
/// what it has named.
const AGAIN: Duration = Duration::from_secs(5);

/// What became of the sessions that were opened.
#[derive(Default)]
struct DueOpenings {
    begun: Vec<(SessionId, watch::Receiver<Option<Opened>>)>,
    failed: HashMap<SessionId, Instant>,
}

impl DueOpenings {
    fn learn(&mut self) {
        let now = Instant::now();
        self.failed.retain(|_, at| now.duration_since(*at) < AGAIN);
        for (id, opening) in std::mem::take(&mut self.begun) {
            let found = opening.borrow().as_ref().map(Result::is_ok);
            match found {
                Some(true) => {}
                Some(false) => drop(self.failed.insert(id, now)),
                None => self.begun.push((id, opening)),
            }
        }
    }
}

/// Looks until the host drains or is gone.
pub(super) async fn watch(host: Weak<HostState>) {
    let Some(mut draining) = host.upgrade().map(|host| host.draining()) else { return };
    let mut openings = DueOpenings::default();
    while timeout(LOOK, draining.wait_for(Option::is_some)).await.is_err() {
        let Some(host) = host.upgrade() else { return };
        openings.learn();
        // A store that does not answer is asked again.
        drop(look(&host, &mut openings).await);
    }
}

/// Opens the sessions that are due for an agent of the host (S13.55). One that is due and in no pool may be of another program: more is
/// asked for in its place, so that it hides none of the host's.
async fn look(host: &Arc<HostState>, openings: &mut DueOpenings) -> Result<(), Error> {
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
                (Some(row), Some(setup)) if !openings.failed.contains_key(&session) => {
                    if !opens_behind(host, &row, &setup) {
                        openings.begun.push((session, host.opening(&row, &setup)));
                    }
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

/// Whether this process has the session in its hands, though no node held it as it was named: it may have been given back, and end.
/// Then it is opened behind that end. One that goes on has been taken since, and finds what there is to do.
fn opens_behind(host: &Arc<HostState>, row: &SessionRow, setup: &Setup) -> bool {
    let Some(mut ends) = host.open_now().get(&row.id).cloned() else { return false };
    let (then, row, setup) = (Arc::clone(host), row.clone(), setup.clone());
    host.spawn("session that is due as it ends", async move {
        // The task that has it forgets it last.
        let ended = async { while ends.changed().await.is_ok() {} };
        if timeout(AGAIN, ended).await.is_ok() {
            then.begin(&row, &setup);
        }
    });
    true
}
