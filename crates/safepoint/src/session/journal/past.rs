//! What a session was at the end of a turn, and what was done after that (S7.21).

use super::{
    JournalLine, PAGE,
    recover::{Fold, LastTurn},
};
use crate::{
    contract::store::{Damage, Error, JournalEntry, Store, guarded},
    value::{
        event::Fact,
        history::History,
        ids::{Path, SessionId, TurnId},
    },
};

mod later;

use later::Later;
pub(in crate::session) use later::LaterCall;

/// A session at the end of a turn.
pub(in crate::session) struct Past {
    pub(in crate::session) turn: TurnId,
    /// The conversation, closed.
    pub(in crate::session) history: History,
    /// The calls after it that changed something, or may have: what they did stands. Records that cannot be read are among
    /// them, as one.
    pub(in crate::session) later: Vec<LaterCall>,
    /// The runs in the background that had not reported to the conversation yet.
    pub(in crate::session) background: Vec<Path>,
}

/// Reads the session as it was at the end of turn `at`, or of its last turn that has ended. It needs no lease and changes
/// nothing; an owner may add more meanwhile, which is not seen. What cannot be read is of no account where it stands behind
/// the end of `at`, and is named.
pub(in crate::session) async fn past(
    store: &dyn Store,
    session: &SessionId,
    at: Option<TurnId>,
) -> Result<Past, Error> {
    let (mut reading, mut from) = (Reading::of(at), Some(0));
    while let Some(position) = from {
        let page = guarded::read(|| store.read(session, position, PAGE)).await?;
        for entry in page.entries {
            reading.pass(session, entry)?;
        }
        from = page.next;
    }
    reading.past(session)
}

/// The records so far.
struct Reading {
    /// None once a record could not be read: what follows it is not folded.
    fold: Option<Fold>,
    ends: Ends,
    later: Later,
}

impl Reading {
    fn of(at: Option<TurnId>) -> Self {
        Self { fold: Some(Fold::default()), ends: Ends::of(at), later: Later::default() }
    }

    fn pass(&mut self, session: &SessionId, entry: JournalEntry) -> Result<(), Error> {
        let JournalEntry { position, record } = entry;
        let line = record.and_then(|record| {
            (!record.is_checkpoint()).then(|| JournalLine::read(position, &record)).transpose()
        });
        match line {
            Ok(Some(line)) => self.take(position, line),
            Ok(None) => {}
            Err(damage) => self.damaged(session, damage)?,
        }
        Ok(())
    }

    fn take(&mut self, position: u64, line: JournalLine) {
        self.later.see(position, &line);
        let Some(fold) = &mut self.fold else { return };
        if let JournalLine::Planned { .. } = line {
            self.ends.passed(position, fold.last_turn(true));
        }
        self.ends.see(position, &line);
        fold.take(position, line);
    }

    /// The conversation is known until here, so only the end of a turn that nothing behind this record can change.
    ///
    /// # Errors
    /// The turn that is sought is not known to have ended before. Where none is named, it is not known which was the last.
    fn damaged(&mut self, session: &SessionId, damage: Damage) -> Result<(), Error> {
        if let Some(fold) = self.fold.take() {
            self.ends.passed(damage.position, fold.last_turn(false).filter(|last| last.is_final));
        }
        if self.ends.at.is_some() && self.ends.found.is_some() {
            self.later.unreadable(damage.position);
            return Ok(());
        }
        Err(match self.ends.last {
            Some(turn) => Error::DamagedAfter(session.clone(), damage, turn),
            None => Error::Damaged(session.clone(), damage),
        })
    }

    fn past(mut self, session: &SessionId) -> Result<Past, Error> {
        if let Some(fold) = self.fold {
            self.ends.passed(u64::MAX, fold.last_turn(false));
        }
        let Some(End { turn, history, cut }) = self.ends.found else {
            return Err(Error::NoTurn(session.clone(), self.ends.at));
        };
        let background = self.later.background(cut);
        Ok(Past { turn, history, later: self.later.calls(cut), background })
    }
}

/// The end of a turn.
struct End {
    turn: TurnId,
    history: History,
    /// Where the records stand that say nothing of this conversation any more.
    cut: u64,
}

/// Looks for the end of the turn that is sought.
struct Ends {
    at: Option<TurnId>,
    found: Option<End>,
    /// The last one that is known to be over, sought or not.
    last: Option<TurnId>,
    /// Where the present turn begins, and where its end stands if it is recorded.
    begun: u64,
    ended: Option<u64>,
}

impl Ends {
    fn of(at: Option<TurnId>) -> Self {
        Self { at, found: None, last: None, begun: 0, ended: None }
    }

    /// The last turn so far is over at `position` at the latest: it is the one that is sought, or the last one so far.
    fn passed(&mut self, position: u64, last: Option<LastTurn>) {
        let Some(LastTurn { turn, history, is_rolled_back, .. }) = last else { return };
        self.last = Some(turn);
        if self.at.is_none_or(|at| at == turn) {
            let cut = if is_rolled_back { self.begun } else { self.ended.unwrap_or(position) };
            self.found = Some(End { turn, history, cut });
        }
    }

    fn see(&mut self, position: u64, line: &JournalLine) {
        match line {
            JournalLine::Planned { .. } => (self.begun, self.ended) = (position, None),
            JournalLine::Ended { .. } => self.ended = Some(position),
            JournalLine::Fact { path, fact, .. } if path.is_root() => match &**fact {
                Fact::Settled { .. } => self.ended = Some(position),
                // It is resumed.
                Fact::AttemptOpened { .. } => self.ended = None,
                _ => {}
            },
            _ => {}
        }
    }
}
