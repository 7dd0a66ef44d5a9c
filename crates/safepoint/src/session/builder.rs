//! What makes a session, and its bounds.

use std::{
    fmt,
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use safepoint_scope::Scope;
use tokio::sync::Notify;

use crate::{
    sync::{Mutex, callback::Foreign},
    value::{event::Feed, history::History},
};

use super::{
    Item, OnTurnFailure, PendingItems, Planner, Reader, Session, SessionHandle,
    driver::Driver,
    inbox::Inbox,
    journal,
    machine::{Machine, Rules},
    message::{Mailbox, Received},
    runs::SessionRuns,
    shared::{InStore, SessionPlace, SharedSession, ShownTurn},
};

/// What a session is made with.
pub(super) struct Settings {
    pub(super) reader: Option<Foreign<dyn Reader>>,
    pub(super) rules: Rules,
    pub(super) strategy: Duration,
    pub(super) callback: Duration,
    pub(super) quiet: Duration,
    pub(super) inbox: usize,
}

/// Makes a [`Session`].
#[must_use = "a session begins with `start`"]
pub struct SessionBuilder<T> {
    pub(super) planner: Foreign<dyn Planner<T>>,
    pub(super) settings: Settings,
    pub(super) history: History,
    pub(super) keeps_late: bool,
    pub(super) retained_deltas: usize,
    pub(super) setup: Option<String>,
    pub(super) on_left: PendingItems,
    pub(super) on_lease: Option<journal::OnLease>,
    pub(super) only_existing: bool,
}

/// How many items may wait, unless it is said.
const INBOX: usize = 1024;
/// How many turns in a row may be preempted before one is protected, unless it is said.
const PATIENCE: u32 = 3;
/// How long a push strategy may take.
const STRATEGY: Duration = Duration::from_secs(1);
/// How long a reader may run after its turn has ended.
const CALLBACK: Duration = Duration::from_secs(5);
/// How long the next turn waits for the last one to be quiet.
const QUIET: Duration = Duration::from_secs(2);
/// How many provisional events are kept for readers that lag.
const RETAINED: usize = 4096;

impl<T: Item> SessionBuilder<T> {
    pub(super) fn new(planner: impl Planner<T>) -> Self {
        let settings = Settings {
            reader: None,
            rules: Rules { max_preempted: PATIENCE, on_failure: OnTurnFailure::Wait },
            strategy: STRATEGY,
            callback: CALLBACK,
            quiet: QUIET,
            inbox: INBOX,
        };
        Self {
            planner: Foreign::new(Arc::new(planner)),
            settings,
            history: History::new(),
            keeps_late: false,
            retained_deltas: RETAINED,
            setup: None,
            on_left: PendingItems::GoOn,
            on_lease: None,
            only_existing: false,
        }
    }

    /// Sets how many items may wait. Default 1,024.
    pub fn inbox(mut self, items: usize) -> Self {
        self.settings.inbox = items;
        self
    }
    /// Sets the conversation that the session begins with. A session in a store records it as it begins; a later
    /// [`open`](Self::open) of it may leave it out, or give the same again. Default: an empty one.
    pub fn history(mut self, history: History) -> Self {
        self.history = history;
        self
    }
    /// Opens only a session that the store has: one that is not there is [`Error::NoSession`](crate::store::Error::NoSession), and is not
    /// made. Default: it is made.
    pub fn only_existing(mut self) -> Self {
        self.only_existing = true;
        self
    }
    /// Keeps what comes after the end, for [`SessionExit::take_late`](super::SessionExit::take_late).
    pub fn keep_late_items(mut self) -> Self {
        self.keeps_late = true;
        self
    }
    /// Sets who follows the events of each turn.
    pub fn reader(mut self, reader: impl Reader) -> Self {
        self.settings.reader = Some(Foreign::new(Arc::new(reader)));
        self
    }
    /// Sets after how many preempted turns in a row one comes to its end. Default 3.
    pub fn max_preempted_turns(mut self, turns: u32) -> Self {
        self.settings.rules.max_preempted = turns;
        self
    }
    /// Sets what a failed turn does to the items that wait. Default: they wait on.
    pub fn on_failure(mut self, on_failure: OnTurnFailure) -> Self {
        self.settings.rules.on_failure = on_failure;
        self
    }
    /// Sets how long a push strategy may take before its item is simply enqueued. Default 1 s.
    pub fn strategy(mut self, bound: Duration) -> Self {
        self.settings.strategy = bound;
        self
    }
    /// Sets how long a reader may run after its turn has ended. Default 5 s.
    pub fn callback(mut self, bound: Duration) -> Self {
        self.settings.callback = bound;
        self
    }
    /// Sets how long the next turn waits for the last one to be quiet; what is alive then is named. Default 2 s.
    pub fn quiet(mut self, bound: Duration) -> Self {
        self.settings.quiet = bound;
        self
    }

    /// Begins the session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use = "a session stops when it is dropped"]
    pub fn start(self) -> Session<T> {
        let (shared, received) = self.shared(None);
        let machine = Machine::new(self.settings.rules);
        let settings = Arc::new(self.settings);
        let driver = Driver::new(Arc::clone(&shared), settings, self.history, received, machine);
        drop(engine().spawn("session", driver.into_task()));
        Session { handle: SessionHandle { shared } }
    }

    pub(super) fn shared(&self, stored: Option<InStore>) -> (Arc<SharedSession<T>>, Received<T>) {
        let (mailbox, received) = Mailbox::new();
        let shared = SharedSession {
            inbox: Inbox::new(mailbox.clone(), self.settings.inbox, self.keeps_late),
            planner: self.planner.clone(),
            mailbox,
            feed: Arc::new(match &stored {
                // The journal has what is forgotten.
                Some(_) => Feed::forgetting(self.retained_deltas),
                None => Feed::new(self.retained_deltas),
            }),
            turn: Mutex::new(ShownTurn::None),
            runs: SessionRuns::new(),
            exit: OnceLock::new(),
            over: Notify::new(),
            place: stored
                .map_or_else(OnceLock::new, |stored| OnceLock::from(Box::new(SessionPlace::Store(stored)))),
        };
        (Arc::new(shared), received)
    }
}

/// Where the tasks of all sessions of this process run that are no part of a run. It is never stopped, and its quiet is
/// never waited for, so that one is enough.
pub(super) fn engine() -> &'static Scope {
    static ENGINE: LazyLock<Scope> = LazyLock::new(|| Scope::root().0);
    &ENGINE
}

impl<T> fmt::Debug for SessionBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder").finish_non_exhaustive()
    }
}
