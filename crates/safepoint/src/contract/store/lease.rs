//! The right to write one session, with an epoch that outdates every earlier one (S7.4).

use std::time::Duration;

use jiff::Timestamp;

use crate::value::ids::{NodeId, SessionId};

use super::{
    environment::Environment,
    node::NodeLease,
    process::{Liveness, OwnerProcess},
};

/// The right to write a session: its node's lease, and an epoch. Every write carries both; once a later lease was given, or the
/// node was buried, this one writes nothing.
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Debug)]
pub struct Lease {
    session: SessionId,
    epoch: u64,
    node: NodeLease,
}

impl Lease {
    /// For implementations of a store.
    #[must_use]
    pub fn new(session: SessionId, epoch: u64, node: NodeLease) -> Self {
        Self { session, epoch, node }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Greater than that of every earlier lease.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The lease of the node that holds the session: how long it is valid, and how long still.
    #[must_use]
    pub fn node(&self) -> &NodeLease {
        &self.node
    }
}

/// Who holds a session, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The node.
    pub node: NodeId,
    /// Its name, for people.
    pub name: String,
    /// Where other nodes reach it.
    pub address: Option<String>,
    /// The process.
    pub owner: OwnerProcess,
    /// Since when.
    pub since: Timestamp,
    /// Until when, unless renewed.
    pub expires: Timestamp,
    /// The end as the time since the start of the owner's machine; `None` if that is unknown.
    pub until: Option<Duration>,
}

/// Whether another process may take the session: the holder is provably dead, or its time and the margin are
/// over. On one machine that time is the machine's uptime, so setting a clock takes no lease from a live
/// owner (S7.4).
#[must_use]
pub fn is_free(held: &LeaseHolder, outside: &Environment) -> bool {
    is_dead(&held.owner, (held.expires, held.until), outside)
}

/// Whether an owner whose lease ends at this time is provably dead, or its time and the margin are over.
pub(super) fn is_dead(
    owner: &OwnerProcess,
    (expires, until): (Timestamp, Option<Duration>),
    outside: &Environment,
) -> bool {
    let is_over = || {
        if let (Some(until), Some(up)) = (until, (outside.uptime)(owner)) {
            return up > until.saturating_add(outside.margin);
        }
        let over_for = outside.now().duration_since(expires);
        over_for.is_positive() && over_for.unsigned_abs() > outside.margin
    };
    match (outside.witness)(owner) {
        Liveness::Dead => true,
        Liveness::Alive | Liveness::Unknown => is_over(),
    }
}
