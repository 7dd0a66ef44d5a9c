//! Where the changes of all sessions are shown, to those who read all sessions.
//!
//! **Invariants**: one task looks at the store while there is a reader, and none without.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::{broadcast, watch};

use super::setup::Setup;

/// How many changes a reader may be behind.
const KEPT: usize = 1_024;

/// One change, for the readers that see the session.
#[derive(Clone, Debug)]
pub(crate) struct BoardChange {
    pub(crate) setup: Arc<Setup>,
    pub(crate) what: ChangeOf,
    /// As it is now.
    pub(crate) data: Value,
}

/// What has changed. Exhaustive: a session, or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeOf {
    Session,
    Approval,
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
    /// Whether a task looks. Held for one look; no other lock is taken under it.
    is_watched: Mutex<bool>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            changes: broadcast::Sender::new(KEPT),
            looked: watch::Sender::new(false),
            is_watched: Mutex::default(),
        }
    }
}

impl Board {
    /// Another reader: the changes from here on, and whether the store was looked at.
    pub(crate) fn subscribe(&self) -> (broadcast::Receiver<BoardChange>, watch::Receiver<bool>, BoardWatch) {
        let mut is_watched = self.is_watched.lock().expect("no code under this lock panics");
        let watch = if *is_watched { BoardWatch::Runs } else { BoardWatch::Begins };
        *is_watched = true;
        (self.changes.subscribe(), self.looked.subscribe(), watch)
    }

    /// Whether there is no reader any more: the watch has ended with this.
    pub(crate) fn ends_unread(&self) -> bool {
        let mut is_watched = self.is_watched.lock().expect("no code under this lock panics");
        let is_unread = self.changes.receiver_count() == 0;
        if is_unread {
            *is_watched = false;
            self.looked.send_replace(false);
        }
        is_unread
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
