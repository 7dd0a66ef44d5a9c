//! An engine, a store in memory, and nodes over both.

use std::{net::SocketAddr, sync::Arc};

use safepoint::store::{MemoryStore, Store};
use safepoint_nodes::{RestateOptions, RestateQueue};

use super::engine::Engine;
use crate::nodes::{self, QueueNode};

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) store: Arc<dyn Store>,
}

impl World {
    pub(super) async fn new() -> Self {
        Self { engine: Engine::start().await, store: Arc::new(MemoryStore::default()) }
    }

    pub(super) async fn queue(&self) -> RestateQueue {
        let mut options = RestateOptions::of(self.engine.ingress());
        options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        RestateQueue::open(options).await.unwrap()
    }

    /// A node that takes what the engine brings, and where that reaches it.
    pub(super) async fn node(&self, pools: &[&str], room: usize) -> (QueueNode, SocketAddr) {
        let queue = self.queue().await;
        let address = queue.address();
        (QueueNode::of(&self.store, queue, pools, room).await, address)
    }

    /// Sessions of this pool that want an owner.
    pub(super) async fn due(&self, pool: &str, names: &[&str]) {
        nodes::due(&*self.store, pool, names).await;
    }

    /// How many owners the session had.
    pub(super) async fn owners(&self, session: &str) -> usize {
        self.store.tenures(&session.into()).await.unwrap().len()
    }
}
