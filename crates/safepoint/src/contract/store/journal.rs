//! What is written to a session's journal, and what is read from it.

use crate::value::ids::ApprovalId;

use super::{
    approval::{ApprovalClose, NewApproval},
    chain::Chain,
    record::{Damage, Record},
};

/// How much a write must survive before it is acknowledged. Exhaustive: two classes (S7.1).
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In order, and survives the death of the process.
    Recorded,
    /// Survives power loss too.
    Durable,
}

/// One write of the holder of a session. Exhaustive: a store must do each.
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A record, at the journal's end.
    Record(Record),
    /// The item is taken by a turn: it no longer waits.
    TakeItem(u64),
    /// The item was taken and waits again, at its old place.
    PutBackItem(u64),
    /// The item is done. Its client id stays known.
    RemoveItem(u64),
    /// No item is accepted any more.
    CloseInbox,
    /// Items are accepted again.
    OpenInbox,
    /// The stop intent of this number has been applied. Every other one stays in force, earlier ones too.
    StopSeen(u64),
    /// An approval is requested.
    OpenApproval(NewApproval),
    /// An approval is over.
    CloseApproval(ApprovalId, ApprovalClose),
    /// The session's state.
    Label(String),
    /// The session's title.
    Title(String),
    /// What the session's program stores for itself.
    Setup(String),
    /// The session begins to work: owners that die from now on count (S7.46).
    AtWork,
    /// The session came to rest: its dead owners are counted from none again.
    AtRest,
}

impl Write {
    /// Whether it says something new, so that the session has changed.
    #[must_use]
    pub fn is_news(&self) -> bool {
        match self {
            Self::Record(record) => !record.is_checkpoint(),
            Self::AtWork | Self::AtRest => false,
            _ => true,
        }
    }
}

/// What an append has done.
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The position of the first record of the append.
    pub first: u64,
    /// The position after its last one.
    pub next: u64,
    /// The checksum of the newest record.
    pub chain: Chain,
    /// Approvals that were to be withdrawn or expired, and were decided before: their decisions stand.
    pub decided: Vec<ApprovalId>,
}

/// A part of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// One for each position, in order.
    pub entries: Vec<JournalEntry>,
    /// Where to continue reading; `None` at the end.
    pub next: Option<u64>,
}

/// The entry at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Counted from 0.
    pub position: u64,
    /// The record, or what is wrong with it.
    pub record: Result<Record, Damage>,
}
