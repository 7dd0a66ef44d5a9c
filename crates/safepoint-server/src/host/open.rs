//! A session that this process has open: its handle, the frames of its events, and the tickets of its items.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use safepoint::{
    Agent, History, Session, SessionHandle,
    event::Event,
    ids::{ItemId, SessionId},
    session::{ItemOutcome, Node, SessionEvent, SessionStop, Ticket},
    stop::StopAck,
    store::{Error, Store},
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use super::{
    places::{PlacedPlanner, RunningPlace},
    shown::{Seat, Shower},
    traces::{ItemTraces, SessionTraces},
};
use crate::lines::Tail;

/// How long the end of a session that is at rest may take.
const QUIET: Duration = Duration::from_secs(2);

/// How the opening of a session ended.
pub(crate) type Opened = Result<Arc<OpenSession>, Error>;

/// A session in the hands of this process.
pub(crate) struct OpenSession {
    session: Session<String>,
    place: RunningPlace,
    tail: Arc<Tail>,
    /// Held for one look or one entry; no other lock is taken under it.
    items: Mutex<Items>,
    joins: mpsc::UnboundedSender<oneshot::Sender<Seat>>,
    /// What follows the session takes it. Held for that alone.
    joining: Mutex<Option<mpsc::UnboundedReceiver<oneshot::Sender<Seat>>>>,
}

/// The items that were pushed here: by their places with this owner, and by their numbers in the store.
#[derive(Default)]
struct Items {
    placed: HashMap<ItemId, Ticket<String>>,
    numbered: HashMap<u64, Ticket<String>>,
}

/// What the task of a session does next. Exhaustive: an event came, or a reader.
enum NextWork {
    Event(Event<SessionEvent>),
    Join(oneshot::Sender<Seat>),
}

/// Whether an item was pushed here before. Exhaustive: it was, or it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    First,
    Again,
}

/// What a session is opened with.
pub(super) struct OpenedWith {
    pub(super) agent: Agent,
    pub(super) places: Arc<Semaphore>,
    pub(super) traces: Arc<ItemTraces>,
    /// How long it may be at rest.
    pub(super) unload: Duration,
    pub(super) on_lease: Option<Arc<dyn Fn(Duration) + Send + Sync>>,
    /// What was said before the session.
    pub(super) history: History,
}

/// Opens it on the node.
///
/// # Errors
/// Those of [`open_on`](safepoint::session::SessionBuilder::open_on).
///
/// # Cancel safety
/// The session may have been taken: it stays with the node until that leaves.
pub(super) async fn take(node: &Node, id: &SessionId, begun: OpenedWith) -> Result<OpenSession, Error> {
    let place = RunningPlace::among(&begun.places);
    let traces = SessionTraces::new(begun.traces, id.clone());
    let planner = PlacedPlanner::new(begun.agent, place.clone(), traces);
    // One that was removed meanwhile is not made again.
    let mut builder = Session::builder(planner).history(begun.history).only_existing();
    if let Some(listener) = begun.on_lease {
        builder = builder.on_lease(move |until| listener(until));
    }
    let session: Session<String> = builder.open_on(node, id.clone()).await?;
    drop(session.stop(SessionStop::when_idle_for(begun.unload)));
    let (joins, joining) = mpsc::unbounded_channel();
    Ok(OpenSession {
        session,
        place,
        tail: Arc::default(),
        items: Mutex::default(),
        joins,
        joining: Mutex::new(Some(joining)),
    })
}

impl OpenSession {
    pub(crate) fn handle(&self) -> SessionHandle<String> {
        self.session.handle()
    }

    /// Ends it if no turn runs and nothing waits for one; returns whether it ends. Else it ends once it was idle for `unload`, as before.
    ///
    /// # Cancel safety
    /// It may end all the same.
    pub(super) async fn end_if_idle(&self, unload: Duration) -> bool {
        if self.session.current_turn().is_some() || !self.session.queued().await.is_empty() {
            return false;
        }
        self.session.withdraw_idle_stop();
        drop(self.session.stop(SessionStop::when_idle_for(Duration::ZERO)));
        // A turn that has just settled is over once it is known what of it is alive.
        if timeout(QUIET, self.session.done()).await.is_ok() {
            return true;
        }
        self.session.withdraw_idle_stop();
        let later = self.session.stop(SessionStop::when_idle_for(unload));
        later.asked().await == StopAck::TooLate
    }

    /// Another reader of its frames. `None`: it has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn join(&self) -> Option<Seat> {
        let (seat, seated) = oneshot::channel();
        self.joins.send(seat).ok()?;
        seated.await.ok()
    }

    /// Follows its events until it has ended.
    pub(super) async fn follow(&self, store: Arc<dyn Store>) {
        let Some(mut joining) = self.joining.lock().expect("no code under this lock panics").take() else {
            return;
        };
        let mut shower = Shower::new(store, &self.session, Arc::clone(&self.tail));
        let joins = stream::poll_fn(move |cx| joining.poll_recv(cx)).map(NextWork::Join);
        // In turn: an event or a reader that is not taken now is taken next, and none is lost.
        let mut work = stream::select(self.session.events().map(NextWork::Event), joins);
        while let Some(work) = work.next().await {
            match work {
                NextWork::Event(event) => {
                    if let SessionEvent::TurnEnded { turn, .. } = event.kind {
                        self.place.leave(turn);
                    }
                    shower.show(&event, |item| self.number(item)).await;
                    if matches!(event.kind, SessionEvent::Ended) {
                        break;
                    }
                }
                NextWork::Join(seat) => {
                    // A reader without a seat learns it from the end, and finds the journal.
                    if let Ok(found) = shower.seat().await
                        && let Err(gone) = seat.send(found)
                    {
                        drop(gone);
                    }
                }
            }
        }
        self.place.leave_for_good();
    }

    /// Its readers find the rest in the journal: no other owner is among the host's for this session.
    pub(super) fn close(&self) {
        self.tail.close();
    }

    /// Keeps the ticket of an item that was just pushed: what is shown of it has its number.
    pub(crate) fn pushed(&self, ticket: &Ticket<String>) {
        self.items().placed.insert(ticket.id(), ticket.clone());
    }

    /// Keeps the ticket by the item's number, and returns whether it is new here.
    pub(crate) fn keep(&self, number: u64, ticket: &Ticket<String>) -> Seen {
        match self.items().numbered.entry(number) {
            Entry::Occupied(_) => Seen::Again,
            Entry::Vacant(free) => {
                free.insert(ticket.clone());
                Seen::First
            }
        }
    }

    /// The ticket of an item that was pushed here.
    pub(crate) fn ticket(&self, number: u64) -> Option<Ticket<String>> {
        self.items().numbered.get(&number).cloned()
    }

    /// How the items that were pushed here have ended, by their numbers.
    pub(crate) fn fates(&self) -> HashMap<u64, ItemOutcome> {
        let items = self.items();
        items.numbered.iter().filter_map(|(number, ticket)| Some((*number, ended(ticket)?))).collect()
    }

    fn number(&self, item: ItemId) -> Option<u64> {
        let ticket = self.items().placed.get(&item).cloned()?;
        ticket.recorded().now_or_never().flatten()
    }

    fn items(&self) -> MutexGuard<'_, Items> {
        self.items.lock().expect("no code under this lock panics")
    }
}

/// How the item of this ticket has ended. One that its owner left unhandled has not: it waits in the store, for the next owner.
pub(crate) fn ended(ticket: &Ticket<String>) -> Option<ItemOutcome> {
    ticket.fate_now().filter(|outcome| *outcome != ItemOutcome::Unhandled)
}

impl fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSession").field("session", &self.session.id()).finish_non_exhaustive()
    }
}
