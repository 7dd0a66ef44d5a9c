//! How a session ended, with every item accounted for (S6.10).

use std::fmt;

use super::{inbox::LateItems, outcome::ItemOutcome, stop::StoppedTurn};
use crate::{
    contract::store,
    run::outcome::{Outcome, Persisted},
    value::{
        event::{ErrorReport, ErrorSource},
        history::History,
        ids::{ItemId, TurnId},
    },
};

/// Why a session is over. Exhaustive: it was asked, it was idle long enough, or user code failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// It was asked to stop.
    Stopped,
    /// It was idle for as long as it might be.
    Idle,
    /// A planner, a strategy or a reader failed.
    Failed(ErrorReport),
}

/// How a session ended. Every caller gets the same exit.
pub struct SessionExit<T> {
    pub(super) reason: ExitReason,
    pub(super) cause: Option<String>,
    pub(super) after: StoppedTurn,
    pub(super) unhandled: Vec<(ItemId, T)>,
    pub(super) open: Option<OpenTurn<T>>,
    pub(super) history: History,
    pub(super) survivors: Vec<String>,
    pub(super) persisted: Persisted,
    pub(super) late: LateItems<T>,
}

/// The turn that ended early and was not resumed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenTurn<T> {
    /// Which.
    pub turn: TurnId,
    /// How it ended: interrupted, failed, preempted or suspended.
    pub fate: ItemOutcome,
    /// What it was about.
    pub items: Vec<(ItemId, T)>,
    /// Its outcome, from which it can be resumed; none if another process began it.
    pub outcome: Option<Outcome>,
}

impl<T> SessionExit<T> {
    /// Why.
    #[must_use]
    pub fn reason(&self) -> &ExitReason {
        &self.reason
    }
    /// The cause given by the first stop.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
    /// Whether the open turn may be resumed.
    #[must_use]
    pub fn after(&self) -> StoppedTurn {
        self.after
    }
    /// Items whose turn never came, in their order.
    #[must_use]
    pub fn unhandled(&self) -> &[(ItemId, T)] {
        &self.unhandled
    }
    /// The turn that ended early, if the last one did.
    #[must_use]
    pub fn open(&self) -> Option<&OpenTurn<T>> {
        self.open.as_ref()
    }
    /// The conversation.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }
    /// What of the background runs was alive when the session ended, by name. They were asked to stop now, and are fenced.
    #[must_use]
    pub fn survivors(&self) -> &[String] {
        &self.survivors
    }
    /// Whether all of it is recorded, in a session with a store.
    #[must_use]
    pub fn persisted(&self) -> &Persisted {
        &self.persisted
    }
    /// Items that were pushed after the end, where the session keeps them; each is given out once.
    #[must_use]
    pub fn take_late(&self) -> Vec<T> {
        std::mem::take(&mut self.late.lock())
    }
}

impl<T> fmt::Debug for SessionExit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unhandled: Vec<ItemId> = self.unhandled.iter().map(|(id, _)| *id).collect();
        f.debug_struct("Exit")
            .field("reason", &self.reason)
            .field("unhandled", &unhandled)
            .field("open", &self.open.as_ref().map(|open| open.turn))
            .finish_non_exhaustive()
    }
}

/// What user code failed at, as the exit reports it.
pub(super) fn report(what: &str, why: &str) -> ErrorReport {
    ErrorReport::new("callback", format!("{what}: {why}"), None)
}

/// What the store failed at, as the exit reports it.
pub(super) fn store_report(error: &store::Error) -> ErrorReport {
    ErrorReport::new("store", error.to_string(), None).caused_by(ErrorSource::of(error.clone()))
}
