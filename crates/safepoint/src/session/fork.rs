//! A new session that continues a stored one from an earlier turn (S7.21).
//!
//! **Invariants**: the stored session is only read. The new one is there as a whole, with the conversation that it begins with,
//! or not at all.

use std::{collections::BTreeMap, sync::Arc};

use super::journal::{self, LaterCall, Past};
use crate::{
    contract::store::{self, Cause, Error, NewSession, Store},
    value::{
        history::note,
        ids::{SessionId, TurnId},
    },
};

/// A new session that continues a stored one: from the end of a turn, or from the end of its last one.
///
/// The conversation until then is copied. What was said later is not part of the new session, but what calls did then
/// stands, so the model learns of it. Questions, queued items and permissions that were given for the rest of the session stay
/// with the old one. To rewind a session is to fork it at a turn and to continue the fork.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// use safepoint::{session::Fork, store::{Error, MemoryStore, Store}};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
/// let forked = Fork::of("ses_1").named("ses_2").create(store).await;
/// assert!(matches!(forked, Err(Error::NoSession(_))), "it was never stored");
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fork is made by `create`"]
pub struct Fork {
    from: SessionId,
    at: Option<TurnId>,
    name: Option<SessionId>,
}

/// A session that was made by a [`Fork`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forked {
    /// The new session.
    pub session: SessionId,
    /// The turn of the old one that it continues.
    pub turn: TurnId,
    /// Calls of later turns that changed something, or may have: each with its arguments and what is known of its effects.
    /// Those that a provider ran itself are among them. If records of later turns cannot be read, the last entry says so,
    /// since they may tell of further calls. What was done stands, and the model learns of it.
    pub later: Vec<String>,
}

impl Fork {
    /// Of this session, at the end of its last turn that has ended.
    pub fn of(session: impl Into<SessionId>) -> Self {
        Self { from: session.into(), at: None, name: None }
    }

    /// Sets the turn at whose end it begins.
    pub fn at(mut self, turn: TurnId) -> Self {
        self.at = Some(turn);
        self
    }

    /// Sets the name of the new session. Default: a fresh one.
    pub fn named(mut self, session: impl Into<SessionId>) -> Self {
        self.name = Some(session.into());
        self
    }

    /// The calls that [`create`](Self::create) would name in [`Forked::later`], before anything is made: what they did, no fork
    /// takes back.
    ///
    /// # Errors
    /// [`Error::NoSession`], [`Error::NoTurn`], [`Error::Damaged`] and [`Error::DamagedAfter`], as for `create`.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn later_calls(&self, store: &dyn Store) -> Result<Vec<String>, Error> {
        let Past { later, .. } = journal::past(store, &self.from, self.at).await?;
        Ok(later.iter().map(ToString::to_string).collect())
    }

    /// Makes it. The old session may have an owner, which is not disturbed; what it adds meanwhile may be missing in the list of
    /// later calls. Records that cannot be read do not matter behind the turn that was [named](Self::at).
    ///
    /// # Errors
    /// [`Error::NoSession`] and [`Error::NoTurn`] say what is not there; [`Error::SessionExists`]: the name is taken;
    /// [`Error::DamagedAfter`]: a record cannot be read that stands before the end of the turn, or anywhere if no turn was
    /// named, and the error names the last turn at which the session can be forked; [`Error::Damaged`]: there is no such
    /// turn. Nothing was changed then, except possibly where [`Error::is_uncertain`].
    ///
    /// # Cancel safety
    /// The new session may have been made: as a whole, or not at all.
    pub async fn create(self, store: Arc<dyn Store>) -> Result<Forked, Error> {
        let Self { from, at, name } = self;
        let store = store::guarded(store);
        let row = store.open(&from).await?;
        let Past { turn, history, later, background } = journal::past(&*store, &from, at).await?;
        let mut notes: Vec<String> = background.iter().map(note::background_stays).collect();
        notes.extend(noted(&later));
        let later = later.iter().map(ToString::to_string).collect();
        let records = journal::continued((from, turn), &history, notes)?;
        let count = records.len() as u64;
        let session = name.unwrap_or_else(SessionId::fresh);
        let new = NewSession {
            title: row.title,
            label: "idle".into(),
            setup: row.setup,
            records,
            ..NewSession::of(session.clone())
        };
        let made = store.create(new).await?;
        if made.head != count {
            let why = "this store creates sessions without all of the records that they begin with";
            // It would be another session than the one that was asked for.
            return Err(match store.remove(&session).await {
                Ok(()) => Error::Failed(Cause::new(why)),
                Err(error) => Error::Unknown(Cause::new(format!(
                    "{why}, and session {session}, which was made so, could not be removed: {error}"
                ))),
            });
        }
        Ok(Forked { session, turn, later })
    }
}

/// What the model learns of later calls: the newest ones each, and how many of which tool there were before those.
fn noted(later: &[LaterCall]) -> Option<String> {
    const EACH: usize = 20;
    let (earlier, newest) = later.split_at(later.len().saturating_sub(EACH));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in earlier.iter().filter_map(LaterCall::tool) {
        *counts.entry(tool).or_default() += 1;
    }
    let before = counts.into_iter().map(|(tool, count)| format!("{tool} ({count} calls)"));
    let lines: Vec<String> = before.chain(newest.iter().map(ToString::to_string)).collect();
    (!lines.is_empty()).then(|| note::done_later(&lines))
}
