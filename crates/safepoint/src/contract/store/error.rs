//! Why a request to a store failed.

use std::{error::Error as StdError, fmt, sync::Arc};

use crate::value::ids::{ApprovalId, NodeId, SessionId, TurnId};

use super::{lease::LeaseHolder, record::Damage};

/// Why a request to a store failed. Unless [`Error::is_uncertain`], nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session does not exist.
    #[error("session {0} not found")]
    NoSession(SessionId),
    /// The session exists already.
    #[error("there is a session {0} already")]
    SessionExists(SessionId),
    /// Another process holds the session.
    #[error("session {0} is held by {owner}", owner = .1.owner)]
    Held(SessionId, Box<LeaseHolder>),
    /// The lease is not the newest: its holder was displaced, or released it.
    #[error("the lease of epoch {epoch} on session {session} is over: the newest is {newest}")]
    Fenced {
        /// The session.
        session: SessionId,
        /// The lease's epoch.
        epoch: u64,
        /// The newest epoch.
        newest: u64,
    },
    /// The node was declared dead: it holds nothing and records nothing any more. Its process joins again, under
    /// another id.
    #[error("node {0} was declared dead; what it held is for others")]
    Buried(NodeId),
    /// The node's lease ended before it could be renewed: others may have what it held.
    #[error("the lease of node {0} was over before it could be renewed")]
    NodeLapsed(NodeId),
    /// The node takes no session any more.
    #[error("node {0} is draining and takes no session")]
    Draining(NodeId),
    /// A node of this name is present already.
    #[error("a node called {0} is there already; wait for its end, or join under another name")]
    NodeExists(String),
    /// The session's owners died again and again. It can be read and stopped; no node takes it until it is unparked.
    #[error("session {0} is parked: {1}")]
    Parked(SessionId, String),
    /// The lease ended before it could be renewed: another process may have the session.
    #[error("the lease on session {0} was over before it could be renewed")]
    Lapsed(SessionId),
    /// A push of this item would be refused, so the session that was to begin with it is not created. The
    /// items are counted from 1.
    #[error("a session cannot begin with item {0}: the inbox has no room for it, or its id is used twice")]
    ItemRefused(u64),
    /// The item is not where the write expects it: it was withdrawn, or taken before.
    #[error("item {0} is not there to be taken, put back or removed")]
    ItemElsewhere(u64),
    /// There is no stop intent of that number.
    #[error("there is no stop intent {0}")]
    NoStop(u64),
    /// There is no such approval, or none that is decided.
    #[error("there is no approval {0} that could be closed so")]
    NoApproval(ApprovalId),
    /// There is an approval of that id already.
    #[error("there is an approval {0} already")]
    ApprovalExists(ApprovalId),
    /// The session has no such turn, or it has not ended. `None`: it has no turn that has ended.
    #[error("session {0} has no ended turn{of}", of = .1.map(|turn| format!(" {}", turn.number())).unwrap_or_default())]
    NoTurn(SessionId, Option<TurnId>),
    /// A session was opened with a conversation to begin with, and it has begun with another one, or with none.
    #[error(
        "session {0} has begun with another conversation than the one given: open it without one, or under another name"
    )]
    BegunOtherwise(SessionId),
    /// The session is in no store, or has ended, so that its handle cannot fork it.
    #[error("this session is in no store, or has ended: a stored one is forked by its name")]
    NotStored,
    /// What is stored cannot be read.
    #[error("session {0} is damaged: {1}")]
    Damaged(SessionId, Damage),
    /// What is stored can be read up to the end of this turn, and was to be read beyond it.
    #[error("session {0} is damaged: {1}; it can be forked at turn {turn}, or at an earlier one", turn = .2.number())]
    DamagedAfter(SessionId, Damage, TurnId),
    /// A release that came later wrote this store.
    #[error("the store has version {found}, and {known} is the newest known here")]
    Newer {
        /// Its version.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// There is no room.
    #[error("the store is full: {0}")]
    Full(Cause),
    /// It can only be read.
    #[error("the store can only be read: {0}")]
    ReadOnly(Cause),
    /// Another process has been writing for too long.
    #[error("the store is busy: {0}")]
    Busy(Cause),
    /// The write failed, and nothing was written.
    #[error("the store could not be used: {0}")]
    Failed(Cause),
    /// It is unknown whether it was written; the next opening tells.
    #[error("whether it was stored is not known: {0}")]
    Unknown(Cause),
    /// The store was closed before it answered.
    #[error("the store was closed")]
    Gone,
}

impl Error {
    /// Whether something may have been written.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Gone)
    }
}

/// The error of the layer below.
#[derive(Clone, Debug)]
pub struct Cause(Arc<dyn StdError + Send + Sync>);

impl Cause {
    /// Wraps it.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
