//! A session is taken by a node, and given back.
//!
//! **Invariants**: what the store gives after the taker has stopped waiting is given back: nothing would drive it.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{in_time, look::OPENING, silent};
use crate::{
    contract::store::{Changes, Error, Lease},
    session::{builder::engine, node::Member},
    value::ids::SessionId,
};

/// How long to wait before a failed release of the session is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// Takes the session for the node, within a bound. What the store answers later is given back.
///
/// # Errors
/// Those of [`Store::acquire`](crate::store::Store::acquire).
///
/// # Cancel safety
/// The session may have been taken: then it stays with the node until that leaves.
pub(in crate::session) async fn acquired(node: &Arc<Member>, session: &SessionId) -> Result<Lease, Error> {
    let (taker, id) = (Arc::clone(node), session.clone());
    let mut asked = Box::pin(async move { taker.store().acquire(&id, taker.lease()).await });
    if let Ok(answer) = timeout(OPENING, &mut asked).await {
        return answer;
    }
    let node = Arc::clone(node);
    let late = async move {
        if let Ok(lease) = asked.await {
            // Nothing of what others did was seen.
            give_back(&node, &lease, Changes::default).await;
        }
    };
    drop(engine().spawn("session that is taken late", late));
    Err(silent())
}

/// Gives the session back, and says what of others was seen.
pub(super) async fn released(node: &Member, lease: &Lease, seen: Changes) -> Result<(), Error> {
    match in_time(node.store().release(lease, seen, node.rest())).await {
        // An earlier release succeeded and its answer was lost, or another process owns the session.
        Err(Error::Fenced { .. } | Error::Buried(_) | Error::NoSession(_)) => Ok(()),
        given => given,
    }
}

/// Gives the session back, and retries until that succeeds, the store is gone, or the lease has ended.
pub(super) async fn give_back(node: &Member, lease: &Lease, seen: impl Fn() -> Changes + Send) {
    let ends = Instant::now() + lease.node().ttl();
    while let Err(error) = released(node, lease, seen()).await {
        if matches!(error, Error::Gone) || Instant::now() >= ends {
            return;
        }
        sleep(AGAIN).await;
    }
}
