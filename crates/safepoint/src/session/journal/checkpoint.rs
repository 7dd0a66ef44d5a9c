//! A checkpoint: what the records up to the beginning of a turn say, kept as one record, so that opening a long session
//! need not read them (S7.17).
//!
//! **Invariants**: nothing is believed but by the journal: a checkpoint names the checksum of the records that it stands for, and
//! is used only if the records after those lead from there to the newest checksum of the session's row. One that is
//! damaged, of another version, or of other records is passed over, and every record is read.

use std::collections::{HashSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Journal, line::Grown, look::looked, mark};
use crate::{
    contract::store::{Chain, JournalEntry, Record, Write},
    run::shared::AllowState,
    session::lost_runs::FoldedBackground,
    value::{
        history::History,
        ids::{Path, SessionId},
        json,
    },
};

/// The only version that is read: how the records are folded, and how that is written. Another fold is another version.
const VERSION: u32 = 3;

/// How many records a checkpoint stands for at least.
pub(super) const EVERY: u64 = 512;
/// The most bytes of one: a store keeps it as one record, and it is in memory as a whole.
const MOST: usize = 64 << 20;
/// From this number of records on after a checkpoint that would be due, it is made of later ones.
const AGAIN: u64 = 128;
/// How many of the newest records are looked at for a checkpoint at first: those after it are read in any case.
const FIRST_LOOK: u64 = 256;

/// What the records before a turn say, but for the turns themselves.
#[derive(Clone)]
pub(super) struct Folded {
    /// Where the record of the turn's beginning stands.
    pub(super) at: u64,
    /// The checksum of the records before it.
    pub(super) chain: Chain,
    /// The conversation before the turn, closed.
    pub(super) history: History,
    pub(super) sides: Sides,
}

/// What is folded beside the conversation, over all turns.
#[derive(Clone, Default)]
pub(super) struct Sides {
    pub(super) always: AllowState,
    pub(super) background: HashSet<Path>,
    pub(super) runs: FoldedBackground,
}

/// A checkpoint in its stable form.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// The position after the last record that it stands for: the next one begins a turn.
    at: u64,
    /// The checksum of that last record.
    chain: Vec<u8>,
    /// The checkpoint that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Earlier>,
    /// The conversation, by what it adds to the earlier checkpoint's.
    history: Grown,
    #[serde(default, skip_serializing_if = "crate::value::is_default")]
    always: AllowState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    background: Vec<Path>,
    #[serde(default, skip_serializing_if = "crate::value::is_default")]
    runs: FoldedBackground,
}

/// Where another checkpoint stands, and what it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Earlier {
    position: u64,
    /// Its mark: see [`mark`].
    mark: String,
}

/// A checkpoint as it was read, and where.
pub(super) struct FoundCheckpoint {
    pub(super) folded: Folded,
    pub(super) position: u64,
    /// The record itself, once it was passed on the way to the journal's end.
    pub(super) record: Option<Record>,
    /// The end of the journal, as far as it was read in search of it.
    pub(super) end: VecDeque<JournalEntry>,
}

impl FoundCheckpoint {
    /// What one that continues it names it by.
    fn place(&self, session: &SessionId) -> Option<Earlier> {
        let record = self.record.as_ref()?;
        Some(Earlier { position: self.position, mark: mark(session, record).to_string() })
    }
}

impl Sides {
    fn entries(&self) -> u64 {
        (self.always.entries() + self.background.len() + self.runs.entries()) as u64
    }
}

impl Folded {
    /// Whether one at `position` may be due: it stands for enough more records than the one at `before`, and than the `last`
    /// that was found worth it in the same fold, so that a long fold does not copy at every turn.
    pub(super) fn may_be_due(position: u64, before: u64, last: Option<&Self>) -> bool {
        position.saturating_sub(before) >= EVERY
            && last.is_none_or(|last| position - last.at >= AGAIN.max(last.sides.entries()))
    }

    /// As a record that continues the checkpoint before it; `None` if it would be too large.
    pub(super) fn write(self, session: &SessionId, before: Option<&FoundCheckpoint>) -> Option<Write> {
        let after = before.map(|before| before.place(session).ok_or(())).transpose().ok()?;
        let shared = before.map_or(0, |before| shared(&before.folded.history, &self.history));
        let entries = self.history.entries().range(shared..).cloned().collect();
        let Sides { always, background, runs } = self.sides;
        let mut background = Vec::from_iter(background);
        background.sort_unstable();
        let checkpoint = Checkpoint {
            at: self.at,
            chain: self.chain.as_bytes().to_vec(),
            after,
            history: Grown { base: shared, entries, view: self.history.view().clone() },
            always,
            background,
            runs,
        };
        let bytes = json::to_vec_within(&checkpoint, MOST).ok().flatten()?;
        Some(Write::Record(Record {
            path: String::new(),
            kind: Record::CHECKPOINT.into(),
            version: VERSION,
            bytes,
        }))
    }
}

/// How many entries the two begin with alike: of one fold, so that what is alike is the same.
fn shared(one: &History, other: &History) -> usize {
    one.entries().common(other.entries(), |_one, _other| false)
}

/// The newest checkpoint among the newer half of `head` records, if that can be read. `None`: every record is read. So what is
/// written again as a whole is written where the journal has doubled.
pub(super) async fn newest(journal: &Journal, head: u64) -> Option<FoundCheckpoint> {
    let (mut to, mut look) = (head, FIRST_LOOK);
    while to > head / 2 {
        let from = to.saturating_sub(look);
        let most = usize::try_from(to - from).ok()?;
        let page = looked(journal.store().read(journal.session(), from, most)).await.ok()?;
        let found = page.entries.iter().rev().find_map(|entry| {
            let record = entry.record.as_ref().ok().filter(|record| record.is_checkpoint())?;
            Some((entry.position, record))
        });
        if let Some((position, record)) = found {
            let (folded, end) = (read(journal, position, record).await?, page.entries.into());
            let end = if to == head { end } else { VecDeque::new() };
            return Some(FoundCheckpoint { folded, position, record: None, end });
        }
        (to, look) = (from, (4 * look).min(1024));
    }
    None
}

/// Reads a checkpoint, and those that it continues.
async fn read(journal: &Journal, position: u64, record: &Record) -> Option<Folded> {
    let session = journal.session();
    let newest = parsed(record)?;
    let (mut grown, mut after) = (vec![newest.history], newest.after);
    let mut last = position;
    while let Some(Earlier { position, mark: expected }) = after {
        // Each stands before the one that continues it, so this ends.
        let is_earlier = position < last;
        let page = looked(journal.store().read(session, position, 1)).await.ok().filter(|_| is_earlier)?;
        let record = page.entries.into_iter().next()?.record.ok()?;
        let earlier = parsed(&record).filter(|_| mark(session, &record).to_string() == expected)?;
        grown.push(earlier.history);
        (after, last) = (earlier.after, position);
    }
    let mut history = History::new();
    for grown in grown.into_iter().rev() {
        if grown.base > history.entries().len() {
            return None;
        }
        history = grown.onto(&history);
    }
    let sides = Sides {
        always: newest.always,
        background: newest.background.into_iter().collect(),
        runs: newest.runs,
    };
    let folded = Folded { at: newest.at, chain: Chain::from_bytes(&newest.chain)?, history, sides };
    (folded.at <= position).then_some(folded)
}

fn parsed(record: &Record) -> Option<Checkpoint> {
    let is_known = record.is_checkpoint() && record.version == VERSION;
    is_known.then(|| serde_json::from_slice(&record.bytes).ok()).flatten()
}

#[cfg(test)]
mod tests;
