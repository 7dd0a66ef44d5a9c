//! What takes sessions up on a node, and what it is woken for.

use std::time::Duration;

use futures_core::future::BoxFuture;
use safepoint::{ids::SessionId, raw::store::Due};

/// A session that wants an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wake {
    /// The session.
    pub session: SessionId,
    /// Its pool: only nodes that name it take the session. Empty: any node does.
    pub pool: String,
    /// How urgent it is: lower comes first.
    pub priority: i16,
    /// How many of its owners died since it last was at rest.
    pub tries: u16,
}

impl Wake {
    /// A wake of this session, in no pool, with the priority 0.
    pub fn of(session: impl Into<SessionId>) -> Self {
        Self { session: session.into(), pool: String::new(), priority: 0, tries: 0 }
    }
}

impl From<Due> for Wake {
    fn from(due: Due) -> Self {
        Self { session: due.session, pool: due.pool, priority: due.priority, tries: due.tries }
    }
}

/// What a node can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCapacity {
    /// The pools of which it takes sessions, beside those in none.
    pub pools: Vec<String>,
    /// How many sessions it takes at once.
    pub room: usize,
    /// How long its lease in the store holds without being renewed: a placement that looks for dead nodes by itself looks no earlier.
    pub lease: Duration,
}

/// How a take ended. Exhaustive: a placement with a queue decides about each; [`Here`](crate::Here) leaves all to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeResult {
    /// The node had it, and gave it back: it is at rest, or was stopped so that another node resumes it.
    Released,
    /// There is nothing to take: another node has the session, it is gone, or it is none of this node's.
    Elsewhere,
    /// No node takes it until a person asks for that: its owners died too often (S7.46).
    Parked,
    /// The node has no room or takes nothing any more: another one may.
    NoRoom,
    /// The store did not answer, or the node lost the session. What is left of it becomes due in the store.
    Lost,
}

/// What a node does with a session that it is woken for: `safepoint_server::Host` opens it with the agent that it began with.
pub trait Taker: Send + Sync + 'static {
    /// Opens the session and stays until it was given back or is lost.
    ///
    /// # Cancel safety
    /// A session that was opened stays open.
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult>;
}
