//! One record of a session's journal, in its stable form.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    contract::store::{Damage, DamageKind, Record, Write},
    session::outcome::ItemOutcome,
    sync::clock,
    value::{
        event::Fact,
        history::{History, Message, View},
        ids::{Path, SessionId, TurnId},
        json,
    },
};

/// The newest version of a line that this release reads and writes.
const VERSION: u32 = 4;
/// That of a line by which a turn is given up: a release that would resume the turn anyway then reports that it cannot read it.
const GIVEN_UP: u32 = 2;
/// That of a session's beginning: a release that would continue without the conversation reports the same.
const BEGUN: u32 = 3;
/// That of a part of that conversation which another record holds: the same.
const BEGUN_MORE: u32 = 4;
/// The version of lines that every release has written: an older release still reads them.
const FIRST: u32 = 1;

/// What happened to a session. Exhaustive: recovery must fold each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(in crate::session) enum JournalLine {
    /// The session continues another one, from the end of a turn of that: always the first line (S7.21).
    Begun {
        from: SessionId,
        turn: TurnId,
        /// The conversation that it begins with, by what it adds to an empty one.
        history: Grown,
        /// What follows it: what the engine says to the model of what was done later.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        at: Timestamp,
    },
    /// More of the conversation that the session begins with: of one that takes more than one record, right behind the first
    /// line; or the first line, of one that its program gave (S7.50).
    BegunMore {
        /// By what it adds to what the lines before have.
        history: Grown,
        /// What follows it, in the last of these lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        at: Timestamp,
    },
    /// A turn is about to begin on these items of the inbox.
    Planned {
        turn: TurnId,
        items: Vec<u64>,
        /// When it was written; records of an early release do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// A fact of the turn's run, or of a child run of it.
    Fact {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Path::is_root")]
        path: Path,
        fact: Arc<Fact>,
        /// What the turn's history adds to the one before: a history is never written twice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grown: Option<Grown>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// The turn is over, or waits.
    Ended {
        turn: TurnId,
        fate: ItemOutcome,
        /// Where the turn ended early: the items of the inbox up to this number wait for a later one (S5.3). An early release does not
        /// say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holds: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// The turn's history is forgotten.
    Forgotten {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// The turn ended early, and will not be resumed.
    GivenUp { turn: TurnId, at: Timestamp },
    /// Nothing of the turn is alive, or what is has been named.
    Quiet {
        turn: TurnId,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        survivors: Vec<String>,
    },
}

/// A history by what it adds to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::session) struct Grown {
    /// The number of entries shared with the other history.
    pub(in crate::session) base: usize,
    /// The entries after those.
    pub(in crate::session) entries: Vec<Arc<Message>>,
    /// Which part of it is sent.
    #[serde(default, skip_serializing_if = "crate::value::is_default")]
    pub(in crate::session) view: View,
}

impl Grown {
    /// All of a history, in parts that have about this many bytes as JSON: each adds to those before it, and an entry is never
    /// divided. At least one part.
    pub(in crate::session) fn parts(history: &History, bytes: usize) -> Result<Vec<Self>, serde_json::Error> {
        let part = |base| Self { base, entries: Vec::new(), view: View::default() };
        let (mut parts, mut last, mut taken) = (Vec::new(), part(0), 0);
        for (number, entry) in history.entries().iter().enumerate() {
            let more = json::to_vec(entry)?.len();
            if taken + more > bytes && !last.entries.is_empty() {
                parts.push(std::mem::replace(&mut last, part(number)));
                taken = 0;
            }
            last.entries.push(Arc::clone(entry));
            taken += more;
        }
        // Which part of it is sent is known of the whole one.
        last.view = history.view().clone();
        parts.push(last);
        Ok(parts)
    }

    /// The history that adds this to `before`.
    pub(in crate::session) fn onto(self, before: &History) -> History {
        before.continued(self.base, self.entries, self.view)
    }
}

impl JournalLine {
    pub(in crate::session) fn planned(turn: TurnId, items: Vec<u64>) -> Self {
        Self::Planned { turn, items, at: Some(clock::now()) }
    }

    pub(in crate::session) fn fact(turn: TurnId, path: Path, fact: Arc<Fact>, grown: Option<Grown>) -> Self {
        Self::Fact { turn, path, fact, grown, at: Some(clock::now()) }
    }

    pub(in crate::session) fn ended(turn: TurnId, fate: ItemOutcome, holds: Option<u64>) -> Self {
        Self::Ended { turn, fate, holds, at: Some(clock::now()) }
    }

    pub(in crate::session) fn forgotten(turn: TurnId) -> Self {
        Self::Forgotten { turn, at: Some(clock::now()) }
    }

    pub(in crate::session) fn given_up(turn: TurnId) -> Self {
        Self::GivenUp { turn, at: clock::now() }
    }

    pub(in crate::session) fn write(&self) -> Result<Write, serde_json::Error> {
        self.record().map(Write::Record)
    }

    pub(in crate::session) fn record(&self) -> Result<Record, serde_json::Error> {
        let (kind, path) = match self {
            Self::Begun { .. } => ("begun", String::new()),
            Self::BegunMore { .. } => ("begun_more", String::new()),
            Self::Planned { turn, .. } => ("planned", turn.to_string()),
            Self::Fact { turn, path, .. } => ("fact", format!("{turn}/{path}")),
            Self::Ended { turn, .. } => ("ended", turn.to_string()),
            Self::Forgotten { turn, .. } => ("forgotten", turn.to_string()),
            Self::GivenUp { turn, .. } => ("given_up", turn.to_string()),
            Self::Quiet { turn, .. } => ("quiet", turn.to_string()),
        };
        let version = match self {
            Self::Begun { .. } => BEGUN,
            Self::BegunMore { .. } => BEGUN_MORE,
            Self::GivenUp { .. } => GIVEN_UP,
            _ => FIRST,
        };
        let bytes = json::to_vec(self)?;
        Ok(Record { path, kind: kind.into(), version, bytes })
    }

    /// Reads what stands at `position`.
    pub(in crate::session) fn read(position: u64, record: &Record) -> Result<Self, Damage> {
        let bytes = record.known(position, VERSION)?;
        if let Some(fact) = FactLine::read(bytes) {
            return Ok(fact);
        }
        serde_json::from_slice(bytes)
            .map_err(|error| Damage { position, flaw: DamageKind::Unreadable { why: error.to_string() } })
    }
}

/// A [`JournalLine::Fact`], as most lines are, read in one go: as one of several kinds of lines it would be kept as loose values
/// first, to look for its kind.
#[derive(Deserialize)]
struct FactLine<'a> {
    /// No other line is read as a fact.
    line: &'a str,
    turn: TurnId,
    #[serde(default)]
    path: Path,
    fact: Arc<Fact>,
    #[serde(default)]
    grown: Option<Grown>,
    #[serde(default)]
    at: Option<Timestamp>,
}

impl FactLine<'_> {
    fn read(bytes: &[u8]) -> Option<JournalLine> {
        let FactLine { line, turn, path, fact, grown, at } = serde_json::from_slice(bytes).ok()?;
        (line == "fact").then_some(JournalLine::Fact { turn, path, fact, grown, at })
    }
}

#[cfg(test)]
mod tests;
