//! The placement of one process: what it is woken for, it takes itself.
//!
//! **Invariants**: no more sessions are in hand than there is room for, and each once. What is woken while it is in hand is taken once
//! more after that.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_core::future::BoxFuture;
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{Either, select},
    stream::FuturesUnordered,
};
use safepoint::ids::SessionId;
use tokio::sync::{Notify, watch};

use crate::{
    placement::{Placement, PlacementError},
    taker::{NodeCapacity, Taker, Wake},
};

/// Hands each wake to the taker of this process. It needs no server: the sessions of other nodes are found by
/// [`wake_due`](crate::wake_due) when these have died.
///
/// Two tasks that [`serve`](Placement::serve) the same one share its wakes.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use safepoint_nodes::{Here, Placement, Wake};
/// let here = Here::default();
/// assert_eq!(here.wanted(), 0, "nothing is served");
/// // A wake that has no taker is lost; the store still knows what is due.
/// here.wake(vec![Wake::of("trip")]).await.unwrap();
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Here {
    /// Held for one look or one entry; no other lock is taken under it but that of the channel beside it.
    hands: Mutex<Hands>,
    woken: Notify,
    /// How much room is left: what is sent under the lock of the hands is in the order of their changes.
    free: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Hands {
    room: usize,
    waiting: VecDeque<Wake>,
    /// What waits or is taken, each with the wake that came meanwhile.
    held: HashMap<SessionId, Option<Wake>>,
}

/// What became of a wake. Exhaustive: it waits now, or was in hand, or has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    New,
    Known,
    NoRoom,
}

impl Hands {
    fn wake(&mut self, wake: Wake) -> Offered {
        if let Some(again) = self.held.get_mut(&wake.session) {
            // One that still waits is taken anyway.
            if !self.waiting.iter().any(|waits| waits.session == wake.session) {
                *again = Some(wake);
            }
            return Offered::Known;
        }
        if self.held.len() >= self.room {
            return Offered::NoRoom;
        }
        self.held.insert(wake.session.clone(), None);
        self.waiting.push_back(wake);
        Offered::New
    }

    /// A take has ended. What was woken meanwhile waits again.
    fn done(&mut self, session: &SessionId) {
        if let Some(again) = self.held.remove(session).flatten() {
            self.wake(again);
        }
    }

    fn free(&self) -> usize {
        self.room.saturating_sub(self.held.len())
    }
}

impl Here {
    /// Waits until a session more can be taken. It never ends while nothing is [served](Placement::serve).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn has_room(&self) {
        self.wait_for(|free| free > 0).await;
    }

    /// Waits until no session more can be taken.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn is_full(&self) {
        self.wait_for(|free| free == 0).await;
    }

    /// Hands over a wake once there is room for it, or the session is in hand already. For a queue, whose message is done with then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use futures_util::FutureExt as _;
    /// use safepoint_nodes::{Here, Wake};
    /// let here = Here::default();
    /// assert!(here.give(Wake::of("trip")).now_or_never().is_none(), "nothing is served: there is no room");
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// It was not handed over.
    pub async fn give(&self, wake: Wake) {
        while self.offer(wake.clone()) == Offered::NoRoom {
            self.has_room().await;
        }
    }

    /// Hands over a wake if there is room for it.
    pub(crate) fn offer(&self, wake: Wake) -> Offered {
        let offered = self.change(|hands| hands.wake(wake));
        if offered == Offered::New {
            self.woken.notify_one();
        }
        offered
    }

    async fn wait_for(&self, is_so: impl Fn(usize) -> bool) {
        // The sender lives as long as this.
        drop(self.free.subscribe().wait_for(|free| is_so(*free)).await);
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Hands) -> T) -> T {
        let mut hands = self.hands();
        let changed = change(&mut hands);
        let free = hands.free();
        self.free.send_if_modified(|known| std::mem::replace(known, free) != free);
        changed
    }

    /// Takes what waits, until `leave`; then waits for what it has.
    async fn hand_over(&self, taker: Arc<dyn Taker>, leave: BoxFuture<'static, ()>) {
        let mut leave = leave.fuse();
        let mut taken = FuturesUnordered::new();
        loop {
            let woken = self.woken.notified();
            while let Some(wake) = { self.hands().waiting.pop_front() } {
                let taker = &taker;
                taken.push(async move {
                    let session = wake.session.clone();
                    taker.take(wake).await;
                    session
                });
            }
            // A stream that is empty has no next now, and may have one later.
            let next =
                async { if taken.is_empty() { std::future::pending().await } else { taken.next().await } };
            match select(&mut leave, select(pin!(next), pin!(woken))).await {
                Either::Left(((), _)) => break,
                Either::Right((Either::Left((Some(session), _)), _)) => {
                    self.change(|hands| hands.done(&session));
                }
                Either::Right((Either::Left((None, _)) | Either::Right(((), _)), _)) => {}
            }
        }
        self.close();
        while let Some(session) = taken.next().await {
            self.change(|hands| hands.done(&session));
        }
    }

    /// Nothing is taken any more.
    fn close(&self) {
        self.change(|hands| {
            hands.room = 0;
            for wake in std::mem::take(&mut hands.waiting) {
                hands.held.remove(&wake.session);
            }
            hands.held.values_mut().for_each(|again| *again = None);
        });
    }
}

impl Placement for Here {
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        let offered = self.change(|hands| wakes.into_iter().map(|wake| hands.wake(wake)).collect::<Vec<_>>());
        if offered.contains(&Offered::New) {
            self.woken.notify_one();
        }
        std::future::ready(Ok(())).boxed()
    }

    fn serve(
        &self,
        taker: Arc<dyn Taker>,
        capacity: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        self.change(|hands| hands.room = capacity.room);
        async move {
            self.hand_over(taker, leave).await;
            Ok(())
        }
        .boxed()
    }

    fn wanted(&self) -> usize {
        self.hands().free()
    }
}
