//! Reads a session through its store alone, without a lease and without changing anything.
//!
//! **Invariants**: every position of the journal is passed on once, in order. An unreadable record is
//! reported in its place, and the records after it are read.

use std::sync::Arc;

use jiff::Timestamp;

use super::JournalLine;
use crate::{
    contract::store::{self, Damage, Store, export_from},
    session::outcome::ItemOutcome,
    value::{
        event::Fact,
        history::Message,
        ids::{Path, SessionId, TurnId},
    },
};

/// What stands at one position of a session's journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalStep {
    /// Counted from 0.
    pub position: u64,
    /// When it was written; records of an early release do not say.
    pub at: Option<Timestamp>,
    /// What was recorded, or what is wrong with the record.
    pub what: Result<JournalFact, Damage>,
}

/// What was recorded of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JournalFact {
    /// The session continues another one, from the end of a turn of that (S7.21).
    Begun {
        /// The other session.
        from: SessionId,
        /// Its turn.
        turn: TurnId,
        /// The conversation until then.
        history: Vec<Arc<Message>>,
    },
    /// More of the conversation that the session begins with: it took more than one record, or it continues no other session
    /// but has what its program gave (S7.50).
    BegunMore {
        /// The next part of it.
        history: Vec<Arc<Message>>,
    },
    /// A turn was about to begin, on these items of the store's inbox.
    Planned {
        /// Which.
        turn: TurnId,
        /// The items, by their numbers in the store.
        items: Vec<u64>,
    },
    /// A fact of the turn's run, or of a child run of it.
    Fact {
        /// Which turn.
        turn: TurnId,
        /// Which run of the tree.
        path: Path,
        /// What is so. That of a turn's first attempt has no history: `grown` has what the turn adds to it.
        fact: Arc<Fact>,
        /// What the conversation grew by as the turn began: what closed the one before, and what was asked.
        grown: Vec<Arc<Message>>,
    },
    /// The turn was over, or began to wait.
    Ended {
        /// Which.
        turn: TurnId,
        /// How.
        fate: ItemOutcome,
    },
    /// The turn was taken out of the conversation.
    Forgotten {
        /// Which.
        turn: TurnId,
    },
    /// The turn had ended early and was given up: it is never resumed.
    GivenUp {
        /// Which.
        turn: TurnId,
    },
    /// What the records before some turn say was written once more, so that opening the session need not read them (S7.17).
    Checkpoint,
    /// Nothing of the turn was alive any more, or what was had been named.
    Quiet {
        /// Which.
        turn: TurnId,
        /// What was alive.
        survivors: Vec<String>,
    },
}

/// Passes on everything that was recorded of a session, oldest first, whether the session has an owner or
/// not.
///
/// # Errors
/// The store's error, if the journal cannot be read at all, if the store panics, or if there is no such
/// session. Damage to one record is reported in its place.
///
/// # Cancel safety
/// Nothing is lost; records already passed on stay passed on.
pub async fn read_journal(
    store: &dyn Store,
    session: &SessionId,
    each: impl FnMut(JournalStep) + Send,
) -> Result<(), store::Error> {
    read_journal_from(store, session, 0, each).await
}

/// The same from this position on, which may be the one behind the last: then nothing is passed on.
///
/// # Errors
/// As of [`read_journal`].
///
/// # Cancel safety
/// As of [`read_journal`].
pub async fn read_journal_from(
    store: &dyn Store,
    session: &SessionId,
    from: u64,
    mut each: impl FnMut(JournalStep) + Send,
) -> Result<(), store::Error> {
    export_from(store, session, from, |entry| {
        let position = entry.position;
        let line = entry.record.and_then(|record| {
            (!record.is_checkpoint()).then(|| JournalLine::read(position, &record)).transpose()
        });
        each(match line {
            Ok(Some(line)) => past(position, line),
            Ok(None) => JournalStep { position, at: None, what: Ok(JournalFact::Checkpoint) },
            Err(damage) => JournalStep { position, at: None, what: Err(damage) },
        });
    })
    .await
}

fn past(position: u64, line: JournalLine) -> JournalStep {
    let (at, what) = match line {
        JournalLine::Begun { from, turn, history, at, .. } => {
            (Some(at), JournalFact::Begun { from, turn, history: history.entries })
        }
        JournalLine::BegunMore { history, at, .. } => {
            (Some(at), JournalFact::BegunMore { history: history.entries })
        }
        JournalLine::Planned { turn, items, at } => (at, JournalFact::Planned { turn, items }),
        JournalLine::Fact { turn, path, fact, grown, at } => {
            let grown = grown.map(|grown| grown.entries).unwrap_or_default();
            (at, JournalFact::Fact { turn, path, fact, grown })
        }
        JournalLine::Ended { turn, fate, at, .. } => (at, JournalFact::Ended { turn, fate }),
        JournalLine::Forgotten { turn, at } => (at, JournalFact::Forgotten { turn }),
        JournalLine::GivenUp { turn, at } => (Some(at), JournalFact::GivenUp { turn }),
        JournalLine::Quiet { turn, at, survivors } => (Some(at), JournalFact::Quiet { turn, survivors }),
    };
    JournalStep { position, at, what: Ok(what) }
}
