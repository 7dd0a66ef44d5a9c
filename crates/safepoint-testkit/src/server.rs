//! A model server on a real loopback socket, driven by a script or step by step, that sees exactly when its
//! peer closes.
//!
//! It speaks HTTP/1.1 by itself, because servers from libraries hide the moment in which a client went away.
//!
//! **Invariants**: an invalid history is answered with the provider's own 400 unless the server is lenient; every
//! exchange is recorded before it is answered.

use std::{io, net::SocketAddr, sync::Arc};

use serde_json::json;

use crate::{
    http::{self, Serving},
    script::Script,
};

mod ask;
mod connection;
mod embeddings;
mod exchange;
mod gate;
mod kept;
mod log;
mod render;
mod route;
mod shared;
mod steps;

pub use ask::{Ask, What};
pub use embeddings::EmbeddingFault;
pub use exchange::{Exchange, Fate};
pub use gate::Gate;
pub use log::ServerLog;
pub use route::ServedWire;
pub(crate) use shared::Shared;

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
    _serving: Serving,
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
        Self::start_with(script, ServerOptions::default(), http::LOOPBACK).await
    }

    /// Starts a server.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    /// Nothing is served if dropped.
    pub async fn start_with(script: Script, options: ServerOptions, address: SocketAddr) -> io::Result<Self> {
        let listener = http::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script, options));
        let (serves, reports) = (Arc::clone(&shared), Arc::clone(&shared));
        let serve = move |connection| {
            let shared = Arc::clone(&serves);
            async move {
                let _open = Arc::clone(&shared.open);
                connection::serve(connection, &shared).await
            }
        };
        let report = move |error: io::Error| {
            reports.tell(|| json!({"type": "connection_ended", "error": error.to_string()}));
        };
        let serving = Serving::start_with(listener, serve, report);
        Ok(Self { address, shared, _serving: serving })
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
        self.gate_for(|_any| true)
    }

    /// The next request whose body fits is answered step by step through the gate: an agent may ask for a title beside.
    ///
    /// ```
    /// # use safepoint_testkit::{script::Script, server::ModelServer};
    /// # fn of(server: &ModelServer) {
    /// let gate = server.gate_for(|body| body["tools"].is_array());
    /// # }
    /// ```
    pub fn gate_for(&self, is_for: fn(&serde_json::Value) -> bool) -> Gate {
        let (gate, steps) = gate::pair(Arc::clone(&self.shared));
        self.shared.queue(shared::Queued { is_for, steps });
        gate
    }

    /// Something goes wrong with the answer to the next request for embeddings; several queue up.
    ///
    /// Without it such a request gets vectors of the words in its texts: the same text has the same vector, and texts that
    /// share words have near ones. A strict server refuses what the provider would.
    pub fn break_embeddings(&self, fault: EmbeddingFault) {
        self.shared.break_embeddings(fault);
    }

    /// Every exchange so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Exchange> {
        self.shared.exchanges()
    }

    /// What was asked about responses in the background, beside their streams: cancels, and reads of their
    /// rest.
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
        // One is the server's own.
        Arc::strong_count(&self.shared.open) - 1
    }
}
