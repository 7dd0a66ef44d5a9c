//! What a session was at the end of a turn, and what was done after that (S7.21).

use super::{
    JournalLine, PAGE,
    recover::{Fold, LastTurn},
};
use crate::{
    contract::store::{Error, Store, guarded},
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
    /// The calls after it that changed something, or may have: what they did stands.
    pub(in crate::session) later: Vec<LaterCall>,
    /// The runs in the background that had not reported to the conversation yet.
    pub(in crate::session) background: Vec<Path>,
}

/// Reads the session as it was at the end of turn `at`, or of its last turn that has ended. It needs no lease and changes
/// nothing; an owner may add more meanwhile, which is not seen.
pub(in crate::session) async fn past(
    store: &dyn Store,
    session: &SessionId,
    at: Option<TurnId>,
) -> Result<Past, Error> {
    let (mut fold, mut ends, mut later) = (Fold::default(), Ends::of(at), Later::default());
    let mut from = Some(0);
    while let Some(position) = from {
        let page = guarded::read(|| store.read(session, position, PAGE)).await?;
        for entry in page.entries {
            let position = entry.position;
            let damaged = |damage| Error::Damaged(session.clone(), damage);
            let record = entry.record.map_err(damaged)?;
            if record.is_checkpoint() {
                continue;
            }
            let line = JournalLine::read(position, &record).map_err(damaged)?;
            if let JournalLine::Planned { .. } = line {
                ends.passed(position, fold.last_turn(true));
            }
            ends.see(position, &line);
            later.see(position, &line);
            fold.take(position, line);
        }
        from = page.next;
    }
    ends.passed(u64::MAX, fold.last_turn(false));
    let Some(End { turn, history, cut }) = ends.found else {
        return Err(Error::NoTurn(session.clone(), at));
    };
    let background = later.background(cut);
    Ok(Past { turn, history, later: later.calls(cut), background })
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
    /// Where the present turn begins, and where its end stands if it is recorded.
    begun: u64,
    ended: Option<u64>,
}

impl Ends {
    fn of(at: Option<TurnId>) -> Self {
        Self { at, found: None, begun: 0, ended: None }
    }

    /// The last turn so far is over at `position` at the latest: it is the one that is sought, or the last one so far.
    fn passed(&mut self, position: u64, last: Option<LastTurn>) {
        let is_sought = |last: &LastTurn| self.at.is_none_or(|at| at == last.turn);
        if let Some(LastTurn { turn, history, is_rolled_back }) = last.filter(is_sought) {
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
