//! Nodes whose sessions come by a queue, and that take them as a server does: by the store.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use safepoint::{
    raw::store::{NewSession, NodeLease, Rest},
    store::{Error, NewNode, OwnerProcess, Store},
};
use safepoint_nodes::{
    NodeCapacity, Placement, QueuePlacement, TakeResult, Taker, Wake, WakeQueue, wake_due,
};
use safepoint_testkit::{
    store_suite::item,
    wait::{self, InTime as _},
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinHandle,
};

const LEASE: Duration = Duration::from_secs(60);

/// A node of a store, whose sessions come by a queue.
pub(crate) struct QueueNode {
    pub(crate) placement: Arc<QueuePlacement>,
    pub(crate) hands: Arc<StoreHands>,
    pools: Vec<String>,
    leave: watch::Sender<bool>,
    served: JoinHandle<()>,
    looks: Option<JoinHandle<()>>,
}

/// Takes a session by its lease, and gives it back when it is let go.
pub(crate) struct StoreHands {
    store: Arc<dyn Store>,
    pub(crate) node: NodeLease,
    /// What became of each take, in order.
    pub(crate) takes: Mutex<Vec<(String, TakeResult)>>,
    /// What it has and had, each with the moment at which it was owned.
    owned: Mutex<Vec<(String, Instant)>>,
    /// Lets one go for each permit.
    pub(crate) let_go: Semaphore,
}

impl StoreHands {
    pub(crate) async fn join(store: &Arc<dyn Store>, pools: &[String]) -> Arc<Self> {
        let new = NewNode { pools: pools.to_vec(), ..NewNode::of(OwnerProcess::here(), LEASE) };
        Arc::new(Self {
            store: Arc::clone(store),
            node: store.join(new).await.unwrap(),
            takes: Mutex::default(),
            owned: Mutex::default(),
            let_go: Semaphore::new(0),
        })
    }

    pub(crate) fn owned(&self) -> Vec<String> {
        let mut owned: Vec<String> =
            self.owned.lock().unwrap().iter().map(|(name, _)| name.clone()).collect();
        owned.sort();
        owned
    }

    /// When it was owned.
    pub(crate) fn since(&self, session: &str) -> Option<Instant> {
        self.owned.lock().unwrap().iter().find(|(name, _)| name == session).map(|(_, at)| *at)
    }

    pub(crate) fn takes(&self) -> Vec<(String, TakeResult)> {
        self.takes.lock().unwrap().clone()
    }
}

impl Taker for StoreHands {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            let name = wake.session.to_string();
            let result = match self.store.acquire(&wake.session, &self.node).await {
                Ok(lease) => {
                    self.owned.lock().unwrap().push((name.clone(), Instant::now()));
                    let seen = self.store.notice(&wake.session).await.unwrap();
                    self.let_go.acquire().await.unwrap().forget();
                    self.store.release(&lease, seen, Rest::Nothing).await.unwrap();
                    TakeResult::Released
                }
                Err(Error::Held(..) | Error::NoSession(_)) => TakeResult::Elsewhere,
                Err(Error::Parked(..)) => TakeResult::Parked,
                Err(_) => TakeResult::Lost,
            };
            self.takes.lock().unwrap().push((name, result));
            result
        }
        .boxed()
    }
}

impl QueueNode {
    /// A node of this store, with these pools and this room.
    pub(crate) async fn of(
        store: &Arc<dyn Store>,
        queue: impl WakeQueue,
        pools: &[&str],
        room: usize,
    ) -> Self {
        let pools: Vec<String> = pools.iter().map(|pool| (*pool).to_owned()).collect();
        let hands = StoreHands::join(store, &pools).await;
        let placement = Arc::new(QueuePlacement::new(queue));
        let (leave, _) = watch::channel(false);
        let capacity = NodeCapacity { pools: pools.clone(), room, lease: LEASE };
        let (place, taker, left) = (Arc::clone(&placement), Arc::clone(&hands), left(&leave));
        let served = tokio::spawn(async move { place.serve(taker, capacity, left.boxed()).await.unwrap() });
        Self { placement, hands, pools, leave, served, looks: None }
    }

    /// The same, which also looks for what is due.
    pub(crate) fn that_looks(mut self) -> Self {
        let (store, placement) = (Arc::clone(&self.hands.store), Arc::clone(&self.placement));
        let (pools, left) = (self.pools.clone(), left(&self.leave));
        self.looks = Some(tokio::spawn(async move {
            wake_due(&*store, &pools, &*placement, watch::Sender::new(()).subscribe(), left).await;
        }));
        self
    }

    pub(crate) async fn wake(&self, pool: &str, sessions: &[&str]) {
        wake(&*self.placement, pool, sessions).await;
    }

    pub(crate) fn owned(&self) -> Vec<String> {
        self.hands.owned()
    }

    /// Waits until it had these, and no others.
    pub(crate) async fn owns(&self, sessions: &[&str]) {
        let look = || {
            let owned = self.owned();
            if owned == sessions { Ok(()) } else { Err((owned, self.hands.takes(), self.failure())) }
        };
        wait::so(format_args!("it owns {sessions:?}"), look).await;
    }

    /// Drains: it takes nothing more, and gives back what it has.
    pub(crate) async fn drains(self) {
        self.leave.send_replace(true);
        self.hands.let_go.add_permits(1_000);
        self.served.in_time("the end of a node that drains").await.unwrap();
        if let Some(looks) = self.looks {
            looks.in_time("the end of its looks").await.unwrap();
        }
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.placement.failure().borrow().as_ref().map(ToString::to_string)
    }
}

fn left(leave: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut left = leave.subscribe();
    async move { drop(left.wait_for(|left| *left).await) }
}

pub(crate) async fn wake(placement: &dyn Placement, pool: &str, sessions: &[&str]) {
    let wakes = sessions.iter().map(|name| {
        let mut wake = Wake::of(*name);
        wake.pool = pool.to_owned();
        wake
    });
    placement.wake(wakes.collect()).await.unwrap();
}

/// Sessions of this pool that want an owner.
pub(crate) async fn due(store: &dyn Store, pool: &str, names: &[&str]) {
    for name in names {
        let new = NewSession { pool: pool.to_owned(), ..NewSession::of(*name) };
        let session = store.create(new).await.unwrap().id;
        store.push(&session, item("1", "hello")).await.unwrap();
    }
}
