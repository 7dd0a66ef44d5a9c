//! Checksums of records, each over the one before: damage, a lost tail and edits are found and located
//! (S7.7).
//!
//! This is not a signature: a writer of the file can recompute the chain.

use std::{cmp::Ordering, fmt};

use sha2::{Digest as _, Sha256};

use crate::value::ids::SessionId;

use super::record::{Damage, DamageKind, Record};

/// How many bytes a checksum has.
const LEN: usize = 32;
/// Names the algorithm; another algorithm gets another name.
const WAY: &[u8] = b"safepoint chain 1";

/// The checksum of a record and, through it, of all records before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Chain([u8; LEN]);

impl Chain {
    /// Where the chain of a session begins. It differs by session, so that no record fits into another's.
    #[must_use]
    pub fn of(session: &SessionId) -> Self {
        let mut hash = Sha256::new_with_prefix(WAY);
        part(&mut hash, session.as_str().as_bytes());
        Self(hash.finalize().into())
    }

    /// The checksum of the record that comes next.
    #[must_use]
    pub fn then(&self, position: u64, record: &Record) -> Self {
        let mut hash = Sha256::new_with_prefix(self.0);
        hash.update(position.to_be_bytes());
        hash.update(record.version.to_be_bytes());
        part(&mut hash, record.path.as_bytes());
        part(&mut hash, record.kind.as_bytes());
        part(&mut hash, &record.bytes);
        Self(hash.finalize().into())
    }

    /// As stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From what was stored, if it has the right length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// With its length, so that no two lists of parts look the same.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        self.0.iter().take(SHOWN).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The result of a check. Exhaustive: intact, or the first damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainCheck {
    /// Every record exists and matches.
    Intact(ChainSummary),
    /// The first record that is missing or does not match.
    Damaged(Damage),
}

/// An intact chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// How many records it has.
    pub records: u64,
    /// The newest checksum.
    pub head: Chain,
}

/// Follows a chain, record by record, from a known checksum.
#[derive(Clone, Debug)]
pub struct ChainReader {
    position: u64,
    before: Option<Chain>,
}

impl ChainReader {
    /// Begins at `position`, after a record with the checksum `before`; `None` if that one cannot be read, so
    /// that the first record is accepted as it is.
    #[must_use]
    pub fn from(position: u64, before: Option<Chain>) -> Self {
        Self { position, before }
    }

    /// Where the next record is expected.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of the last record, if it could be read.
    #[must_use]
    pub fn last(&self) -> Option<Chain> {
        self.before
    }

    /// Steps over the next record: `stored` is the checksum stored with it.
    ///
    /// # Errors
    /// The damage, if the record does not match the chain. The walk continues from the stored checksum, so
    /// that later records are judged independently.
    pub fn step(&mut self, record: Record, stored: Option<Chain>) -> Result<Record, Damage> {
        let position = self.position;
        let expected = self.before.map(|before| before.then(position, &record));
        let is_sound = stored.is_some() && expected.is_none_or(|expected| Some(expected) == stored);
        self.position += 1;
        self.before = stored;
        if is_sound { Ok(record) } else { Err(Damage { position, flaw: DamageKind::Altered }) }
    }

    /// Steps over a record that is missing or cannot be read.
    #[must_use]
    pub fn skip(&mut self, flaw: DamageKind) -> Damage {
        let position = self.position;
        self.position += 1;
        self.before = None;
        Damage { position, flaw }
    }

    /// Judges the end of a complete walk: whether it ends where, and as, the session's row says.
    #[must_use]
    pub fn end(&self, head: u64, newest: Chain) -> ChainCheck {
        let damaged = |position, flaw| ChainCheck::Damaged(Damage { position, flaw });
        match self.position.cmp(&head) {
            Ordering::Less => damaged(self.position, DamageKind::TailLost { head }),
            Ordering::Greater => damaged(head, DamageKind::Unannounced),
            Ordering::Equal if self.before == Some(newest) => {
                ChainCheck::Intact(ChainSummary { records: head, head: newest })
            }
            Ordering::Equal => damaged(head.saturating_sub(1), DamageKind::OtherHead),
        }
    }
}
