//! A scripted owner: it takes a session by the real contract, begins an effect for each item, obeys stops, and gives the session back.
//!
//! An effect is announced in the append that takes its item, and its end is in the append that removes it: an item that is found taken
//! has an effect of which nothing is known, and none begins for it again (S7.3).

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{
    ids::SessionId,
    raw::store::{Changes, Durability, InboxRow, ItemState, Lease, Record, Rest, StopRow, Write},
    session::Node,
    store::{Error, Store},
};
use safepoint_nodes::{TakeResult, Taker, Wake};
use tokio::{sync::Notify, time::sleep};

use super::{
    dice::Dice,
    effect::{Effect, EffectOf},
    judge::Judge,
    link::NodeLink,
};

/// How much of a lease an effect needs (S7.4).
const NEEDED: Duration = Duration::from_millis(500);
/// How long to wait before the store is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// What takes sessions on one node.
pub(super) struct ScriptedOwner {
    pub(super) store: Arc<dyn Store>,
    pub(super) node: Arc<Node>,
    pub(super) link: Arc<NodeLink>,
    pub(super) judge: Arc<Judge>,
    pub(super) dice: Arc<Dice>,
    pub(super) longest: Duration,
}

impl Taker for ScriptedOwner {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            let Some(node) = self.link.lease() else { return TakeResult::Lost };
            match self.store.acquire(&wake.session, &node).await {
                Ok(lease) => self.own(lease).await,
                Err(Error::Parked(..)) => TakeResult::Parked,
                Err(Error::Draining(_)) => TakeResult::NoRoom,
                Err(Error::Held(..) | Error::NoSession(_)) => TakeResult::Elsewhere,
                Err(_) => TakeResult::Lost,
            }
        }
        .boxed()
    }
}

impl ScriptedOwner {
    /// Works until nothing waits, or something is unknown; then gives the session back.
    async fn own(&self, lease: Lease) -> TakeResult {
        let woken = self.link.seat(lease.session());
        let held = SessionInHand { owner: self, lease, woken };
        let (seen, result) = match held.works().await {
            Ok(seen) => (seen, TakeResult::Released),
            // What is left in it wants an owner.
            Err(_) => (Changes::default(), TakeResult::Lost),
        };
        self.link.leave_seat(held.lease.session());
        let rest = if result == TakeResult::Released { Rest::Nothing } else { Rest::Now };
        held.gives_back(seen, rest).await;
        result
    }
}

/// A session in hand.
struct SessionInHand<'o> {
    owner: &'o ScriptedOwner,
    lease: Lease,
    woken: Arc<Notify>,
}

impl SessionInHand<'_> {
    fn session(&self) -> &SessionId {
        self.lease.session()
    }

    async fn works(&self) -> Result<Changes, Error> {
        loop {
            let seen = self.owner.store.notice(self.session()).await?;
            let stops = self.stops().await?;
            if !stops.is_empty() {
                self.append(stops).await?;
                continue;
            }
            let Some(item) = self.owner.store.inbox(self.session()).await?.into_iter().next() else {
                return Ok(seen);
            };
            self.does(item).await?;
        }
    }

    /// Stops that no owner has recorded as done, as the writes that do so.
    async fn stops(&self) -> Result<Vec<Write>, Error> {
        let stops = self.owner.store.stops(self.session(), 0).await?;
        let open = stops.into_iter().filter(|stop: &StopRow| !stop.seen);
        Ok(open.map(|stop| Write::StopSeen(stop.number)).collect())
    }

    async fn does(&self, item: InboxRow) -> Result<(), Error> {
        let number = item.number;
        if item.state == ItemState::Taken {
            return self.append(vec![record("unknown"), Write::RemoveItem(number), Write::AtRest]).await;
        }
        self.append(vec![Write::TakeItem(number), record("begins"), Write::AtWork]).await?;
        let takes = self.owner.dice.time((Duration::from_millis(10), self.owner.longest));
        let left = self.left().await;
        let machine = self.owner.link.machine();
        let begun = (&*self.owner.dice, left, takes);
        let mut effect = Effect::begin(&self.owner.judge, &machine, self.effect_of(number), begun);
        loop {
            // Biased: an effect that is done is not stopped any more. A wake that is lost here is looked for below by the stop's own row.
            tokio::select! {
                biased;
                is_done = effect.is_done() => {
                    let how = record(if is_done { "done" } else { "killed" });
                    return self.append(vec![how, Write::RemoveItem(number), Write::AtRest]).await;
                }
                () = self.woken.notified() => {}
            }
            let mut writes = self.stops().await?;
            if !writes.is_empty() {
                // Its process ends now, before the message that says so is on its way.
                drop(effect);
                writes.extend([record("stopped"), Write::RemoveItem(number), Write::AtRest]);
                return self.append(writes).await;
            }
        }
    }

    fn effect_of(&self, item: u64) -> EffectOf {
        let (session, lease) = (self.session().clone(), self.lease.node().clone());
        EffectOf { session, item, epoch: self.lease.epoch(), lease }
    }

    /// Waits until the lease is valid for long enough; how long it is.
    async fn left(&self) -> Duration {
        loop {
            let left = self.owner.node.left();
            if left >= NEEDED {
                return left;
            }
            // The node renews it, or is lost, and this with it.
            sleep(AGAIN).await;
        }
    }

    async fn append(&self, writes: Vec<Write>) -> Result<(), Error> {
        self.owner.store.append(&self.lease, writes, Durability::Durable).await.map(drop)
    }

    /// Gives the session back, as often as it takes: a lease that is over may still be renewed. A node that is lost drops this.
    async fn gives_back(&self, seen: Changes, rest: Rest) {
        loop {
            match self.owner.store.release(&self.lease, seen, rest).await {
                Ok(()) | Err(Error::Fenced { .. } | Error::Buried(_) | Error::NoSession(_)) => return,
                Err(_) => sleep(AGAIN).await,
            }
        }
    }
}

fn record(says: &str) -> Write {
    Write::Record(Record { path: "1".into(), kind: says.into(), version: 1, bytes: Vec::new() })
}
