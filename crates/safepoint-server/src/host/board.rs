//! Where the changes of all sessions are shown, to those who read all sessions.
//!
//! **Invariants**: one task looks at the store while there is a reader, and none without.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use jiff::Timestamp;
use safepoint::{ids::SessionId, store::SessionRow};
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use super::setup::Setup;

/// How many changes a reader may be behind.
const KEPT: usize = 1_024;
/// Of how many sessions the removal is shown: those that changed last.
const MOST_LISTED: usize = 5_000;

/// One change, for the readers that see the session.
#[derive(Clone, Debug)]
pub(crate) struct BoardChange {
    pub(crate) setup: Arc<Setup>,
    pub(crate) what: ChangeOf,
    /// As it is now.
    pub(crate) data: Value,
}

/// What has changed. Exhaustive: a session, a question, or that there is a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeOf {
    Session,
    Approval,
    Removal,
}

/// Whether a new reader is the first. Exhaustive: it is, and a task begins to look, or one does already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardWatch {
    Begins,
    Runs,
}

/// The changes of all sessions.
#[derive(Debug)]
pub(crate) struct Board {
    changes: broadcast::Sender<BoardChange>,
    /// Whether the store was looked at since the watch began.
    looked: watch::Sender<bool>,
    /// Held for one look or one entry; no other lock is taken under it.
    watched: Mutex<WatchedSessions>,
}

/// The sessions that readers were told of, by their last change, and whose they are.
#[derive(Debug, Default)]
struct WatchedSessions {
    /// Whether a task looks.
    is_watched: bool,
    by_id: HashMap<SessionId, Timestamp>,
    by_change: BTreeMap<(Timestamp, SessionId), Arc<Setup>>,
    /// Whether one was removed here since the last look at all of them.
    is_removed_here: bool,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(KEPT),
            looked: watch::Sender::new(false),
            watched: Mutex::default(),
        }
    }
}

impl Board {
    /// Another reader: the changes from here on, and whether the store was looked at.
    pub(crate) fn subscribe(&self) -> (broadcast::Receiver<BoardChange>, watch::Receiver<bool>, BoardWatch) {
        let mut watched = self.watched();
        let watch = if watched.is_watched { BoardWatch::Runs } else { BoardWatch::Begins };
        watched.is_watched = true;
        (self.changes.subscribe(), self.looked.subscribe(), watch)
    }

    /// Whether there is no reader any more: the watch has ended with this.
    pub(crate) fn ends_unread(&self) -> bool {
        let mut watched = self.watched();
        let is_unread = self.changes.receiver_count() == 0;
        if is_unread {
            *watched = WatchedSessions::default();
            self.looked.send_replace(false);
        }
        is_unread
    }

    /// A reader is shown this session.
    pub(crate) fn tell(&self, row: &SessionRow, setup: &Setup) {
        self.watched().add(&row.id, row.updated, setup);
    }

    /// A session was removed by this process.
    pub(crate) fn removed_here(&self) {
        self.watched().is_removed_here = true;
    }

    /// Whether there was one since this was asked last.
    pub(crate) fn takes_removal(&self) -> bool {
        std::mem::take(&mut self.watched().is_removed_here)
    }

    /// The last change of the session that readers were told of and that has not changed for longest.
    pub(crate) fn told_since(&self) -> Option<Timestamp> {
        self.watched().by_change.keys().next().map(|(updated, _)| *updated)
    }

    /// Those that readers were told of, have changed behind this time, and are not among these.
    pub(crate) fn missing(&self, found: &HashSet<SessionId>, behind: Timestamp) -> Vec<SessionId> {
        let watched = self.watched();
        let newer = watched.by_change.keys().rev().take_while(|(updated, _)| *updated > behind);
        newer.map(|(_, id)| id).filter(|id| !found.contains(*id)).cloned().collect()
    }

    /// Readers are shown this one no more; whose it was, if they were shown it.
    pub(crate) fn forget(&self, id: &SessionId) -> Option<Arc<Setup>> {
        self.watched().forget(id)
    }

    fn watched(&self) -> MutexGuard<'_, WatchedSessions> {
        self.watched.lock().expect("no code under this lock panics")
    }

    /// The store was looked at.
    pub(crate) fn looked(&self) {
        self.looked.send_replace(true);
    }

    pub(crate) fn send(&self, change: BoardChange) {
        // Without a reader there is nothing to say.
        drop(self.changes.send(change));
    }
}

impl WatchedSessions {
    fn add(&mut self, id: &SessionId, updated: Timestamp, setup: &Setup) {
        self.forget(id);
        let (agent, principal) = (setup.agent.clone(), setup.principal.clone());
        // What else is in it may be large.
        let whose = Arc::new(Setup { agent, principal, ..Setup::default() });
        self.by_id.insert(id.clone(), updated);
        self.by_change.insert((updated, id.clone()), whose);
        if self.by_id.len() > MOST_LISTED
            && let Some(((_, oldest), _)) = self.by_change.pop_first()
        {
            self.by_id.remove(&oldest);
        }
    }

    fn forget(&mut self, id: &SessionId) -> Option<Arc<Setup>> {
        let updated = self.by_id.remove(id)?;
        self.by_change.remove(&(updated, id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.52: what readers were told of is bounded: those that changed last; each is missing where it is not found, and once.
    #[test]
    fn what_readers_were_told_of_is_bounded() {
        let board = Board::default();
        let at = |second: usize| Timestamp::from_second(second.try_into().unwrap()).unwrap();
        let id = |number: usize| SessionId::from(format!("ses_{number}"));
        let (whose, nothing) = (Setup { agent: "helper".into(), ..Setup::default() }, HashSet::new());
        for number in 0..=MOST_LISTED {
            board.watched().add(&id(number), at(number), &whose);
        }
        let missing = board.missing(&nothing, Timestamp::MIN);
        assert_eq!((missing.len(), missing.last()), (MOST_LISTED, Some(&id(1))), "the oldest is not kept");
        assert_eq!(board.told_since(), Some(at(1)));
        board.watched().add(&id(1), at(MOST_LISTED + 1), &whose);
        assert_eq!(board.missing(&nothing, at(MOST_LISTED)), [id(1)], "it changed");
        assert_eq!(board.missing(&[id(1)].into(), at(MOST_LISTED)), []);
        assert_eq!(board.forget(&id(1)).unwrap().agent, "helper");
        assert_eq!(
            (board.missing(&nothing, at(MOST_LISTED)).len(), board.forget(&id(1)).is_some()),
            (0, false)
        );
        board.removed_here();
        assert!(board.takes_removal() && !board.takes_removal());
    }
}
