//! How a host is made.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    Agent,
    stop::Scope,
    store::{Error, Store},
};
use safepoint_nodes::{Here, Placement};
use tokio::sync::{RwLock, Semaphore, watch};

use super::{
    Host, HostState, Offered, OnLease,
    board::Board,
    membership::{self, Membership, NodeName},
    takeup,
};
use crate::{
    surface::Surface,
    webhook::{self, Webhook},
};

/// How many turns may run at once, unless it is said.
const RUNNING: usize = 200;
/// How long a session may be at rest before it is closed, unless it is said.
const UNLOAD: Duration = Duration::from_secs(600);
/// The lease of the host for all its sessions, unless it is said.
const LEASE: Duration = Duration::from_secs(10);

/// What a host is made with.
#[must_use = "a host begins with `start`"]
pub struct HostBuilder {
    store: Arc<dyn Store>,
    agents: BTreeMap<String, Offered>,
    running: usize,
    unload: Duration,
    name: NodeName,
    lease: Duration,
    placement: Arc<dyn Placement>,
    is_durable: bool,
    on_lease: Option<OnLease>,
    hooks: Vec<Webhook>,
    opens: OpensWhat,
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
            name: NodeName::Own,
            lease: LEASE,
            placement: Arc::new(Here::default()),
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
        self.name = NodeName::This(name.into());
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
        self.name = NodeName::Like(name.into());
        self
    }

    /// Sets how long this process holds its sessions without renewing that: when it dies on another machine, they are taken up after this
    /// time and the margin of the store. While the store cannot be reached, what runs goes on for as long. Default 10 seconds.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets what brings sessions that want an owner to the processes that take them. Default: each asks the store, and takes what it finds
    /// ([`Here`]).
    pub fn placement(mut self, placement: Arc<dyn Placement>) -> Self {
        self.placement = placement;
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
        let as_what = Membership { name: self.name, pools, lease: self.lease };
        let node = as_what.join(&self.store).await?;
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
            burials: watch::Sender::new(()),
            drain_asked: watch::Sender::new(false),
            board: Board::default(),
            load: Arc::default(),
            #[cfg(feature = "mcp")]
            mcp: crate::mcp::McpSessions::default(),
        };
        let inner = Arc::new(inner);
        let host = || Arc::downgrade(&inner);
        if self.opens == OpensWhat::Due {
            let (placement, capacity) = (self.placement, as_what.capacity());
            let taken = takeup::serve(host(), Arc::clone(&placement), capacity.clone());
            inner.spawn("what takes sessions up", taken);
            inner.spawn("what wants an owner", takeup::wake(host(), placement, capacity.pools));
        }
        inner.spawn("membership of the store", membership::keep(host(), as_what));
        for hook in self.hooks {
            inner.spawn("webhook", webhook::deliver(host(), hook));
        }
        Ok(Host { inner })
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("store", &self.store).finish_non_exhaustive()
    }
}
