//! What is written to a session's journal, and what is read from it.

use std::fmt;

use crate::value::ids::ApprovalId;

use super::{
    approval::{ApprovalClose, NewApproval},
    chain::Chain,
};

/// One opaque record. The store keeps it without reading its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The path of its run in the session's tree.
    pub path: String,
    /// Its kind, as its writer names it.
    pub kind: String,
    /// The version of its kind.
    pub version: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Record {
    /// The content, if the caller knows its version.
    ///
    /// # Errors
    /// [`DamageKind::Newer`] at `position`, if a later release wrote the record.
    pub fn known(&self, position: u64, newest: u32) -> Result<&[u8], Damage> {
        if self.version <= newest {
            return Ok(&self.bytes);
        }
        let flaw = DamageKind::Newer { kind: self.kind.clone(), version: self.version, known: newest };
        Err(Damage { position, flaw })
    }
}

/// How much a write must survive before it is acknowledged. Exhaustive: two classes (S7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In order, and survives the death of the process.
    Recorded,
    /// Survives power loss too.
    Durable,
}

/// One write of the holder of a session. Exhaustive: a store must do each.
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
}

/// What an append has done.
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

/// Damage to a record, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first damaged position.
    pub position: u64,
    /// What is wrong.
    pub flaw: DamageKind,
}

/// The kinds of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// It is not what was written, or the one before it is not.
    Altered,
    /// It is missing, and later ones exist.
    Missing,
    /// From here on the journal's end is lost: the session's row counts more records.
    TailLost {
        /// How many records there should be.
        head: u64,
    },
    /// From here on there are records that the session's row does not count.
    Unannounced,
    /// The newest record is not the one that the session's row names.
    OtherHead,
    /// The store cannot read it.
    Unreadable {
        /// In the store's words.
        why: String,
    },
    /// A later release wrote it.
    Newer {
        /// The kind of record.
        kind: String,
        /// Its version.
        version: u32,
        /// The newest version that is known here.
        known: u32,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position;
        match &self.flaw {
            DamageKind::Altered => write!(f, "record {position} is not what was written"),
            DamageKind::Missing => write!(f, "record {position} is missing"),
            DamageKind::TailLost { head } => {
                write!(f, "the end is lost from record {position} on, of {head}")
            }
            DamageKind::Unannounced => write!(f, "record {position} is more than the session knows of"),
            DamageKind::OtherHead => write!(f, "record {position} is the newest, and not the one that was"),
            DamageKind::Unreadable { why } => write!(f, "record {position} cannot be read: {why}"),
            DamageKind::Newer { kind, version, known } => {
                write!(
                    f,
                    "record {position} is `{kind}` of version {version}, and {known} is the newest known here"
                )
            }
        }
    }
}

impl std::error::Error for Damage {}
