//! A session: a conversation with an inbox, turn after turn, that can be talked to while it works (S6).
//!
//! ```no_run
//! # use safepoint::{Agent, session::{ChatPlanner, Session, SessionStop, Policy, Push}};
//! # async fn talk(agent: Agent) {
//! let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start();
//! let first = session.push("What changed last week?".to_owned()).expect("an open session");
//! session.push(Push::new("Only in the docs.".to_owned()).policy(Policy::steer())).expect("room");
//! println!("{:?}", first.outcome().await);
//! session.stop(SessionStop::at_turn_end());
//! let exit = session.done().await;
//! assert!(exit.unhandled().is_empty());
//! # }
//! ```
//!
//! One task owns all of it; every push, stop, timer and turn end is one message to that task, and a pure machine says
//! what follows. That machine is explored exhaustively in the tests.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use safepoint_scope::{Code, Reason, Scope};
use tokio::sync::{Notify, oneshot};

use crate::{
    run::steer::{Steer, SteerTicket},
    sync::{Mutex, callback::Foreign},
    value::{
        event::{Events, Feed},
        history::History,
        ids::Path,
    },
};

mod asking;
mod deciding;
mod door;
mod driver;
mod envelope;
mod event;
mod exit;
mod family;
mod inbox;
mod intent;
mod item;
mod journal;
mod lookback;
mod lost;
mod machine;
mod mail;
mod open;
mod outside;
mod planner;
mod reader;
mod stop;
mod view;
mod watch;
mod words;

pub use asking::{StopPersistence, StopTicket, TurnStopAck, TurnStopTicket};
pub use door::LateItemsPolicy;
pub use envelope::{ItemError, decode_item, decode_row, encode_item};
pub use event::SessionEvent;
pub use exit::{ExitReason, OpenTurn, SessionExit};
pub use intent::{StoredStop, StoredStopError};
pub use item::{Delivery, Item, Policy, Preempt, Push, PushError, Ticket};
pub use lookback::{JournalFact, JournalStep, read_journal};
pub use lost::LostRun;
pub use machine::{OnTurnFailure, PreemptedItems};
pub use open::PendingItems;
pub use outside::store_stop;
pub use planner::{Arrival, ChatPlanner, Plan, PlanContext, PlanRequest, Planner, QueuedItem, TurnPlan};
pub use reader::Reader;
pub use stop::{SessionStop, StoppedTurn};
pub use view::TurnView;
pub use words::{IfUndelivered, ItemOutcome, PreemptOutcome, RejectReason};

use door::Inbox;
use driver::Driver;
use family::Family;
use machine::{Answer, Machine, Rules};
use mail::{Mailbox, Received, SessionMessage};
use view::SharedSession;

/// What a session is made with.
struct Settings<T> {
    planner: Foreign<dyn Planner<T>>,
    reader: Option<Foreign<dyn Reader>>,
    history: History,
    rules: Rules,
    strategy: Duration,
    callback: Duration,
    quiet: Duration,
    inbox: usize,
}

/// A session in hand. Dropping it is [`SessionStop::now`] with reason `shutdown`; keep a [`SessionHandle`] to talk to it
/// from elsewhere.
pub struct Session<T: Item> {
    handle: SessionHandle<T>,
}

/// Talks to a session. Cheap to clone; dropping it does nothing.
pub struct SessionHandle<T: Item> {
    shared: Arc<SharedSession<T>>,
}

/// Makes a [`Session`].
#[must_use = "a session begins with `start`"]
pub struct SessionBuilder<T> {
    settings: Settings<T>,
    late: LateItemsPolicy,
    retained_deltas: usize,
    setup: Option<String>,
    on_left: PendingItems,
    on_lease: Option<journal::OnLease>,
}

/// How many items may wait, unless it is said.
const INBOX: usize = 1024;
/// How many turns in a row may be preempted before one is protected, unless it is said.
const PATIENCE: u32 = 3;
/// How long a push strategy may take.
const STRATEGY: Duration = Duration::from_secs(1);
/// How long a reader may go on after its turn has ended.
const CALLBACK: Duration = Duration::from_secs(5);
/// How long the next turn waits for the last one to be quiet.
const QUIET: Duration = Duration::from_secs(2);
/// How many provisional events are kept for readers that lag.
const RETAINED: usize = 4096;

impl<T: Item> SessionBuilder<T> {
    /// Sets how many items may wait. Default 1,024.
    pub fn inbox(mut self, items: usize) -> Self {
        self.settings.inbox = items;
        self
    }
    /// Goes on from a conversation.
    pub fn history(mut self, history: History) -> Self {
        self.settings.history = history;
        self
    }
    /// Keeps what comes after the end, for [`SessionExit::take_late`].
    pub fn keep_late_items(mut self) -> Self {
        self.late = LateItemsPolicy::Keep;
        self
    }
    /// Sets who follows the events of each turn.
    pub fn reader(mut self, reader: impl Reader) -> Self {
        self.settings.reader = Some(Foreign::new(Arc::new(reader)));
        self
    }
    /// Sets after how many preempted turns in a row one comes to its end. Default 3.
    pub fn max_preempted_turns(mut self, turns: u32) -> Self {
        self.settings.rules.patience = turns;
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
    /// Sets how long a reader may go on after its turn has ended. Default 5 s.
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
        let (shared, received) = self.shared();
        let machine = Machine::new(self.settings.rules);
        let (engine, _nobody_stops_it) = Scope::root();
        let owner =
            Driver::new(engine.clone(), Arc::clone(&shared), Arc::new(self.settings), received, machine);
        drop(engine.spawn("session", owner.own()));
        Session { handle: SessionHandle { shared } }
    }

    fn shared(&self) -> (Arc<SharedSession<T>>, Received<T>) {
        let (mailbox, received) = Mailbox::new();
        let shared = SharedSession {
            door: Inbox::new(mailbox.clone(), self.settings.inbox, self.late),
            planner: self.settings.planner.clone(),
            mailbox,
            feed: Arc::new(Feed::new(self.retained_deltas)),
            view: Mutex::new(None),
            family: Family::new(),
            exit: OnceLock::new(),
            over: Notify::new(),
            nudged: Notify::new(),
        };
        (Arc::new(shared), received)
    }
}

impl<T: Item> Session<T> {
    /// A session whose turns are planned by `planner`.
    pub fn builder(planner: impl Planner<T>) -> SessionBuilder<T> {
        let settings = Settings {
            planner: Foreign::new(Arc::new(planner)),
            reader: None,
            history: History::new(),
            rules: Rules { patience: PATIENCE, on_failure: OnTurnFailure::Wait },
            strategy: STRATEGY,
            callback: CALLBACK,
            quiet: QUIET,
            inbox: INBOX,
        };
        SessionBuilder {
            settings,
            late: LateItemsPolicy::Refuse,
            retained_deltas: RETAINED,
            setup: None,
            on_left: PendingItems::GoOn,
            on_lease: None,
        }
    }

    /// What can talk to it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> SessionHandle<T> {
        self.handle.clone()
    }
}

impl<T: Item> Deref for Session<T> {
    type Target = SessionHandle<T>;
    fn deref(&self) -> &SessionHandle<T> {
        &self.handle
    }
}

impl<T: Item> Drop for Session<T> {
    fn drop(&mut self) {
        let reason = Reason::new(Code::SHUTDOWN).with_text("the session was dropped");
        drop(self.handle.stop(SessionStop::now().with_reason(reason)));
    }
}

impl<T: Item> SessionHandle<T> {
    /// Hands the session an item; at once accepted, or back (S6.2).
    ///
    /// # Errors
    /// [`PushError`], with the item.
    pub fn push(&self, push: impl Into<Push<T>>) -> Result<Ticket<T>, PushError<T>> {
        let Push { item, client_id, policy } = push.into();
        if self.shared.is_blank(&item) {
            return Err(PushError::Blank(item));
        }
        self.shared.door.push(item, client_id, |item, slip, client_id| SessionMessage::Push {
            item,
            slip,
            policy,
            client_id,
        })
    }

    /// The same, but `strategy` looks at the turn at work and then chooses how the item comes, while no turn begins or
    /// ends. Past its bound the item is simply enqueued; a panic ends the session (S6.4).
    ///
    /// # Errors
    /// [`PushError`], with the item.
    pub fn push_with(
        &self,
        item: T,
        strategy: impl FnOnce(Option<&TurnView>) -> Policy + Send + 'static,
    ) -> Result<Ticket<T>, PushError<T>> {
        if self.shared.is_blank(&item) {
            return Err(PushError::Blank(item));
        }
        let strategy = Box::new(strategy);
        self.shared.door.push(item, None, |item, slip, _| SessionMessage::PushBy { item, slip, strategy })
    }

    /// Steers a child run of the turn at work. None: there is no such run, or it has ended (S6.5).
    #[must_use]
    pub fn steer_child(&self, child: &Path, steer: Steer) -> Option<SteerTicket> {
        let child = self.current_turn()?.run.child(child)?;
        (!child.is_done()).then(|| child.steer(steer))
    }

    /// Takes the last turn up again, if it ended early. True if so. One that waits for decisions is taken up where its
    /// agent has an [`Approver`](crate::approval::Approver): what is open is put to that one, and nothing else changes.
    ///
    /// # Cancel safety
    /// The turn may be taken up although nobody waits for the answer.
    pub async fn resume(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Resume { reply });
        answer.await == Ok(Answer::Resuming)
    }

    /// The turn at work.
    #[must_use]
    pub fn current_turn(&self) -> Option<TurnView> {
        self.shared.view.lock().clone()
    }

    /// The session's events from the first on; the last is [`SessionEvent::Ended`].
    #[must_use]
    pub fn events(&self) -> Events<SessionEvent> {
        self.shared.feed.read(0)
    }

    /// The same from a position on.
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events<SessionEvent> {
        self.shared.feed.read(seq)
    }

    /// How it ended, as often as you like; everybody sees the same.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn done(&self) -> Arc<SessionExit<T>> {
        loop {
            let over = self.shared.over.notified();
            if let Some(exit) = self.shared.exit.get() {
                return Arc::clone(exit);
            }
            over.await;
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.exit.get().is_some()
    }
}

impl<T: Item> Clone for SessionHandle<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

macro_rules! opaque {
    ($($name:ident $(<$($t:ident $(: $bound:ident)?),*>)?)*) => {$(
        impl $(<$($t $(: $bound)?),*>)? fmt::Debug for $name $(<$($t),*>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

opaque! { Session<T: Item> SessionHandle<T: Item> SessionBuilder<T> }
