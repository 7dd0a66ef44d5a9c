//! A host: named agents over one store, and the sessions that this process has open.
//!
//! **Invariants**: a session is opened once at a time, in a task of the host; no request's future owns a session, so a client
//! that goes away changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use safepoint::{
    Agent,
    ids::SessionId,
    raw::trace,
    session::Node,
    stop::{Scope, StopHandle},
    store::{Error, SessionRow, Store},
};
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, watch};

pub(crate) mod board;
mod builder;
mod membership;
pub(crate) mod open;
mod places;
pub(crate) mod read;
pub(crate) mod setup;
pub(crate) mod shown;
mod takeup;
mod traces;

use board::Board;
pub use builder::HostBuilder;
use open::{OpenSession, Opened};
use setup::Setup;
use traces::ItemTraces;

use crate::{access::Principal, load::Load, surface::Surface};

/// What learns until when the sessions are held.
type OnLease = Arc<dyn Fn(Duration) + Send + Sync>;

/// An agent that the host offers.
pub(crate) struct Offered {
    pub(crate) agent: Agent,
    pub(crate) description: String,
    /// By which protocols, beside the own API.
    pub(crate) surfaces: BTreeSet<Surface>,
}

/// Agents and the sessions that they work in. Cheap to clone; the sessions end when the host is [drained](Self::drain), or
/// with the process.
///
/// ```
/// # use std::sync::Arc;
/// use safepoint::{Agent, store::{Error, MemoryStore}};
/// use safepoint_server::Host;
/// async fn start(agent: Agent) -> Result<Host, Error> {
///     Host::builder(Arc::new(MemoryStore::default())).agent("helper", agent).running(20).start().await
/// }
/// ```
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<HostState>,
}

/// What the routes of a host see.
pub(crate) struct HostState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agents: BTreeMap<String, Offered>,
    pub(crate) is_durable: bool,
    unload: Duration,
    on_lease: Option<OnLease>,
    /// None once the host has drained; another one after its node was declared dead. Read while a session is opened, so a drain waits
    /// for those.
    node: RwLock<Option<Node>>,
    /// Held for one look or one entry; no other lock is taken under it.
    open: Mutex<HashMap<SessionId, watch::Receiver<Option<Opened>>>>,
    places: Arc<Semaphore>,
    pub(crate) traces: Arc<ItemTraces>,
    scope: Scope,
    quiet: StopHandle,
    /// Once it drains: how long what runs may take.
    draining: watch::Sender<Option<Duration>>,
    /// Changes when a session was opened.
    opens: watch::Sender<()>,
    /// Changes when its node has declared others dead.
    burials: watch::Sender<()>,
    /// Whether a request has asked for the drain.
    drain_asked: watch::Sender<bool>,
    pub(crate) board: Board,
    pub(crate) load: Arc<Load>,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: crate::mcp::McpSessions,
}

impl Host {
    /// A host whose sessions are kept in this store.
    pub fn builder(store: Arc<dyn Store>) -> HostBuilder {
        HostBuilder::over(store)
    }

    /// Begins nothing any more, stops each running turn at its next safe point and at the latest after `within`, with the
    /// reason `shutdown`, and gives every session back: what was stopped can be resumed (S13.12). Stops and decisions are
    /// taken to the end, and streams end once their sessions have.
    ///
    /// # Cancel safety
    /// What was stopped stays stopped; call it again.
    pub async fn drain(&self, within: Duration) {
        self.inner.draining.send_replace(Some(within));
        let node = self.inner.node.write().await.take();
        if let Some(node) = node {
            node.drain(within).await;
        }
        self.inner.quiet.idle().await;
        #[cfg(feature = "mcp")]
        self.inner.mcp.end();
    }

    /// Waits until a request asks that the server drains (`POST /v1/drain`). It drains by [`drain`](Self::drain), which is
    /// yours to call.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn drain_asked(&self) {
        let mut asked = self.inner.drain_asked.subscribe();
        if asked.wait_for(|is_asked| *is_asked).await.is_err() {
            // The host is gone, and with it what could ask.
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the signal, and then drains: for `with_graceful_shutdown` of a server of your own.
    ///
    /// # Cancel safety
    /// As for [`drain`](Self::drain).
    pub fn drained_on(
        &self,
        signal: impl Future<Output = ()> + Send + 'static,
        within: Duration,
    ) -> impl Future<Output = ()> + Send + 'static {
        let host = self.clone();
        async move {
            signal.await;
            host.drain(within).await;
        }
    }
}

impl HostState {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.borrow().is_some()
    }

    /// Whether this principal may use the agent of this name by this protocol.
    pub(crate) fn offers(&self, who: &Principal, surface: Surface, agent: &str) -> bool {
        let offered = self.agents.get(agent);
        offered.is_some_and(|offered| offered.surfaces.contains(&surface)) && who.uses(agent)
    }

    /// What changes when the host begins to drain.
    pub(crate) fn draining(&self) -> watch::Receiver<Option<Duration>> {
        self.draining.subscribe()
    }

    /// A place for a turn that runs, of those that there are.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("the host closes no places")
    }

    /// Does this in a task of the host: a drain waits for it.
    pub(crate) fn spawn(&self, label: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.scope.spawn(label, work));
    }

    /// The session, opened by this process; as it is, if it is open.
    ///
    /// # Errors
    /// [`Error::Held`]: another process has it. [`Error::Draining`]: this one opens none any more. The store's.
    ///
    /// # Cancel safety
    /// It may be opened all the same.
    pub(crate) async fn open(
        self: &Arc<Self>,
        row: &SessionRow,
        setup: &Setup,
    ) -> Result<Arc<OpenSession>, Error> {
        let mut opened = self.opening(row, setup);
        let found = match opened.wait_for(Option::is_some).await {
            Ok(found) => found.clone(),
            Err(_task_gone) => None,
        };
        found.unwrap_or_else(|| Err(Error::NoSession(row.id.clone())))
    }

    /// Opens it, and does not wait for that.
    pub(crate) fn begin(self: &Arc<Self>, row: &SessionRow, setup: &Setup) {
        drop(self.opening(row, setup));
    }

    /// A request asks that the server drains.
    pub(crate) fn ask_drain(&self) {
        self.drain_asked.send_replace(true);
    }

    /// The session, if this process has it open.
    pub(crate) fn opened(&self, id: &SessionId) -> Option<Arc<OpenSession>> {
        let found = self.opening_now(id)?.borrow().clone();
        found.and_then(Result::ok)
    }

    /// What changes when a session was opened.
    pub(crate) fn opens(&self) -> watch::Receiver<()> {
        self.opens.subscribe()
    }

    /// Waits until this process does not have the session open.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn closed(&self, id: &SessionId) {
        if let Some(open) = self.opened(id) {
            drop(open.handle().done().await);
        }
    }

    /// Ends it where this process has it open and it is idle, as it would end by itself later. Returns whether this process does not
    /// have it open: something of it runs or waits otherwise.
    ///
    /// # Cancel safety
    /// It may end all the same.
    pub(crate) async fn unload(&self, id: &SessionId) -> bool {
        let Some(mut opening) = self.opening_now(id) else { return true };
        let opened = opening.wait_for(Option::is_some).await.ok().and_then(|opened| opened.clone()?.ok());
        if let Some(open) = opened
            && !open.end_if_idle(self.unload).await
        {
            return false;
        }
        // The task that has it forgets it last.
        while opening.changed().await.is_ok() {}
        true
    }

    /// How many are open.
    pub(crate) fn count_open(&self) -> usize {
        self.open_now().len()
    }

    /// How it was or is opened, if it is.
    fn opening_now(&self, id: &SessionId) -> Option<watch::Receiver<Option<Opened>>> {
        self.open_now().get(id).cloned()
    }

    /// Opens it in a task of the host, unless that was begun.
    fn opening(self: &Arc<Self>, row: &SessionRow, setup: &Setup) -> watch::Receiver<Option<Opened>> {
        let mut open = self.open_now();
        if let Some(opening) = open.get(&row.id) {
            return opening.clone();
        }
        let (opened, opening) = watch::channel(None);
        open.insert(row.id.clone(), opening.clone());
        drop(open);
        let (host, id, setup) = (Arc::clone(self), row.id.clone(), setup.clone());
        drop(self.scope.spawn("session of the host", async move {
            let found = host.take(&id, &setup).await;
            let session = found.as_ref().ok().cloned();
            opened.send_replace(Some(found));
            host.opens.send_replace(());
            if let Some(session) = &session {
                session.follow(Arc::clone(&host.store)).await;
            }
            host.open_now().remove(&id);
            if let Some(session) = session {
                session.close();
            }
        }));
        opening
    }

    async fn take(&self, id: &SessionId, setup: &Setup) -> Opened {
        let node = self.node.read().await;
        let Some(node) = &*node else { return Err(Error::NoSession(id.clone())) };
        let Some(offered) = self.agents.get(&setup.agent) else { return Err(Error::NoSession(id.clone())) };
        let begun = open::OpenedWith {
            agent: trace::named(&offered.agent, &setup.agent),
            traces: Arc::clone(&self.traces),
            places: Arc::clone(&self.places),
            unload: self.unload,
            on_lease: self.on_lease.clone(),
            history: setup::history(setup.earlier.clone()),
        };
        let opened = open::take(node, id, begun).await?;
        Ok(Arc::new(opened))
    }

    fn open_now(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Receiver<Option<Opened>>>> {
        self.open.lock().expect("no code under this lock panics")
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.inner.agents.keys().collect();
        f.debug_struct("Host").field("agents", &names).finish_non_exhaustive()
    }
}
