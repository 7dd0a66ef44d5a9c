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
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::json;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    time::sleep,
};

use crate::script::Script;

mod connection;
mod exchange;
mod gate;
mod http;
mod kept;
mod log;
mod render;
mod shared;

pub use exchange::{Exchange, Fate};
pub use gate::Gate;
pub use http::ServedWire;
pub use kept::{Ask, What};
pub use log::ServerLog;
pub(crate) use shared::Shared;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// How long it waits when nothing can be accepted, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A scripted model server. When it is dropped it stops serving, and its connections close.
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
    // Dropped with the server: its connections and its listener end with it.
    _alive: watch::Sender<()>,
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
pub enum KeptExchanges {
    /// All of them.
    #[default]
    On,
    /// None: for benchmarks. Gates do not work; with a lenient server and a script that repeats and has no
    /// conditions, a request's history is not even read.
    Off,
}

/// How a server is started.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Whether invalid histories are refused.
    pub strictness: Strictness,
    /// Whether exchanges are kept.
    pub recording: KeptExchanges,
    /// Where to tell of each request, first byte, close and end.
    pub log: Option<ServerLog>,
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
        Self::start_with(script, ServerOptions::default(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts a server.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    /// Nothing is served if dropped.
    pub async fn start_with(script: Script, options: ServerOptions, address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script, options));
        let (alive, ends) = watch::channel(());
        tokio::spawn(accept(listener, Arc::clone(&shared), ends));
        Ok(Self { address, shared, _alive: alive })
    }

    /// The base URL, with `/v1`: the same for all wires.
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
        self.shared.queue(steps);
        gate
    }

    /// Every exchange so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Exchange> {
        self.shared.exchanges()
    }

    /// What was asked about responses in the background, beside their streams: cancels, and reads of their rest.
    #[must_use]
    pub fn asked_about(&self) -> Vec<Ask> {
        self.shared.asked_about()
    }

    /// Waits until exchange `id` (from 0) has arrived.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn request(&self, id: usize) -> Exchange {
        loop {
            let arrived = self.shared.arrived.notified();
            if let Some(exchange) = self.shared.exchange(id) {
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

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut ends: watch::Receiver<()>) {
    loop {
        let accepted = tokio::select! {
            biased;
            // Losing the other branch loses connections that wait to be accepted: the server is gone.
            _gone = ends.changed() => return,
            // Losing this one loses nothing.
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, _peer)) => {
                let (shared, mut ends) = (Arc::clone(&shared), ends.clone());
                tokio::spawn(async move {
                    let _open = Open::new(&shared);
                    tokio::select! {
                        biased;
                        // Losing the other branch closes the connection: the server is gone.
                        _gone = ends.changed() => {}
                        // Losing this one loses nothing.
                        served = connection::serve(socket, &shared) => told(&shared, served),
                    }
                });
            }
            Err(error) => {
                told(&shared, Err(error));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn told(shared: &Shared, served: io::Result<()>) {
    if let Err(error) = served {
        shared.tell(|| json!({"type": "connection_ended", "error": error.to_string()}));
    }
}

/// Counts a connection while it is open.
struct Open<'s>(&'s Shared);

impl<'s> Open<'s> {
    fn new(shared: &'s Shared) -> Self {
        shared.open.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
