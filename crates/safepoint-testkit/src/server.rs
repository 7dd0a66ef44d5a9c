//! A model server on a real loopback socket, driven by a script or step by step, that sees exactly when its peer
//! closes.
//!
//! It speaks HTTP/1.1 by itself, because servers from libraries hide the moment in which a client went away.
//!
//! **Invariants**: an invalid history is answered with the provider's own 400 unless the server is lenient; every
//! exchange is recorded before it is answered.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time::Instant,
};

use crate::{asked::Asked, script::Script};

mod connection;
mod gate;
mod http;
mod render;

pub use gate::Gate;
pub use http::Wire;

/// A scripted model server. It stops serving when it is dropped.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use safepoint_testkit::{script::{Reply, Script}, server::ModelServer};
/// let server = ModelServer::start(Script::of([Reply::text("hello")])).await.unwrap();
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// assert_eq!(server.requests().len(), 0);
/// # });
/// ```
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    script: Script,
    strictness: Strictness,
    log: Option<mpsc::UnboundedSender<Value>>,
    state: Mutex<State>,
    arrived: Notify,
    open: AtomicUsize,
    recording: Recording,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    exchanges: Vec<Exchange>,
    gates: std::collections::VecDeque<gate::Steps>,
}

/// Whether invalid histories are refused. Exhaustive: they are or they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// With the provider's own 400.
    #[default]
    Strict,
    /// Never.
    Lenient,
}

/// Whether exchanges are kept. Exhaustive: they are or they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// All of them.
    #[default]
    On,
    /// None: for benchmarks.
    Off,
}

/// How a server is started.
#[derive(Debug, Default)]
pub struct Options {
    /// Whether invalid histories are refused.
    pub strictness: Strictness,
    /// Whether exchanges are kept.
    pub recording: Recording,
    /// Where to tell of each request, close and end, as JSON values.
    pub log: Option<mpsc::UnboundedSender<Value>>,
}

/// One exchange, as it was recorded.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its number, from 0.
    pub id: usize,
    /// The wire.
    pub wire: Wire,
    /// The request's path.
    pub path: String,
    /// The request's headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Arc<Value>,
    /// When it had arrived.
    pub at: Instant,
    /// What has become of it.
    pub fate: watch::Receiver<Fate>,
}

/// What has become of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// When the peer was seen to close its side.
    pub peer_closed: Option<Instant>,
    /// When the whole answer had been written.
    pub completed: Option<Instant>,
    /// Bytes that the peer sent after its request, while it was being answered.
    pub bytes_after: usize,
    /// The status that was answered.
    pub status: u16,
}

impl ModelServer {
    /// Starts a strict server on a free loopback port.
    ///
    /// # Errors
    /// If no port can be had.
    ///
    /// # Cancel safety
    /// Nothing is served if dropped.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Options::default(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a server.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    /// Nothing is served if dropped.
    pub async fn start_with(script: Script, options: Options, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            strictness: options.strictness,
            log: options.log,
            state: Mutex::default(),
            arrived: Notify::new(),
            open: AtomicUsize::new(0),
            recording: options.recording,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// The base URL, with `/v1`: the same for both wires.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next request is answered step by step through the gate; several queue up.
    pub fn gate(&self) -> Gate {
        let (gate, steps) = gate::pair(Arc::clone(&self.shared));
        self.shared.lock().gates.push_back(steps);
        gate
    }

    /// Every exchange so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Exchange> {
        self.shared.lock().exchanges.clone()
    }

    /// Waits until exchange `id` (from 0) has arrived.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn request(&self, id: usize) -> Exchange {
        loop {
            let arrived = self.shared.arrived.notified();
            if let Some(exchange) = self.shared.lock().exchanges.get(id).cloned() {
                return exchange;
            }
            arrived.await;
        }
    }

    /// Connections that are open, idle ones included.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Exchange {
    /// Waits until the peer was seen to close, and says when.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn peer_closed(&self) -> Instant {
        self.fate(|fate| fate.peer_closed).await
    }

    /// Waits until the answer was written whole, and says when.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn completed(&self) -> Instant {
        self.fate(|fate| fate.completed).await
    }

    async fn fate<T>(&self, of: impl Fn(&Fate) -> Option<T>) -> T {
        let mut fate = self.fate.clone();
        loop {
            if let Some(found) = of(&fate.borrow_and_update()) {
                return found;
            }
            if fate.changed().await.is_err() {
                // The connection's task is gone and this never came: it never will.
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _peer)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            shared.open.fetch_add(1, Ordering::SeqCst);
            let served = connection::serve(socket, &shared).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
            if let Err(error) = served {
                shared.tell(|| serde_json::json!({"type": "connection_ended", "error": error.to_string()}));
            }
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, what: impl FnOnce() -> Value) {
        if let Some(log) = &self.log
            && log.send(what()).is_err()
        {
            // Whoever read the log is gone; the server goes on.
        }
    }

    /// Notes an exchange and returns what its connection writes its fate to.
    fn arrived(&self, request: http::Request) -> (usize, watch::Sender<Fate>, Arc<Value>) {
        let (sender, fate) = watch::channel(Fate::default());
        let body = Arc::new(request.body);
        if self.recording == Recording::Off {
            return (0, sender, body);
        }
        let mut state = self.lock();
        let id = state.exchanges.len();
        state.exchanges.push(Exchange {
            id,
            wire: request.wire,
            path: request.path,
            headers: request.headers,
            body: Arc::clone(&body),
            at: Instant::now(),
            fate,
        });
        drop(state);
        self.arrived.notify_waiters();
        self.tell(|| serde_json::json!({"type": "request", "id": id, "body": *body}));
        (id, sender, body)
    }

    /// What is to be written for this request.
    fn answer(&self, wire: Wire, body: &Value) -> Answer {
        if self.strictness == Strictness::Strict {
            let judged = match wire {
                Wire::OpenAi => crate::oracle::openai(body).map_err(|violation| violation.openai_body()),
                Wire::Anthropic => {
                    crate::oracle::anthropic(body).map_err(|violation| violation.anthropic_body())
                }
            };
            if let Err(refusal) = judged {
                return Answer::Steps(render::refusal(400, &refusal));
            }
        }
        let mut state = self.lock();
        if let Some(steps) = state.gates.pop_front() {
            return Answer::Gated(steps);
        }
        let asked = Asked::of(body);
        let reply = self.script.choose(&asked, &mut state.used);
        drop(state);
        Answer::Steps(render::reply(wire, &reply, asked.stream, body["model"].as_str().unwrap_or("scripted")))
    }
}

/// How an exchange is answered.
enum Answer {
    Steps(Vec<render::Step>),
    Gated(gate::Steps),
}
