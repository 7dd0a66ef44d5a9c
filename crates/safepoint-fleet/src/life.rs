//! The life of a node's process: it joins, takes what is due, and joins again when its lease is lost.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::future::{self, BoxFuture, Either, FutureExt as _};
use safepoint::{
    raw::simulation::SimulatedMachine,
    session::Node,
    store::{NewNode, OwnerProcess, Store},
};
use safepoint_nodes::{Here, NodeCapacity, Placement, PlacementError, Taker, Wake, wake_due};
use tokio::{sync::oneshot, time::sleep};

use super::{
    dice::Dice, judge::Judge, link::NodeLink, plan::Owners, simulation::TTL, site::DAY, wire::WireStore,
};
use crate::sync::lock;

/// How long a process waits before it joins again.
const AGAIN: Duration = Duration::from_millis(300);
/// How long a node that drains waits for its sessions.
const DRAIN: Duration = Duration::from_secs(4);

/// Makes what takes sessions on a node that has joined.
pub(super) type MakesTaker =
    Arc<dyn Fn(Arc<dyn Store>, Arc<Node>, Arc<NodeLink>) -> Arc<dyn Taker> + Send + Sync>;

/// A node's process.
pub(super) struct Life {
    pub(super) link: Arc<NodeLink>,
    pub(super) store: WireStore,
    pub(super) judge: Arc<Judge>,
    pub(super) taker: MakesTaker,
    pub(super) wakes: Arc<LooseWakes>,
    pub(super) room: usize,
    pub(super) owners: Owners,
    /// The next request to drain. Held to take it.
    pub(super) drains: Arc<Mutex<Option<oneshot::Sender<()>>>>,
}

impl Life {
    /// Lives until its machine crashes.
    pub(super) async fn run(self) {
        loop {
            match Node::join(Arc::new(self.store.clone()), self.new_node()).await {
                Ok(node) => self.serve(node).await,
                // The name is there until the last process is buried.
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    fn new_node(&self) -> NewNode {
        let number = self.link.number;
        let owner = OwnerProcess {
            host: format!("machine-{number}"),
            boot: "first".into(),
            space: "all".into(),
            pid: 1,
            started: 1,
            socket: None,
        };
        let room = u32::try_from(self.room).unwrap_or(u32::MAX);
        NewNode { name: format!("n{number}"), room, ..NewNode::of(owner, TTL) }
    }

    /// Takes sessions until the lease is lost or the node has drained.
    async fn serve(&self, node: Node) {
        let (drains, drain) = oneshot::channel();
        *lock(&self.drains) = Some(drains);
        let node = Arc::new(node);
        let here = Arc::new(Here::default());
        let taker = (self.taker)(Arc::new(self.store.clone()), Arc::clone(&node), Arc::clone(&self.link));
        self.wakes.has(self.link.number, &here);
        let loose = LoosePlacement { wakes: Arc::clone(&self.wakes), here: Arc::clone(&here) };
        let capacity = NodeCapacity { pools: Vec::new(), room: self.room, lease: TTL };
        let drain = drain.map(drop).shared();
        let looks = wake_due(&self.store, &[], &loose, node.burials(), drain.clone());
        let serves = here.serve(taker, capacity, drain.clone().boxed());
        let serves = future::join(looks, serves).map(drop).boxed();
        match future::select(node.lost().boxed(), serves).await {
            Either::Left((lost, serves)) => {
                self.judge.saw("lost", format_args!("{} {lost}", self.link.number));
                // Nothing is taken any more, and sessions end by the loss, when they know of it. A script is dropped.
                drop(lock(&self.drains).take());
                if self.owners == Owners::Sessions {
                    serves.await;
                }
            }
            Either::Right(((), _)) => self.judge.saw("drained", self.link.number),
        }
        // The owners' handles are gone by now.
        if let Some(node) = Arc::into_inner(node).filter(|node| !node.left().is_zero()) {
            node.drain(DRAIN).await;
        }
    }
}

/// The ways of wakes between the nodes.
#[derive(Debug)]
pub(super) struct LooseWakes {
    dice: Dice,
    /// Held for one look or one entry.
    all: Mutex<Vec<Option<Arc<Here>>>>,
}

impl LooseWakes {
    pub(super) fn new(nodes: usize, seed: u64) -> Self {
        Self { dice: Dice::of(seed), all: Mutex::new(vec![None; nodes]) }
    }

    fn has(&self, number: usize, here: &Arc<Here>) {
        if let Some(place) = lock(&self.all).get_mut(number) {
            *place = Some(Arc::clone(here));
        }
    }

    /// Where else a wake goes.
    fn elsewhere(&self) -> Option<Arc<Here>> {
        let all = lock(&self.all);
        all.get(self.dice.place(all.len())).cloned().flatten()
    }
}

/// A placement that loses wakes, and brings them twice and to the wrong node (S7.61).
#[derive(Debug)]
struct LoosePlacement {
    wakes: Arc<LooseWakes>,
    here: Arc<Here>,
}

impl Placement for LoosePlacement {
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        const KINDS: u64 = 40;
        async move {
            for wake in wakes {
                let elsewhere = self.wakes.elsewhere();
                match self.wakes.dice.below(KINDS) {
                    0 => continue,
                    1 => self.here.wake(vec![wake.clone(), wake]).await?,
                    2 => {
                        self.here.wake(vec![wake.clone()]).await?;
                        if let Some(other) = elsewhere {
                            other.wake(vec![wake]).await?;
                        }
                    }
                    3 => match elsewhere {
                        Some(other) => other.wake(vec![wake]).await?,
                        None => continue,
                    },
                    _ => self.here.wake(vec![wake]).await?,
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn serve(
        &self,
        taker: Arc<dyn Taker>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        self.here.serve(taker, capacity, leave)
    }

    fn wanted(&self) -> usize {
        self.here.wanted()
    }
}

/// A machine for a node, with clocks that are up to 2 % off.
pub(super) fn machine(dice: &Dice) -> SimulatedMachine {
    const MOST: u64 = 20_000;
    let off =
        i64::try_from(dice.below(2 * MOST + 1)).unwrap_or_default() - i64::try_from(MOST).unwrap_or_default();
    SimulatedMachine::new(SystemTime::UNIX_EPOCH + DAY, i32::try_from(off).unwrap_or_default())
}
