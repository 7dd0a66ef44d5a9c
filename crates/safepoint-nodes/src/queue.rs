//! A placement by a queue: the nodes put what is due into it, and each takes from it what it has room for.
//!
//! **Invariants**: a message is a wake and no lease: it is done with as soon as a node has the session in hand. A session never waits for a
//! queue that is away, or that delivers nothing: the node that finds it due takes it itself (S7.70).

mod health;
mod sent;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::{
    FutureExt as _,
    future::{Either, Shared, join, select},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    here::{Here, Offered},
    placement::{Placement, PlacementError},
    taker::{NodeCapacity, Taker, Wake},
};
use health::QueueHealth;
use sent::SentWakes;

/// How long a queue may take before it counts as away.
const ANSWER: Duration = Duration::from_secs(2);
/// How long a queue that is away is left alone.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a queue may take to end what it receives after the node leaves.
const LEAVE: Duration = Duration::from_secs(2);

/// A queue between those who find sessions due and the nodes that take them.
///
/// A message may be lost, come twice, late, or to the wrong node (S7.61); so a queue needs no promise about any of that.
pub trait WakeQueue: fmt::Debug + Send + Sync + 'static {
    /// Puts these into the queue. One that is there already may stay the only one of its session.
    ///
    /// # Errors
    /// The queue cannot be reached.
    ///
    /// # Cancel safety
    /// Some of them may be in the queue.
    fn send(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>>;

    /// Takes messages for a node with this capacity, and [gives](Here::give) their wakes to `here`, until `leave`. While that
    /// [is full](Here::is_full), messages are left for other nodes.
    ///
    /// # Errors
    /// The queue cannot be reached any more. It is asked again after five seconds.
    ///
    /// # Cancel safety
    /// Messages that were taken and not given may be lost.
    fn receive(
        &self,
        here: Arc<Here>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>>;
}

/// The placement by a queue.
///
/// It hands a session over without the queue where that cannot be reached within two seconds, where its messages cannot be received,
/// and where this node finds a session due that it has put into the queue in the last 30 seconds.
///
/// ```
/// use std::sync::Arc;
/// use safepoint_nodes::{Placement, QueuePlacement, WakeQueue};
/// fn by(queue: impl WakeQueue) -> Arc<dyn Placement> {
///     Arc::new(QueuePlacement::new(queue))
/// }
/// ```
#[derive(Debug)]
pub struct QueuePlacement {
    queue: Box<dyn WakeQueue>,
    here: Arc<Here>,
    health: QueueHealth,
    /// What this node put into the queue. Held for one look or one entry; no other lock is taken under it.
    sent: Mutex<SentWakes>,
}

impl QueuePlacement {
    /// The placement by this queue.
    pub fn new(queue: impl WakeQueue) -> Self {
        Self {
            queue: Box::new(queue),
            here: Arc::default(),
            health: QueueHealth::default(),
            sent: Mutex::default(),
        }
    }

    /// Why the queue is away, for as long as it is. For the operator: sessions are taken without it.
    pub fn failure(&self) -> watch::Receiver<Option<Arc<PlacementError>>> {
        self.health.failure()
    }

    fn sent(&self) -> MutexGuard<'_, SentWakes> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the queue did not take.
    async fn send(&self, wakes: Vec<Wake>) -> Vec<Wake> {
        let Some(first) = wakes.first() else { return wakes };
        let sent = timeout(ANSWER, self.queue.send(wakes.clone())).await;
        let sent = sent.unwrap_or_else(|_late| Err(PlacementError::new("the queue does not answer")));
        if let Err(error) = sent {
            self.health.cannot_send(first.clone(), error, AGAIN);
            return wakes;
        }
        self.health.sends();
        self.sent().note(wakes.into_iter().map(|wake| wake.session).collect());
        Vec::new()
    }

    /// Sends again what the queue did not take, until it takes that: it is known to be back although nothing else is to be sent. A wake
    /// may come twice, and late (S7.61).
    async fn send_again(&self, leave: Shared<BoxFuture<'static, ()>>) {
        let again = async {
            loop {
                sleep(AGAIN).await;
                // What is not taken is due, and was offered here.
                drop(self.send(self.health.refused().into_iter().collect()).await);
            }
        };
        // Leaving first: nothing is sent then.
        select(leave, pin!(again)).await;
    }

    /// Receives until `leave`, again and again.
    async fn receive(&self, capacity: NodeCapacity, leave: Shared<BoxFuture<'static, ()>>) {
        loop {
            let received =
                self.queue.receive(Arc::clone(&self.here), capacity.clone(), leave.clone().boxed());
            let left = async {
                leave.clone().await;
                sleep(LEAVE).await;
            };
            // What is left in a queue that does not end is for other nodes, and due.
            let error = match select(pin!(left), pin!(self.watched(received))).await {
                Either::Left(((), _)) | Either::Right((Ok(()), _)) => return,
                Either::Right((Err(error), _)) => error,
            };
            self.health.cannot_receive(error);
            // Leaving first: nothing is received then.
            match select(leave.clone(), pin!(sleep(AGAIN))).await {
                Either::Left(_) => return,
                Either::Right(_) => {}
            }
        }
    }

    /// One that has received for a while is there again.
    async fn watched(
        &self,
        received: BoxFuture<'_, Result<(), PlacementError>>,
    ) -> Result<(), PlacementError> {
        // An error first. What is pending is waited for behind that time.
        match select(received, pin!(sleep(AGAIN))).await {
            Either::Left((received, _)) => received,
            Either::Right(((), received)) => {
                self.health.receives();
                received.await
            }
        }
    }
}

impl Placement for QueuePlacement {
    /// It never fails: what cannot be put into the queue is handed over here.
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            let is_away = self.health.is_away();
            let (stuck, mut rest): (Vec<_>, Vec<_>) = {
                let sent = self.sent();
                wakes.into_iter().partition(|wake| is_away || sent.is_known(&wake.session))
            };
            for wake in stuck {
                // What waits in a queue that is there may be taken by other nodes too.
                if self.here.offer(wake.clone()) == Offered::NoRoom && !is_away {
                    rest.push(wake);
                }
            }
            // What has no room here is due, and named again.
            for wake in self.send(rest).await {
                self.here.offer(wake);
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
        let leave = leave.shared();
        let taken = self.here.serve(taker, capacity.clone(), leave.clone().boxed());
        let queue = join(self.receive(capacity, leave.clone()), self.send_again(leave));
        join(taken, queue).map(|(taken, _)| taken).boxed()
    }

    /// What others may take too, unless the queue is away.
    fn wanted(&self) -> usize {
        if self.health.is_away() { self.here.wanted() } else { usize::MAX }
    }
}
