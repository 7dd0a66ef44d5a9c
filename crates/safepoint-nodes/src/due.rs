//! Asks the store what wants an owner, and wakes a placement for it.

use std::{
    future::{Future, pending},
    pin::pin,
    time::Duration,
};

use futures_util::future::{Either, select};
use safepoint::store::Store;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::placement::Placement;

/// How often the store is asked, unless it is worth a look before.
const LOOK: Duration = Duration::from_millis(750);
/// How many sessions are asked for at once.
const MOST: usize = 100;
/// How many times in a row the store is asked when it has more.
const MOST_PAGES: usize = 10;
/// How long a store may take before it is asked for one session at a time.
const SLOW: Duration = Duration::from_secs(1);
/// How long the store and the placement may take before they are asked again.
const ANSWER: Duration = Duration::from_secs(5);

/// Wakes the placement for the sessions of these pools that want an owner, until `leave`. Each node does so: what one of them names to the placement,
/// no other names for five seconds (`Store::due`).
///
/// The store is asked every three quarters of a second, and at once when `hint` changes: the node has declared others dead, or knows of something else that is due.
///
/// A store that takes longer than a second to answer is loaded: it is asked for one session at a time then. A store or a placement that
/// cannot be reached is asked again.
///
/// # Cancel safety
/// Sessions that were named and not woken are named again after five seconds.
pub async fn wake_due(
    store: &dyn Store,
    pools: &[String],
    placement: &dyn Placement,
    mut hint: watch::Receiver<()>,
    leave: impl Future<Output = ()>,
) {
    let mut leave = pin!(leave);
    let mut took = Duration::ZERO;
    loop {
        hint.mark_unchanged();
        // A look that is given up has named some at most.
        match select(&mut leave, pin!(look(store, pools, placement, &mut took))).await {
            Either::Left(((), _)) => return,
            Either::Right(((), _)) => {}
        }
        // What gave hints may be gone.
        let hinted = async {
            if hint.changed().await.is_err() {
                pending().await
            }
        };
        match select(&mut leave, pin!(timeout(LOOK, hinted))).await {
            Either::Left(((), _)) => return,
            Either::Right((Ok(()) | Err(_), _)) => {}
        }
    }
}

async fn look(store: &dyn Store, pools: &[String], placement: &dyn Placement, took: &mut Duration) {
    for _ in 0..MOST_PAGES {
        let most = if *took < SLOW { MOST.min(placement.wanted()) } else { 1.min(placement.wanted()) };
        if most == 0 {
            return;
        }
        let asked = Instant::now();
        let due = timeout(ANSWER, store.due(most, pools.to_vec())).await;
        *took = asked.elapsed();
        // The next look asks again.
        let Ok(Ok(due)) = due else { return };
        let is_last = due.len() < most;
        let wakes = due.into_iter().map(Into::into).collect();
        let woken = timeout(ANSWER, placement.wake(wakes)).await;
        if is_last || !matches!(woken, Ok(Ok(()))) {
            return;
        }
    }
}
