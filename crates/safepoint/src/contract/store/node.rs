//! Nodes: who may hold sessions, each with one lease for all that it holds (S7.12, S7.13).
//!
//! **Invariants:** a node that was buried never becomes anything else; its lease renews nothing.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{
    sync::Mutex,
    value::ids::{NodeId, SessionId},
};

use super::{
    environment::{Environment, truncate_to_micros},
    lease::{LeaseHolder, is_dead},
    process::OwnerProcess,
    uptime::Since,
};

/// How long a node that ended is still listed.
pub const FORGOTTEN_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// A node that joins a store.
///
/// ```
/// use std::time::Duration;
/// use safepoint::store::{NewNode, OwnerProcess};
/// let node = NewNode { name: "worker-1".into(), ..NewNode::of(OwnerProcess::here(), Duration::from_secs(4)) };
/// assert!(node.address.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// Its id: a fresh one for each time that a process joins.
    pub id: NodeId,
    /// Its name, for people. No two nodes that are present have the same.
    pub name: String,
    /// The process.
    pub owner: OwnerProcess,
    /// How long its lease is valid without a beat.
    pub ttl: Duration,
    /// The pools that it takes sessions of, beside those of none.
    pub pools: Vec<String>,
    /// How many sessions it takes at most.
    pub room: u32,
    /// Where other nodes reach it.
    pub address: Option<String>,
}

impl NewNode {
    /// A node of this process under a fresh id, which is its name too, without pools.
    #[must_use]
    pub fn of(owner: OwnerProcess, ttl: Duration) -> Self {
        const ROOM: u32 = 1_000;
        let id = NodeId::fresh();
        let name = id.as_str().to_owned();
        Self { id, name, owner, ttl, pools: Vec::new(), room: ROOM, address: None }
    }
}

/// What a node does. Exhaustive: it goes down this list and never up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    /// It takes sessions and holds them.
    Serving,
    /// It takes none, and gives back those that it holds.
    Draining,
    /// It was declared dead, for good.
    Buried,
    /// It left.
    Gone,
}

impl NodeState {
    /// Whether the node may hold sessions.
    #[must_use]
    pub fn is_present(self) -> bool {
        matches!(self, Self::Serving | Self::Draining)
    }
}

/// How a node leaves. Exhaustive: it begins to, or is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It takes no session any more. Any process may ask that of it.
    Draining,
    /// It is gone: what it still held wants an owner.
    Gone,
}

/// A node as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// What it joined with.
    pub node: NewNode,
    /// When it joined.
    pub since: Timestamp,
    /// When its lease is over, unless it beats.
    pub expires: Timestamp,
    /// The same as the time since the start of its machine; `None` if that is unknown.
    pub until: Option<Duration>,
    /// What it does.
    pub state: NodeState,
    /// How much it has to do, in its own measure.
    pub load: u32,
    /// When it was buried, or left.
    pub ended: Option<Timestamp>,
}

impl NodeRow {
    /// The row of a node that joins now.
    #[must_use]
    pub fn new(node: NewNode, outside: &Environment) -> Self {
        let since = outside.now();
        let mut row = Self {
            node,
            since,
            expires: since,
            until: None,
            state: NodeState::Serving,
            load: 0,
            ended: None,
        };
        row.renew(outside);
        row
    }

    /// Renews the lease for its full time from now.
    pub fn renew(&mut self, outside: &Environment) {
        let expires = outside.now().saturating_add(self.node.ttl).unwrap_or(Timestamp::MAX);
        self.expires = truncate_to_micros(expires);
        self.until = (outside.uptime)(&self.node.owner).map(|up| up.saturating_add(self.node.ttl));
    }

    /// As the holder of a session that it took at this time.
    #[must_use]
    pub fn as_holder(&self, since: Timestamp) -> LeaseHolder {
        LeaseHolder {
            node: self.node.id.clone(),
            name: self.node.name.clone(),
            address: self.node.address.clone(),
            owner: self.node.owner.clone(),
            since,
            expires: self.expires,
            until: self.until,
        }
    }

    /// Whether it is present and may be buried: it is provably dead, or its lease has been over for longer than the
    /// margin.
    #[must_use]
    pub fn may_be_buried(&self, outside: &Environment) -> bool {
        self.state.is_present() && is_dead(&self.node.owner, (self.expires, self.until), outside)
    }
}

/// The lease of a node on everything that it holds. Clones share one moment: a beat renews all of them.
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Debug)]
pub struct NodeLease {
    id: NodeId,
    ttl: Duration,
    /// Held to copy or to move it forward.
    since: Arc<Mutex<Since>>,
}

impl NodeLease {
    /// For implementations of a store. `since` is a moment *before* the store began to count, so that the holder's count
    /// ends before the store's.
    #[must_use]
    pub fn new(id: NodeId, ttl: Duration, since: Since) -> Self {
        Self { id, ttl, since: Arc::new(Mutex::new(since)) }
    }

    /// The node.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// How long it is valid without a beat.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// For implementations of a store: a beat was written. `since` is a moment before the store began to count. An earlier
    /// one than is known changes nothing.
    pub fn renewed(&self, since: Since) {
        let mut known = self.since.lock();
        if since.is_later_than(*known) {
            *known = since;
        }
    }

    /// How long it is still valid, by a clock of this machine that cannot be set and that counts while the machine sleeps. An
    /// effect needs a margin of it (S7.4).
    #[must_use]
    pub fn left(&self) -> Duration {
        let since = *self.since.lock();
        since.left(self.ttl)
    }

    /// When it ends, as the time since the machine's start ([`uptime`](super::uptime)); `None` if that is unknown.
    #[must_use]
    pub fn until(&self) -> Option<Duration> {
        let since = *self.since.lock();
        since.end_of(self.ttl)
    }
}

/// Which sessions a stop is for, when it is asked of many at once. Exhaustive: a store must know each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// Every one that a node holds.
    Held,
    /// Those that this node holds.
    Node(NodeId),
    /// Those of this pool, held or not.
    Pool(String),
    /// These.
    These(Vec<SessionId>),
}

/// When a session that is given back wants an owner again. Exhaustive: a store must know each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// When another process gives it something to do.
    Nothing,
    /// After this time by the store's clock, or before if it is given something to do.
    After(Duration),
    /// Now.
    Now,
}
