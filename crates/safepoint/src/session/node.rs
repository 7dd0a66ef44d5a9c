//! This process as a node of a store: one lease for all sessions that it holds (S7.12).
//!
//! **Invariants**: once the lease could not be renewed in time, or the node was declared dead, nothing is written under it
//! any more, and each of its sessions learns it once.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::pending;
use safepoint_scope::{Actor, Code, Grace, Reason};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

mod upkeep;

use super::{
    builder::engine,
    journal::{OnLease, opened},
    stop::SessionStop,
};
use crate::{
    contract::store::{self, Error, Leaving, NewNode, NodeLease, NodeState, OwnerProcess, Rest, Store},
    sync::{Mutex, callback},
    value::ids::{NodeId, SessionId},
};

/// How long the lease of a node for one session holds without being renewed.
const ALONE: Duration = Duration::from_secs(10);

/// How long the store may take at most once the lease has ended while no other process may have taken anything, and which part of the
/// lease that is. Well within the margin of a process that would.
const LAST: Duration = Duration::from_secs(1);
const LAST_PART: u32 = 8;

/// How much longer than the turns themselves a node that drains waits for its sessions to be given back.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// This process as a node of a store: it holds many sessions by one lease, renews it, listens to what others do to them, and
/// declares other nodes dead whose processes ended. Sessions are opened on it with
/// [`SessionBuilder::open_on`](super::SessionBuilder::open_on).
///
/// When the lease cannot be renewed in time, every session of the node ends, with all that runs in it, by the code `lease`
/// (S7.14); join again then. A node that is dropped holds on until its last session has ended.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use safepoint::{Session, session::{ChatPlanner, Node}, store::{Error, MemoryStore, NewNode, OwnerProcess}};
/// async fn serve(agent: safepoint::Agent) -> Result<(), Error> {
///     let new = NewNode { name: "worker-1".into(), ..NewNode::of(OwnerProcess::here(), Duration::from_secs(4)) };
///     let node = Node::join(Arc::new(MemoryStore::default()), new).await?;
///     let trip: Session<String> = Session::builder(ChatPlanner::new(agent)).open_on(&node, "trip".into()).await?;
///     drop(trip.push("Hello?".to_owned()));
///     node.drain(Duration::from_secs(20)).await; // turns stop gracefully, and every session is given back
///     Ok(())
/// }
/// ```
pub struct Node {
    member: Arc<Member>,
}

impl Node {
    /// Joins the store as this node.
    ///
    /// # Errors
    /// [`Error::NodeExists`] if a node of that name is there; else the store's.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// The node may have joined; its lease ends.
    pub async fn join(store: Arc<dyn Store>, new: NewNode) -> Result<Self, Error> {
        // Two beats may fail before a fifth of the lease is left.
        const BEATS: u32 = 5;
        let beat_every = new.ttl / BEATS;
        let member = Member::join(store::guarded(store), new, beat_every).await?;
        drop(engine().spawn("node", Arc::clone(&member).run()));
        drop(engine().spawn("node's look for the dead", Arc::clone(&member).bury_others()));
        Ok(Self { member })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        self.member.lease.id()
    }

    /// How long its lease is still valid, by its own clock. Zero: it is over, or the node was declared dead.
    #[must_use]
    pub fn left(&self) -> Duration {
        if self.member.is_usable().is_ok() { self.member.lease.left() } else { Duration::ZERO }
    }

    /// Waits until it holds nothing any more and never will: its lease could not be renewed in time, or it was declared dead. Why. Join again
    /// then, under a fresh id. After a [`drain`](Self::drain) it does not return.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub fn lost(&self) -> impl Future<Output = Error> + Send + use<> {
        let member = Arc::clone(&self.member);
        async move {
            let mut over = member.over.subscribe();
            // The member has the sender.
            if over.wait_for(|is_over| *is_over).await.is_ok()
                && let Some(lost) = member.lost()
            {
                return lost;
            }
            pending().await
        }
    }

    /// Waits until the store says that this node was asked to drain, by whichever process ([`Store::leave`]). After a
    /// [`drain`](Self::drain), or once the node is lost, it may not return.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub fn asked_to_drain(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut asked = self.member.drain_asked.subscribe();
        async move {
            if asked.wait_for(|is_asked| *is_asked).await.is_err() {
                pending().await
            }
        }
    }

    /// What changes when this node has declared others dead: what they held is due now.
    #[must_use]
    pub fn burials(&self) -> watch::Receiver<()> {
        self.member.buried.subscribe()
    }

    /// Takes no session any more, stops each running turn at its next safe point and at the latest after `within`, with the
    /// reason `shutdown`, gives every session back so that another node takes it up, and leaves the store (S7.45).
    ///
    /// # Cancel safety
    /// What was stopped stays stopped; the node stays until its last session has ended.
    pub async fn drain(self, within: Duration) {
        let member = &self.member;
        // SeqCst: rarely read. A session that is opened at this moment is given back with `Rest::Nothing` at worst, and its
        // turn, if it has one, is stopped below or lost with the node.
        member.is_draining.store(true, Ordering::SeqCst);
        member.leave(Leaving::Draining).await;
        let grace = Grace::try_from(within).ok();
        let reason = Reason::new(Code::SHUTDOWN).with_actor(Actor::Engine).with_text("its node is draining");
        let stop = grace.map_or_else(SessionStop::now, SessionStop::graceful_within).with_reason(reason);
        member.stop_all(&stop);
        let mut held = member.held.subscribe();
        if timeout(within + GIVE_BACK, held.wait_for(|held| *held == 0)).await.is_err() {
            // What could not be given back wants an owner once the node is gone.
        }
        member.leave_for_good().await;
        member.end();
    }

    pub(super) fn member(&self) -> &Arc<Member> {
        &self.member
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // SeqCst: rarely written. `part` reads it after it has counted down, and this counts after it has written: one of
        // the two ends the node.
        self.member.is_dropped.store(true, Ordering::SeqCst);
        // Its task tells the store.
        self.member.end_if_unused();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", self.id()).field("left", &self.left()).finish_non_exhaustive()
    }
}

/// A session that the node holds.
struct Seat {
    changed: Arc<Notify>,
    on_lease: Option<OnLease>,
    stop: Option<Box<dyn Fn(SessionStop) + Send + Sync>>,
}

/// A node, for its sessions and its tasks.
pub(super) struct Member {
    store: Arc<dyn Store>,
    lease: NodeLease,
    beat_every: Duration,
    /// How long the store may take once the lease has ended.
    last: Duration,
    /// Held for one look or one entry, or for a copy of what is to be called. No other lock is taken under it.
    seats: Mutex<BTreeMap<SessionId, Seat>>,
    /// How many there are.
    held: watch::Sender<usize>,
    /// Whether the lease ended before it could be renewed: nothing is written any more.
    is_lapsed: AtomicBool,
    is_draining: AtomicBool,
    /// No program holds the node any more: it ends with its last session.
    is_dropped: AtomicBool,
    /// Why it holds nothing any more.
    lost: OnceLock<Error>,
    has_left: AtomicBool,
    over: watch::Sender<bool>,
    /// Whether the store says that it was asked to drain.
    drain_asked: watch::Sender<bool>,
    /// Changes when it has declared others dead.
    buried: watch::Sender<()>,
}

impl Member {
    async fn join(store: Arc<dyn Store>, new: NewNode, beat_every: Duration) -> Result<Arc<Self>, Error> {
        let last = LAST.min(new.ttl / LAST_PART);
        let lease = opened(store.join(new)).await?;
        Ok(Arc::new(Self {
            store,
            lease,
            beat_every,
            last,
            seats: Mutex::default(),
            held: watch::Sender::new(0),
            is_lapsed: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            lost: OnceLock::new(),
            has_left: AtomicBool::new(false),
            over: watch::Sender::new(false),
            drain_asked: watch::Sender::new(false),
            buried: watch::Sender::new(()),
        }))
    }

    /// A node for one session, which ends with it. Its task is begun by [`run`](Self::run) once the session is there.
    pub(super) async fn alone(store: Arc<dyn Store>, owner: OwnerProcess) -> Result<Arc<Self>, Error> {
        const BEATS: u32 = 3;
        let new = NewNode { room: 1, ..NewNode::of(owner, ALONE) };
        let member = Self::join(store, new, ALONE / BEATS).await?;
        // SeqCst: as in `Node::drop`. No other task knows it yet.
        member.is_dropped.store(true, Ordering::SeqCst);
        Ok(member)
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(super) fn lease(&self) -> &NodeLease {
        &self.lease
    }

    /// When a session that it gives back wants an owner again.
    pub(super) fn rest(&self) -> Rest {
        // SeqCst: see `Node::drain`.
        if self.is_draining.load(Ordering::SeqCst) { Rest::Now } else { Rest::Nothing }
    }

    /// A session is held from now on. Its listener learns until when before anything begins.
    pub(super) fn seat(&self, session: &SessionId, on_lease: Option<OnLease>) -> Arc<Notify> {
        let changed = Arc::<Notify>::default();
        report(on_lease.as_ref(), &self.lease);
        let seat = Seat { changed: Arc::clone(&changed), on_lease, stop: None };
        self.count(|seats| drop(seats.insert(session.clone(), seat)));
        changed
    }

    /// How the session is stopped when the node drains.
    pub(super) fn stopped_by(&self, session: &SessionId, stop: impl Fn(SessionStop) + Send + Sync + 'static) {
        if let Some(seat) = self.seats.lock().get_mut(session) {
            seat.stop = Some(Box::new(stop));
        }
    }

    /// The session is held no more. A node that no program holds ends with its last one, and leaves.
    pub(super) async fn part(&self, session: &SessionId) {
        self.count(|seats| drop(seats.remove(session)));
        if self.end_if_unused() {
            self.leave_for_good().await;
        }
    }

    fn count(&self, change: impl FnOnce(&mut BTreeMap<SessionId, Seat>)) {
        let mut seats = self.seats.lock();
        change(&mut seats);
        let held = seats.len();
        self.held.send_replace(held);
    }

    /// Whether it ended.
    fn end_if_unused(&self) -> bool {
        // SeqCst: see `Node::drop`.
        let is_unused = self.is_dropped.load(Ordering::SeqCst) && self.seats.lock().is_empty();
        if is_unused {
            self.end();
        }
        is_unused
    }

    fn end(&self) {
        self.over.send_replace(true);
    }

    /// Fails once nothing may be written under the lease.
    pub(super) fn is_usable(&self) -> Result<(), Error> {
        if let Some(error) = self.lost.get() {
            return Err(error.clone());
        }
        // Pairs with `lapse`: see there what a read just before it may do.
        if self.is_lapsed.load(Ordering::SeqCst) { Err(self.over_error()) } else { Ok(()) }
    }

    fn over_error(&self) -> Error {
        Error::NodeLapsed(self.lease.id().clone())
    }

    /// The lease ended before it could be renewed. Nothing is written under it any more, even if the store becomes reachable
    /// again (S7.14).
    fn lapse(&self) -> Error {
        // SeqCst for simplicity: set once, rarely read. A writer that reads `false` just before this still names this node, so
        // the store refuses its write once the node was buried.
        self.is_lapsed.store(true, Ordering::SeqCst);
        self.over_error()
    }

    /// Why it holds nothing any more; `None` while it does.
    pub(super) fn lost(&self) -> Option<Error> {
        self.lost.get().cloned()
    }

    /// Renews the lease.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        self.is_usable()?;
        let load = u32::try_from(*self.held.borrow()).unwrap_or(u32::MAX);
        if self.store.beat(&self.lease, load).await? == NodeState::Draining {
            self.drain_asked.send_replace(true);
        }
        // Commands of the sessions end by what their listeners learn.
        let listeners: Vec<OnLease> =
            self.seats.lock().values().filter_map(|seat| seat.on_lease.clone()).collect();
        listeners.iter().for_each(|listener| report(Some(listener), &self.lease));
        Ok(())
    }

    fn wake(&self, session: &SessionId) {
        if let Some(seat) = self.seats.lock().get(session) {
            seat.changed.notify_one();
        }
    }

    fn wake_all(&self) {
        self.seats.lock().values().for_each(|seat| seat.changed.notify_one());
    }

    fn stop_all(&self, stop: &SessionStop) {
        // A stop only posts a message.
        for seat in self.seats.lock().values() {
            if let Some(ask) = &seat.stop {
                ask(stop.clone());
            }
        }
    }
}

fn report(on_lease: Option<&OnLease>, lease: &NodeLease) {
    if let (Some(on_lease), Some(until)) = (on_lease, lease.until())
        && callback::call(|| on_lease(until)).is_err()
    {
        // The listener has failed; the session continues, and its lease is unchanged.
    }
}
