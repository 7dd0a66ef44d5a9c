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
use tokio::sync::Notify;

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
    /// Held for one look or one entry; no other lock is taken under it.
    hands: Mutex<Hands>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct Hands {
    room: usize,
    waiting: VecDeque<Wake>,
    /// What waits or is taken, each with the wake that came meanwhile.
    held: HashMap<SessionId, Option<Wake>>,
}

impl Hands {
    /// Whether it waits to be taken now.
    fn wake(&mut self, wake: Wake) -> bool {
        if let Some(again) = self.held.get_mut(&wake.session) {
            // One that still waits is taken anyway.
            if !self.waiting.iter().any(|waits| waits.session == wake.session) {
                *again = Some(wake);
            }
            return false;
        }
        if self.held.len() >= self.room {
            return false;
        }
        self.held.insert(wake.session.clone(), None);
        self.waiting.push_back(wake);
        true
    }

    /// A take has ended. What was woken meanwhile waits again.
    fn done(&mut self, session: &SessionId) {
        if let Some(again) = self.held.remove(session).flatten() {
            self.wake(again);
        }
    }
}

impl Here {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
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
                Either::Right((Either::Left((Some(session), _)), _)) => self.hands().done(&session),
                Either::Right((Either::Left((None, _)) | Either::Right(((), _)), _)) => {}
            }
        }
        self.close();
        while let Some(session) = taken.next().await {
            self.hands().done(&session);
        }
    }

    /// Nothing is taken any more.
    fn close(&self) {
        let mut hands = self.hands();
        hands.room = 0;
        for wake in std::mem::take(&mut hands.waiting) {
            hands.held.remove(&wake.session);
        }
        hands.held.values_mut().for_each(|again| *again = None);
    }
}

impl Placement for Here {
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        let is_new = {
            let mut hands = self.hands();
            wakes.into_iter().fold(false, |is_new, wake| hands.wake(wake) | is_new)
        };
        if is_new {
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
        self.hands().room = capacity.room;
        async move {
            self.hand_over(taker, leave).await;
            Ok(())
        }
        .boxed()
    }

    fn wanted(&self) -> usize {
        let hands = self.hands();
        hands.room.saturating_sub(hands.held.len())
    }
}
