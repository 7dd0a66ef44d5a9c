//! The removal of a session: nothing that was acknowledged is lost with it.
//!
//! **Invariants**: it is removed only after it was held with a closed inbox and nothing waited then; one of which something waits stays as it
//! was.

use std::time::Duration;

use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalState, DecisionUse, Durability, ItemState, Leaving, NodeLease, Rest, Write},
    store::{Error, NewNode, OwnerProcess, Store},
};

/// How long the removal may take before another process may take the session.
const WITHIN: Duration = Duration::from_secs(5);

/// What became of a removal. Exhaustive: the session is gone, or something of it waits and it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Done,
    Waits,
}

/// Removes a session that no process has open and of which nothing waits.
///
/// # Errors
/// [`Error::Held`], and the store's.
///
/// # Cancel safety
/// It may be removed, or take no more items until its removal is asked again.
pub(crate) async fn remove(store: &dyn Store, id: &SessionId) -> Result<Removal, Error> {
    if waits(store, id).await? {
        return Ok(Removal::Waits);
    }
    let node = store.join(NewNode::of(OwnerProcess::here(), WITHIN)).await?;
    let closed = close(store, id, &node).await;
    // One that could not be left is buried, since its lease is over soon.
    drop(store.leave(node.id(), Leaving::Gone).await);
    match closed {
        Ok(Removal::Done) => store.remove(id).await.map(|()| Removal::Done),
        // No node takes it: what is pushed to it waits.
        Err(Error::Parked(..)) => store.remove(id).await.map(|()| Removal::Done),
        other => other,
    }
}

/// Closes the inbox and looks again: what came before is seen, and nothing comes after.
async fn close(store: &dyn Store, id: &SessionId, node: &NodeLease) -> Result<Removal, Error> {
    let lease = store.acquire(id, node).await?;
    store.append(&lease, vec![Write::CloseInbox], Durability::Recorded).await?;
    let has_come = waits(store, id).await?;
    if has_come {
        store.append(&lease, vec![Write::OpenInbox], Durability::Recorded).await?;
    }
    let (rest, removal) = if has_come { (Rest::Now, Removal::Waits) } else { (Rest::Nothing, Removal::Done) };
    store.release(&lease, store.notice(id).await?, rest).await?;
    Ok(removal)
}

/// Whether an item waits for a turn, or a turn for a decision.
async fn waits(store: &dyn Store, id: &SessionId) -> Result<bool, Error> {
    if store.inbox(id).await?.iter().any(|item| item.state == ItemState::Waiting) {
        return Ok(true);
    }
    let asks = |state: &ApprovalState| match state {
        ApprovalState::Open | ApprovalState::Decided { used: DecisionUse::Waiting, .. } => true,
        ApprovalState::Decided { used: DecisionUse::Used, .. }
        | ApprovalState::Withdrawn
        | ApprovalState::Expired => false,
    };
    Ok(store.approvals(id).await?.iter().any(|row| asks(&row.state)))
}
