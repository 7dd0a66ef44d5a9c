//! The host as a node of its store: it joins again when its node was declared dead, and drains when that is asked of its node.

use std::{
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::{Either, join, select};
use safepoint::{
    session::Node,
    store::{Error, NewNode, OwnerProcess, Store},
};
use safepoint_nodes::NodeCapacity;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{HostState, takeup::leaving};

/// How long the store may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How long it is waited before the next attempt to join again. Its name is free once its old node was buried.
const AGAIN: Duration = Duration::from_millis(250);

/// How many sessions may be open.
const ROOM: u32 = 10_000;

/// What a host is called. Exhaustive: its node's id, exactly so, or so with a random part if another has the name.
#[derive(Clone, Debug)]
pub(super) enum NodeName {
    Own,
    This(String),
    Like(String),
}

/// As what a host joins.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    pub(super) name: NodeName,
    pub(super) pools: Vec<String>,
    pub(super) lease: Duration,
}

impl Membership {
    /// Joins the store, under a fresh id.
    ///
    /// # Errors
    /// Those of [`Node::join`].
    ///
    /// # Cancel safety
    /// The node may have joined; its lease ends.
    pub(super) async fn join(&self, store: &Arc<dyn Store>) -> Result<Node, Error> {
        let own = NewNode {
            room: ROOM,
            pools: self.pools.clone(),
            ..NewNode::of(OwnerProcess::here(), self.lease)
        };
        let join = |new: NewNode| Node::join(Arc::clone(store), new);
        let like = match &self.name {
            NodeName::Own => return join(own).await,
            NodeName::This(name) => return join(NewNode { name: name.clone(), ..own }).await,
            NodeName::Like(like) => like,
        };
        match join(NewNode { name: like.clone(), ..own.clone() }).await {
            Err(Error::NodeExists(..)) => {
                let name = format!("{like}-{}", random_part(&own.name));
                join(NewNode { name, ..own }).await
            }
            joined => joined,
        }
    }

    /// What a placement learns of it.
    pub(super) fn capacity(&self) -> NodeCapacity {
        let room = usize::try_from(ROOM).expect("a small number");
        NodeCapacity { pools: self.pools.clone(), room, lease: self.lease }
    }
}

/// The end of an id, which is random.
fn random_part(id: &str) -> &str {
    const LETTERS: usize = 8;
    id.get(id.len().saturating_sub(LETTERS)..).unwrap_or(id)
}

/// Keeps the host a node of its store, until it drains or is gone.
pub(super) async fn keep(host: Weak<HostState>, as_what: Membership) {
    let leave = leaving(host.clone());
    // Leaving first: a host that drains joins nothing any more. A join that is dropped ends with its lease.
    match select(pin!(leave), pin!(be_a_node(&host, as_what))).await {
        Either::Left(_) | Either::Right(_) => {}
    }
}

async fn be_a_node(host: &Weak<HostState>, as_what: Membership) {
    loop {
        let Some(Joined { lost, drain_asked, burials, store }) = joined(host).await else { return };
        let watched = join(pass_drain_on(host, drain_asked), pass_burials_on(host, burials));
        // The loss first. What is watched is watched again of the next node.
        match select(pin!(lost), pin!(watched)).await {
            Either::Left((_why, _)) => {}
            Either::Right((_, _)) => return,
        }
        let node = joined_again(&store, &as_what).await;
        let Some(host) = host.upgrade() else { return };
        let mut place = host.node.write().await;
        // One that drains has taken its node away, and gives no session back to this one: it leaves at once.
        if place.is_some() && !host.is_draining() {
            *place = Some(node);
        }
    }
}

/// What is watched of a node.
struct Joined<L, D> {
    /// What ends it.
    lost: L,
    drain_asked: D,
    burials: watch::Receiver<()>,
    store: Arc<dyn Store>,
}

/// The node that the host is; `None` once it is none.
async fn joined(
    host: &Weak<HostState>,
) -> Option<Joined<impl Future<Output = Error> + use<>, impl Future<Output = ()> + use<>>> {
    let host = host.upgrade()?;
    let node = host.node.read().await;
    let node = node.as_ref()?;
    let store = Arc::clone(&host.store);
    Some(Joined { lost: node.lost(), drain_asked: node.asked_to_drain(), burials: node.burials(), store })
}

/// What was held by a node that this one declared dead is looked for at once.
async fn pass_burials_on(host: &Weak<HostState>, mut burials: watch::Receiver<()>) {
    while burials.changed().await.is_ok() {
        let Some(host) = host.upgrade() else { return };
        host.burials.send_replace(());
    }
}

/// Asks the host to drain once that is asked of its node.
async fn pass_drain_on(host: &Weak<HostState>, drain_asked: impl Future<Output = ()>) {
    drain_asked.await;
    if let Some(host) = host.upgrade() {
        host.ask_drain();
    }
}

async fn joined_again(store: &Arc<dyn Store>, as_what: &Membership) -> Node {
    loop {
        match timeout(ANSWER, as_what.join(store)).await {
            Ok(Ok(node)) => return node,
            Ok(Err(_)) | Err(_) => sleep(AGAIN).await,
        }
    }
}
