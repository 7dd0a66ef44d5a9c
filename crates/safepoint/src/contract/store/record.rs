//! One record of a journal, and what may be wrong with it.

use std::fmt;

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
    /// The kind of a record that says once more what the records before it say (S7.17). An append of nothing else is no news: it leaves
    /// the time at which the session last changed as it is.
    pub const CHECKPOINT: &str = "checkpoint";

    /// Whether it says nothing that the records before it do not, whatever its version.
    #[must_use]
    pub fn is_checkpoint(&self) -> bool {
        self.kind == Self::CHECKPOINT
    }

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
