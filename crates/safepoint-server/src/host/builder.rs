//! How a host is made.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Agent,
    session::Node,
    stop::Scope,
    store::{Error, NewNode, OwnerProcess, Store},
};
use tokio::sync::{RwLock, Semaphore, watch};

use super::{Host, HostState, Offered, OnLease, asked, board::Board, due};
use crate::{
    surface::Surface,
    webhook::{self, Webhook},
};

/// How many turns may run at once, unless it is said.
const RUNNING: usize = 200;
/// How long a session may be at rest before it is closed, unless it is said.
const UNLOAD: Duration = Duration::from_secs(600);
/// The lease of the host for all its sessions.
const LEASE: Duration = Duration::from_secs(10);
/// How many sessions may be open, unless it is said.
const ROOM: u32 = 10_000;

/// What a host is made with.
#[must_use = "a host begins with `start`"]
pub struct HostBuilder {
    store: Arc<dyn Store>,
    agents: BTreeMap<String, Offered>,
    running: usize,
    unload: Duration,
    name: Option<NodeName>,
    lease: Duration,
    is_durable: bool,
    on_lease: Option<OnLease>,
    hooks: Vec<Webhook>,
    opens: OpensWhat,
}

/// What a host is called. Exhaustive: exactly so, or so with a random part if another has the name.
#[derive(Clone, Debug)]
enum NodeName {
    This(String),
    Like(String),
}

/// Which sessions a host opens. Exhaustive: also those of its agents that want an owner, or only what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpensWhat {
    Due,
    Asked,
}

impl HostBuilder {
    pub(super) fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            agents: BTreeMap::new(),
            running: RUNNING,
            unload: UNLOAD,
            name: None,
            lease: LEASE,
            is_durable: true,
            on_lease: None,
            hooks: Vec::new(),
            opens: OpensWhat::Due,
        }
    }

    /// Offers an agent under this name. A session keeps the agent that it began with.
    pub fn agent(self, name: impl Into<String>, agent: Agent) -> Self {
        self.described(name, "", agent)
    }

    /// The same, with a text that says what the agent is for.
    pub fn described(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        agent: Agent,
    ) -> Self {
        let offered = Offered { agent, description: description.into(), surfaces: BTreeSet::new() };
        self.agents.insert(name.into(), offered);
        self
    }

    /// Offers this agent by these protocols too. Default: by the server's own API alone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use safepoint::{Agent, store::MemoryStore};
    /// use safepoint_server::{Host, HostBuilder, Surface};
    /// fn offered(agent: Agent) -> HostBuilder {
    ///     let builder = Host::builder(Arc::new(MemoryStore::default()));
    ///     builder.agent("helper", agent).surfaces("helper", [Surface::Responses])
    /// }
    /// ```
    pub fn surfaces(mut self, name: &str, surfaces: impl IntoIterator<Item = Surface>) -> Self {
        if let Some(offered) = self.agents.get_mut(name) {
            offered.surfaces.extend(surfaces);
        }
        self
    }

    /// Sets how many turns may run at once; the others wait. Default 200.
    pub fn running(mut self, turns: usize) -> Self {
        self.running = turns.max(1);
        self
    }

    /// Sets how long a session may be at rest before it is closed, until the next item or decision. Default 10 minutes.
    pub fn unload(mut self, after: Duration) -> Self {
        self.unload = after;
        self
    }

    /// Sets the name of this process among those that share the store. Default: one that no other has.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(NodeName::This(name.into()));
        self
    }

    /// The same, where another name will do: if another process has this one, a random part is added.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use safepoint::{Agent, store::MemoryStore};
    /// use safepoint_server::{Host, HostBuilder};
    /// fn named(agent: Agent) -> HostBuilder {
    ///     Host::builder(Arc::new(MemoryStore::default())).agent("helper", agent).name_like("db1.example")
    /// }
    /// ```
    pub fn name_like(mut self, name: impl Into<String>) -> Self {
        self.name = Some(NodeName::Like(name.into()));
        self
    }

    /// Sets how long this process holds its sessions without a word to the store. After its death another one takes them when this
    /// time and the store's margin are over, or at once where the death can be seen. Default 10 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the listener that learns until when this process holds its sessions, each time that the lease is taken or renewed
    /// ([`SessionBuilder::on_lease`](safepoint::session::SessionBuilder::on_lease)).
    pub fn on_lease(mut self, listener: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.on_lease = Some(Arc::new(listener));
        self
    }

    /// Calls this address when a question opens and when a session is at rest again.
    pub fn webhook(mut self, hook: Webhook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Opens a session only when it is asked for. Default: also those of its agents that want an owner, because theirs died, or
    /// another process left something for them. For a process that lives no longer than its one client.
    pub fn only_when_asked(mut self) -> Self {
        self.opens = OpensWhat::Asked;
        self
    }

    /// The store ends with the process: sessions say `"durable": false`.
    pub fn in_memory(mut self) -> Self {
        self.is_durable = false;
        self
    }

    /// Joins the store as a node.
    ///
    /// # Errors
    /// [`Error::NodeExists`] if there is a node of this name; else the store's.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// The node may have joined; its lease ends.
    pub async fn start(self) -> Result<Host, Error> {
        let pools = self.agents.keys().cloned().collect();
        let new = NewNode { room: ROOM, pools, ..NewNode::of(OwnerProcess::here(), self.lease) };
        let node = joined(&self.store, new, self.name).await?;
        let (scope, quiet) = Scope::root();
        let inner = HostState {
            store: self.store,
            agents: self.agents,
            is_durable: self.is_durable,
            unload: self.unload,
            on_lease: self.on_lease,
            node: RwLock::new(Some(node)),
            open: Mutex::default(),
            places: Arc::new(Semaphore::new(self.running)),
            traces: Arc::default(),
            scope,
            quiet,
            draining: watch::Sender::new(None),
            opens: watch::Sender::new(()),
            drain_asked: watch::Sender::new(false),
            board: Board::default(),
            load: Arc::default(),
            #[cfg(feature = "mcp")]
            mcp: crate::mcp::McpSessions::default(),
        };
        let inner = Arc::new(inner);
        if self.opens == OpensWhat::Due {
            inner.spawn("what wants an owner", due::watch(Arc::downgrade(&inner)));
            inner.spawn("a drain that is asked", asked::watch(Arc::downgrade(&inner)));
        }
        for hook in self.hooks {
            inner.spawn("webhook", webhook::deliver(Arc::downgrade(&inner), hook));
        }
        Ok(Host { inner })
    }
}

/// Joins the store under this name.
async fn joined(store: &Arc<dyn Store>, new: NewNode, name: Option<NodeName>) -> Result<Node, Error> {
    /// Letters of the random part.
    const PART: usize = 8;
    let join = |new: NewNode| Node::join(Arc::clone(store), new);
    let like = match name {
        None => return join(new).await,
        Some(NodeName::This(name)) => return join(NewNode { name, ..new }).await,
        Some(NodeName::Like(name)) => name,
    };
    let named = NewNode { name: like.clone(), ..new.clone() };
    match join(named).await {
        Err(Error::NodeExists(..)) => {
            // The name of a new node is its id, whose end is random.
            let random = new.name.get(new.name.len().saturating_sub(PART)..).unwrap_or(&new.name);
            join(NewNode { name: format!("{like}-{random}"), ..new.clone() }).await
        }
        joined => joined,
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("store", &self.store).finish_non_exhaustive()
    }
}
