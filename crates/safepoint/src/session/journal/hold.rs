//! A session is taken by a node, and given back.
//!
//! **Invariants**: what the store gives after the taker has stopped waiting is given back: nothing would drive it.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{Journal, in_time, look::OPENING, silent};
use crate::{
    contract::store::{
        ApprovalRow, ApprovalState, Changes, DecisionUse, Error, InboxRow, ItemState, Lease, Rest,
    },
    session::{builder::engine, node::Member},
    value::ids::SessionId,
};

/// How long to wait before a failed release of the session is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// After how long a session wants an owner again that its store has failed.
const LATER: Duration = Duration::from_secs(5);

/// When a session wants an owner again that its store has failed: not at once, since it may fail again.
pub(in crate::session) fn later() -> Rest {
    Rest::After(LATER)
}

/// When a session wants an owner again that could not be opened: later, where the next attempt may succeed. It was taken, so nothing
/// else says that it is due.
pub(in crate::session) fn rest_after(error: &Error) -> Rest {
    match error {
        Error::Busy(_)
        | Error::Failed(_)
        | Error::Full(_)
        | Error::Gone
        | Error::Lapsed(_)
        | Error::NodeLapsed(_)
        | Error::ReadOnly(_)
        | Error::Unknown(_) => later(),
        // It is refused for what it is.
        _ => Rest::Nothing,
    }
}

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
            give_back(&node, &lease, (Changes::default(), Rest::Nothing)).await;
        }
    };
    drop(engine().spawn("session that is taken late", late));
    Err(silent())
}

/// What of others was seen. The store counts what this owner wrote itself too, and that may be newer than the last look: the rows say
/// whether anything of others is among it. What comes after they were read is beyond the answer.
pub(super) async fn seen_at_end(journal: &Journal) -> Changes {
    let seen = journal.seen.lock().changes;
    match in_time(journal.store().notice(journal.session())).await {
        Ok(newest) if in_time(is_all_known(journal, seen, newest)).await.unwrap_or(false) => newest,
        // What was not looked at is for the next owner.
        Ok(_) | Err(_) => seen,
    }
}

/// Whether everything between the two is handled: no item that this owner never had, no stop that is not done, no decision that
/// nothing has used.
async fn is_all_known(journal: &Journal, seen: Changes, newest: Changes) -> Result<bool, Error> {
    let (store, session) = (journal.store(), journal.session());
    if newest.items > seen.items {
        let is_new =
            |row: &InboxRow| row.state == ItemState::Waiting && journal.item_of(row.number).is_none();
        if store.inbox(session).await?.iter().any(is_new) {
            return Ok(false);
        }
    }
    if newest.stops > seen.stops && !store.stops(session, seen.stops).await?.iter().all(|stop| stop.seen) {
        return Ok(false);
    }
    if newest.decisions > seen.decisions {
        let waits = |row: &ApprovalRow| {
            matches!(row.state, ApprovalState::Decided { used: DecisionUse::Waiting, .. })
        };
        return Ok(!store.approvals(session).await?.iter().any(waits));
    }
    Ok(true)
}

/// Gives the session back, and says what of others was seen, and when it wants an owner again: at once, too, where its node drains.
pub(super) async fn released(
    node: &Member,
    lease: &Lease,
    (seen, rest): (Changes, Rest),
) -> Result<(), Error> {
    let rest = if rest == Rest::Nothing { node.rest() } else { rest };
    match in_time(node.store().release(lease, seen, rest)).await {
        // An earlier release succeeded and its answer was lost, or another process owns the session.
        Err(Error::Fenced { .. } | Error::Buried(_) | Error::NoSession(_)) => Ok(()),
        given => given,
    }
}

/// Gives the session back, and retries until that succeeds, the store is gone, or the lease has ended.
pub(super) async fn give_back(node: &Member, lease: &Lease, seen: (Changes, Rest)) {
    let ends = Instant::now() + lease.node().ttl();
    while let Err(error) = released(node, lease, seen).await {
        if matches!(error, Error::Gone) || Instant::now() >= ends {
            return;
        }
        sleep(AGAIN).await;
    }
}
