//! A2A servers for tests of what an agent reports about remote work: honest ones, copies of real ones, and
//! hostile ones.
//!
//! A server's *statements* and its *work* are separate here: [`A2aServer::deeds`] lists what was done, and
//! [`A2aServer::running`] counts the work that runs.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::sync::watch;

mod card;
mod manners;
#[cfg(feature = "suites")]
mod probe;
mod serving;
mod task;
mod wire;
mod work;

pub use manners::{A2aManners, A2aWire, Card, Contexts, Looks, OnCancel, Streams, Tells, WorkStep};

use self::{
    task::Task,
    work::{Passes, Yard},
};
use crate::{
    http::{self, Connection, Serving},
    sync::{lock, until},
};

/// What a server was asked. Exhaustive: a request, or the end of an exchange before its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum A2aSeen {
    /// A request: its method, `card` for the card, and its parameters.
    Asked(String, Value),
    /// The client gave up the exchange of this method.
    GaveUp(String),
}

/// A server that listens until it is dropped.
#[derive(Debug)]
pub struct A2aServer {
    url: String,
    mind: Arc<Mind>,
    _serving: Serving,
}

/// What the server's connections share.
#[derive(Debug, Default)]
struct Mind {
    manners: A2aManners,
    url: String,
    /// Of these locks a thread holds one at a time, for one entry or one look; only a work is begun under
    /// `tasks`.
    seen: Mutex<Vec<A2aSeen>>,
    /// As `seen`.
    bearers: Mutex<Vec<String>>,
    /// As `seen`.
    traces: Mutex<Vec<String>>,
    /// As `seen`.
    ids: Mutex<Vec<Value>>,
    /// Each stands at its number. Held while its work is begun, which takes the lock of the deeds, so that a
    /// task that is found has begun.
    tasks: Mutex<Vec<Arc<Task>>>,
    yard: Yard,
    /// How often streams were cut on purpose.
    cuts: watch::Sender<usize>,
    /// How many streams were opened, and which of them the id of a request stands for: both change together.
    streams: Mutex<Opened>,
    /// Opened when a task that is named late may be, and when a stream that lags may continue.
    names: Passes,
}

/// The streams that were opened.
#[derive(Debug, Default)]
struct Opened {
    count: usize,
    by_id: HashMap<String, usize>,
}

impl A2aServer {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// If there is no port.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(manners: A2aManners) -> io::Result<Self> {
        let listener = http::bind(http::LOOPBACK)?;
        let url = format!("http://{}", listener.local_addr()?);
        let mind = Arc::new(Mind { manners, url: url.clone(), ..Mind::default() });
        let serving = Serving::start(listener, &mind, serving::serve);
        Ok(Self { url, mind, _serving: serving })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it was asked so far.
    #[must_use]
    pub fn seen(&self) -> Vec<A2aSeen> {
        lock(&self.mind.seen).clone()
    }

    /// How often it was asked by this method, as 1.0 names it.
    #[must_use]
    pub fn asked(&self, method: &str) -> usize {
        self.seen().iter().filter(|seen| matches!(seen, A2aSeen::Asked(name, _) if name == method)).count()
    }

    /// The `authorization` of each request that had one.
    #[must_use]
    pub fn bearers(&self) -> Vec<String> {
        lock(&self.mind.bearers).clone()
    }

    /// The `traceparent` of each request that had one.
    #[must_use]
    pub fn traces(&self) -> Vec<String> {
        lock(&self.mind.traces).clone()
    }

    /// The id of each request, by JSON-RPC.
    #[must_use]
    pub fn ids(&self) -> Vec<Value> {
        lock(&self.mind.ids).clone()
    }

    /// Whether anybody gave up an exchange.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.seen().iter().any(|seen| matches!(seen, A2aSeen::GaveUp(_)))
    }

    /// What the work did, in order: `began`, `said TEXT`, `got TEXT`, `torn down`, `ended`, and `unheard
    /// TEXT` for text after the end of its task.
    #[must_use]
    pub fn deeds(&self) -> Vec<String> {
        self.mind.yard.deeds()
    }

    /// The number of works that run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.mind.yard.running()
    }

    /// Waits until this many works in all have reached a [`WorkStep::Wait`], a [`WorkStep::Ask`] or a
    /// [`WorkStep::SignIn`].
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn came(&self, works: usize) {
        self.mind.yard.came(works).await;
    }

    /// Waits until no work runs.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn idle(&self) {
        self.mind.yard.idle().await;
    }

    /// Waits until the server has cut this many streams in all.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn cut(&self, streams: usize) {
        until(&self.mind.cuts, |cuts| *cuts >= streams).await;
    }

    /// Lets one waiting work continue, now or later.
    pub fn let_on(&self) {
        self.mind.yard.let_on(1);
    }

    /// Lets all work continue, also future work.
    pub fn let_all_on(&self) {
        const ALL: usize = 1 << 20;
        self.mind.yard.let_on(ALL);
    }

    /// Lets a server that names its tasks late name one, and a stream that lags continue.
    pub fn name(&self) {
        self.mind.names.give(1);
    }

    /// How much work was begun.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.mind.tasks().len()
    }
}

impl Drop for A2aServer {
    fn drop(&mut self) {
        for task in self.mind.tasks() {
            task.tear_down();
        }
    }
}

impl Mind {
    /// Waits until the client gives up.
    async fn gave_up(&self, connection: &mut Connection, method: &str) -> io::Result<()> {
        connection.closed().await;
        self.note(A2aSeen::GaveUp(method.to_owned()));
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    fn note(&self, seen: A2aSeen) {
        lock(&self.seen).push(seen);
    }

    /// A stream is opened for a request of this id: its number, from 0.
    fn opened(&self, id: &Value) -> usize {
        let mut streams = lock(&self.streams);
        let number = streams.count;
        streams.count += 1;
        streams.by_id.insert(id.to_string(), number);
        number
    }

    /// Whether a stream still receives events, on a server that knows streams by their request ids.
    fn is_delivered(&self, id: &Value, number: usize) -> bool {
        let streams = lock(&self.streams);
        self.manners.streams != Streams::ByRequestId || streams.by_id.get(&id.to_string()) == Some(&number)
    }

    fn tasks(&self) -> Vec<Arc<Task>> {
        lock(&self.tasks).clone()
    }

    fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.tasks().into_iter().find(|task| task.id == id)
    }

    /// A new task, whose work begins.
    fn begin(self: &Arc<Self>, context: Option<&str>) -> Arc<Task> {
        let mut tasks = lock(&self.tasks);
        let number = tasks.len() + 1;
        let is_known = |context: &&str| tasks.iter().any(|task| task.context == **context);
        let named = match self.manners.contexts {
            Contexts::Callers => context,
            Contexts::Own => context.filter(is_known),
        };
        let context = named.map_or_else(|| format!("context-{number}"), str::to_owned);
        let task = Arc::new(Task::new(format!("task-{number}"), context));
        tasks.push(Arc::clone(&task));
        work::begin(Arc::clone(self), Arc::clone(&task));
        task
    }
}
