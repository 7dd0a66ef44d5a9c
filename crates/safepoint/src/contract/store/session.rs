//! A session's row, and the small numbers that tell its owner that somebody wrote.

use jiff::Timestamp;

use crate::value::ids::SessionId;

use super::{chain::Chain, lease::LeaseHolder};

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its name.
    pub id: SessionId,
    /// A few words for people; may be empty.
    pub title: String,
    /// Its state, in the words of whoever writes it.
    pub label: String,
}

impl NewSession {
    /// A session of this name, without title or label.
    pub fn of(id: impl Into<SessionId>) -> Self {
        Self { id: id.into(), title: String::new(), label: String::new() }
    }
}

/// What a list of sessions shows of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// When it was made.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
    /// Its state, in the words of whoever writes it.
    pub label: String,
    /// A few words for people.
    pub title: String,
    /// What the session's program wants to find again, in its own words; empty if it has said nothing.
    pub setup: String,
    /// How many records its journal has: the position of the next one.
    pub head: u64,
    /// The checksum of the newest record.
    pub chain: Chain,
    /// The epoch of the newest lease; 0 before the first.
    pub epoch: u64,
    /// Who holds it.
    pub holder: Option<LeaseHolder>,
}

/// Where a list went on: after this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// When it was last changed.
    pub updated: Timestamp,
    /// Its name.
    pub id: SessionId,
}

impl SessionRow {
    /// What a list that goes on after this one is older than.
    #[must_use]
    pub fn older(&self) -> PageCursor {
        PageCursor { updated: self.updated, id: self.id.clone() }
    }
}

/// A mark that changes with the store. Only comparing it for equality means anything, and only with marks of the same
/// store in the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeMark(u64);

impl ChangeMark {
    /// For those who implement a store.
    #[must_use]
    pub fn new(mark: u64) -> Self {
        Self(mark)
    }
}

/// The newest number of each kind that others may write. A greater one than before means: look there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changes of the inbox by others: items pushed or withdrawn.
    pub items: u64,
    /// Stop intents asked.
    pub stops: u64,
    /// Approvals that were decided, or withdrawn by an asker of a stop.
    pub decisions: u64,
    /// The epoch of the newest lease: another than one's own means that one is fenced.
    pub epoch: u64,
}
