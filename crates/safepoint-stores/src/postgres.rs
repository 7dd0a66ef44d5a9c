//! The store in a PostgreSQL database: many processes of many machines may have it open.
//!
//! **Invariants:** a request is one statement, so that no transaction waits for a client. What changes one session is asked by one
//! handle in order. Every write of a journal names the node and the epoch of its lease, and is refused if they are not the newest.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use jiff::Timestamp;
use safepoint::{
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{
        Among, Appended, ApprovalCursor, ApprovalRow, ChainCheck, ChangeStream, Changes, DecisionResult, Due,
        Durability, InboxRow, Lease, Leaving, NewDecision, NewItem, NewSession, NodeLease, NodeRow,
        NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval, SessionImage, StopIntent,
        StopRow, StoreFuture, Tenure, Withdrawn, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
};
use tokio::sync::oneshot;

mod access;
mod address;
mod append;
mod approvals;
mod burial;
mod changes;
mod column;
mod core;
mod due;
mod failure;
mod identity;
mod image;
mod inbox;
mod judge;
mod lane;
mod leases;
mod limits;
mod looks;
mod nodes;
mod options;
mod owners;
mod plan;
mod records;
mod rooms;
mod schema;
mod seats;
mod sessions;
mod shared;
mod stops;
mod tls;
mod tries;
mod worker;

pub use access::PostgresAccess;
use address::Address;
use append::AppendJob;
use core::Core;
use inbox::InboxOf;
use lane::Lanes;
use looks::Looks;
pub use options::{Migration, PostgresOptions, StoreClock};
use rooms::Rooms;
use sessions::NoticeOf;
use stops::StopsOf;
use worker::PgWorker;

/// A store in a PostgreSQL database.
///
/// ```no_run
/// use std::sync::Arc;
/// use safepoint::{Agent, Session, session::ChatPlanner, store::OwnerProcess};
/// use safepoint_stores::PostgresStore;
/// /// The conversation `trip`: it continues where it was, also on another machine.
/// async fn open(agent: Agent) -> Result<Session<String>, Box<dyn std::error::Error>> {
///     let store = Arc::new(PostgresStore::open("postgres://agents@localhost/agents")?);
///     Ok(Session::builder(ChatPlanner::new(agent)).open(store, "trip".into(), OwnerProcess::here()).await?)
/// }
/// ```
pub struct PostgresStore {
    core: Arc<Core>,
    lanes: Lanes,
    looks: Looks,
    worker: PgWorker,
    thread: JoinHandle<()>,
}

impl PostgresStore {
    /// Opens the store in this database, and makes its tables if there are none. Blocks while it does.
    ///
    /// The address has the form `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Several hosts are separated by commas: the one that
    /// takes writes is used. `sslrootcert` names a file with the certificates that are trusted; without it these are the ones that
    /// browsers trust. A host that is not this machine is reached by verified TLS alone.
    ///
    /// # Errors
    /// [`Error::Newer`] if a later release made the tables; else why the database cannot be used. No error shows the password.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::open_with(address, PostgresOptions::default())
    }

    /// As [`PostgresStore::open`], with options.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(address: &str, options: PostgresOptions) -> Result<Self, Error> {
        let address = Address::read(address)?;
        let (worker, thread) = PgWorker::start()?;
        let rooms = Rooms::new(&address, &options.schema)?;
        let core = Arc::new(Core::new(address, options, rooms, worker.downgrade()));
        let (reply, opened) = std::sync::mpsc::channel();
        let opens = Arc::clone(&core);
        worker.begin(async move {
            if reply.send(opens.bring_up().await).is_err() {
                // It is not waited for.
            }
        });
        opened.recv().unwrap_or(Err(Error::Gone))?;
        let (lanes, looks) = (Lanes::start(&worker, &core), Looks::start(&worker, &core));
        Ok(Self { core, lanes, looks, worker, thread })
    }

    /// Waits until every request is settled and the connections are closed. Blocks while it does. A store that is dropped does the
    /// same later, without being waited for.
    pub fn close(self) {
        let Self { core, lanes, looks, worker, thread } = self;
        drop((lanes, looks, worker, core));
        if thread.join().is_err() {
            // The caller of the request that panicked already got the answer that the store is gone.
        }
    }

    /// Asks what is not about the order of one session's changes.
    fn ask<T, F>(&self, question: impl FnOnce(Arc<Core>) -> F) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.worker.ask(question(Arc::clone(&self.core)))
    }

    /// Asks what changes this session, after what was asked before.
    fn change<T, F>(
        &self,
        session: &SessionId,
        question: impl FnOnce(Arc<Core>, SessionId) -> F,
    ) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.lanes.of(session).ask(question(Arc::clone(&self.core), session.clone()))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, options) = (&self.core.address, &self.core.options);
        f.debug_struct("PostgresStore")
            .field("address", address)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

/// Nothing that is done under a lock here can leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for PostgresStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        let id = session.id.clone();
        self.change(&id, |core, _| async move { core.create(&session).await })
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        let id = session.clone();
        self.ask(|core| async move { core.open(&id).await })
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        self.ask(|core| async move { core.list(most, older.as_ref()).await })
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        self.change(session, |core, id| async move { core.remove(&id).await })
    }

    fn remove_if_at_rest(&self, session: &SessionId) -> StoreFuture<'_, bool> {
        self.change(session, |core, id| async move { core.remove_if_at_rest(&id).await })
    }

    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease> {
        self.ask(|core| async move { core.join(node).await })
    }

    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState> {
        let node = node.clone();
        self.ask(|core| async move {
            let (began, state) = core.beat(&node, load).await?;
            node.renewed(began);
            Ok(state)
        })
    }

    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()> {
        let node = node.clone();
        self.ask(|core| async move { core.leave(&node, how).await })
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeRow>> {
        self.ask(|core| async move { core.nodes().await })
    }

    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>> {
        self.ask(|core| async move { core.bury().await })
    }

    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease> {
        let node = node.clone();
        self.change(session, |core, id| async move { core.acquire(&id, &node).await })
    }

    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        self.change(&lease.session().clone(), |core, _| async move { core.release(&lease, seen, rest).await })
    }

    fn changes(&self, node: &NodeLease) -> ChangeStream {
        changes::changes(&self.core, &self.worker, node.id().clone())
    }

    fn due(&self, most: usize, pools: Vec<String>) -> StoreFuture<'_, Vec<Due>> {
        self.ask(|core| async move { core.due(most, &pools).await })
    }

    fn unpark(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        self.change(session, |core, id| async move { core.unpark(&id).await })
    }

    fn tenures(&self, session: &SessionId) -> StoreFuture<'_, Vec<Tenure>> {
        let id = session.clone();
        self.ask(|core| async move { core.tenures(&id).await })
    }

    fn image(&self, session: &SessionId) -> StoreFuture<'_, SessionImage> {
        let id = session.clone();
        self.ask(|core| async move { core.image(&id).await })
    }

    fn restore(&self, image: SessionImage, over: OverImage) -> StoreFuture<'_, SessionRow> {
        let id = image.row.id.clone();
        self.change(&id, |core, _| async move { core.restore(&image, &over).await })
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        if let Err(error) = append::must_fit(&writes) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let (reply, answer) = oneshot::channel();
        let job = AppendJob::new((lease.clone(), writes), class, self.core.options.patience, reply);
        self.lanes.of(lease.session()).append(job, answer)
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        let id = session.clone();
        self.ask(|core| async move { core.read(&id, from, most).await })
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        let id = session.clone();
        self.ask(|core| async move { core.check(&id).await })
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        self.change(session, |core, id| async move { core.push(&id, &push).await })
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        self.looks.inbox(InboxOf(session.clone()))
    }

    fn accepted(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Option<Timestamp>> {
        let id = session.clone();
        self.ask(|core| async move { core.accepted(&id, item).await })
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        self.change(session, move |core, id| async move { core.withdraw(&id, item).await })
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.change(session, |core, id| async move { core.ask_stop(&id, &stop).await })
    }

    fn ask_stops(&self, among: Among, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.ask(|core| async move { core.ask_stops(&among, &stop).await })
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        self.looks.stops(StopsOf { session: session.clone(), after })
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        self.change(session, |core, id| async move { core.decide(&id, &decision).await })
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        let (session, id) = (session.clone(), id.clone());
        self.ask(|core| async move { core.approval(&session, &id).await })
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        let id = session.clone();
        self.ask(|core| async move { core.approvals(&id).await })
    }

    fn open_approvals(
        &self,
        most: usize,
        after: Option<ApprovalCursor>,
    ) -> StoreFuture<'_, Vec<SessionApproval>> {
        self.ask(|core| async move { core.open_approvals(most, after.as_ref()).await })
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        self.looks.notice(NoticeOf(session.clone()))
    }
}
