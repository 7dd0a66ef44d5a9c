//! A queue of wakes in a durable engine: Restate, for those who run it.
//!
//! ```text
//! wake ─▶ POST /SafepointSession/{session}/own/send ─▶ the engine ─▶ a node behind its address ─▶ Here ─▶ Taker::take
//! ```
//!
//! **Invariants**: the engine sees that a session was woken and that a node has it in hand, and nothing else. A handler ends as soon as that
//! is so: no turn, call or effect runs in it, and nothing of these is in its journal.

mod handler;
mod ingress;

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use restate_sdk::{endpoint::Endpoint, http_server::HttpServer};
use tokio::net::TcpListener;
use url::Url;

use crate::{
    here::Here,
    placement::PlacementError,
    queue::WakeQueue,
    taker::{NodeCapacity, Wake},
};
use handler::SafepointSession;
use ingress::Ingress;

/// How many wakes are sent at once.
const AT_ONCE: usize = 16;

/// Where the engine is, and where it reaches this node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestateOptions {
    /// The ingress of the engine, to which wakes are sent.
    pub ingress: Url,
    /// Where this node listens for the engine. Default `127.0.0.1:9080`.
    pub listen: SocketAddr,
    /// The public key of the engine, as it prints it (`publickeyv1_…`): requests that it has not signed are refused. Without one, any
    /// program that reaches the address can wake sessions. Default none.
    pub identity_key: Option<String>,
}

impl RestateOptions {
    /// The engine with this ingress.
    pub fn of(ingress: Url) -> Self {
        const PORT: u16 = 9080;
        Self { ingress, listen: SocketAddr::from(([127, 0, 0, 1], PORT)), identity_key: None }
    }
}

/// Wakes by the engine Restate: its virtual object `SafepointSession`, with a session as its key and the handler `own`.
///
/// All nodes stand behind one address, which is registered with the engine once (`POST /deployments` of its admin API). They should offer
/// the same pools: a wake that reaches a node of another pool is lost, and the session is named again after five seconds.
///
/// ```no_run
/// use std::sync::Arc;
/// use safepoint_nodes::{PlacementError, QueuePlacement, RestateOptions, RestateQueue};
/// async fn placement(ingress: url::Url) -> Result<Arc<QueuePlacement>, PlacementError> {
///     let queue = RestateQueue::open(RestateOptions::of(ingress)).await?;
///     Ok(Arc::new(QueuePlacement::new(queue)))
/// }
/// ```
pub struct RestateQueue {
    ingress: Ingress,
    identity_key: Option<String>,
    address: SocketAddr,
    /// What it listens with, until it is served. Held to take it out; no other lock is taken under it.
    listener: Mutex<Option<TcpListener>>,
}

impl RestateQueue {
    /// Listens for the engine. The engine itself is not asked yet.
    ///
    /// # Errors
    /// The address cannot be listened on, or the key is none.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn open(options: RestateOptions) -> Result<Self, PlacementError> {
        let ingress = Ingress::new(options.ingress)?;
        endpoint(Arc::default(), Vec::new(), options.identity_key.as_deref())?;
        let listens = async {
            let listener = TcpListener::bind(options.listen).await?;
            Ok::<_, std::io::Error>((listener.local_addr()?, listener))
        };
        let (address, listener) = listens.await.map_err(|error| {
            PlacementError::new(format!("cannot listen for the engine at {}", options.listen)).because(error)
        })?;
        Ok(Self {
            ingress,
            identity_key: options.identity_key,
            address,
            listener: Mutex::new(Some(listener)),
        })
    }

    /// Where the engine reaches this node.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    async fn listener(&self) -> Result<TcpListener, PlacementError> {
        let kept = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(listener) => Ok(listener),
            None => TcpListener::bind(self.address).await.map_err(|error| {
                PlacementError::new(format!("cannot listen for the engine at {}", self.address))
                    .because(error)
            }),
        }
    }
}

impl WakeQueue for RestateQueue {
    fn send(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        let sent = stream::iter(wakes).map(move |wake| async move { self.ingress.send(&wake).await });
        sent.buffer_unordered(AT_ONCE).try_collect().boxed()
    }

    fn receive(
        &self,
        here: Arc<Here>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            let listener = self.listener().await?;
            let endpoint = endpoint(here, capacity.pools, self.identity_key.as_deref())?;
            HttpServer::new(endpoint).serve_with_cancel(listener, leave).await;
            Ok(())
        }
        .boxed()
    }
}

fn endpoint(here: Arc<Here>, pools: Vec<String>, key: Option<&str>) -> Result<Endpoint, PlacementError> {
    let builder = Endpoint::builder().bind(SafepointSession::new(here, pools));
    let Some(key) = key else { return Ok(builder.build()) };
    let builder = builder.identity_key(key).map_err(|error| {
        PlacementError::new("the identity key of the engine cannot be used").because(error)
    })?;
    Ok(builder.build())
}

impl fmt::Debug for RestateQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestateQueue")
            .field("ingress", &self.ingress)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
