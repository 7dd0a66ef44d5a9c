//! What a node does all the time: it renews its lease, wakes its sessions when others do something to them, and looks for others that
//! died.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use tokio::time::{Instant, sleep, timeout};

use super::{super::builder::engine, Member};
use crate::contract::store::{Error, Leaving};

/// How often it is looked whether the lease is to be renewed, or has ended while the machine slept.
const LOOK: Duration = Duration::from_millis(200);

/// How often a node looks for others that died.
const LOOK_FOR_DEAD: Duration = Duration::from_millis(250);

/// How long the store may take before it is asked again: several requests fit into one lease.
const ANSWER: Duration = Duration::from_secs(3);

impl Member {
    /// Begins the tasks of a node for one session.
    pub(in crate::session) fn start_alone(self: &Arc<Self>) {
        drop(engine().spawn("node of a session", Arc::clone(self).run()));
    }

    /// Beats and listens, until the node is over or lost.
    pub(super) async fn run(self: Arc<Self>) {
        let lost = {
            let mut over = self.over.subscribe();
            let over = pin!(over.wait_for(|is_over| *is_over));
            let (beats, listens) = (pin!(self.beats()), pin!(self.listens()));
            // Whichever ends first ends the node: the others have changed nothing that the store does not know.
            match select(over, select(beats, listens)).await {
                Either::Left(_) => None,
                Either::Right((Either::Left((lost, _)) | Either::Right((lost, _)), _)) => Some(lost),
            }
        };
        let Some(lost) = lost else { return self.leave_for_good().await };
        if self.lost.set(lost).is_ok() {
            self.wake_all();
        }
        self.end();
    }

    /// Renews the lease; what ended it.
    async fn beats(&self) -> Error {
        let mut beat_at = Instant::now() + self.beat_every;
        loop {
            sleep(LOOK.min(self.beat_every)).await;
            // A lease that has ended, as after a pause of the process, is renewed first: nothing may have been taken.
            if Instant::now() < beat_at && !self.lease.left().is_zero() {
                continue;
            }
            match timeout(self.bound(), self.renew()).await {
                Ok(Ok(())) => beat_at = Instant::now() + self.beat_every,
                Ok(Err(error)) if is_final(&error) => return error,
                Ok(Err(_)) | Err(_) if self.lease.left().is_zero() => return self.lapse(),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// How long the store may take now: no longer than the lease is valid, and after its end one last time.
    pub(in crate::session) fn bound(&self) -> Duration {
        self.lease.left().clamp(self.last, ANSWER)
    }

    /// Wakes the sessions to which others do something; why that ended.
    async fn listens(&self) -> Error {
        loop {
            let mut changes = self.store.changes(&self.lease);
            // What came before is found by a look.
            self.wake_all();
            while let Some(change) = changes.next().await {
                match change {
                    Ok(change) => self.wake(&change.session),
                    Err(error) if is_final(&error) => return error,
                    Err(_passing) => break,
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Tells the store, once, that the node is gone.
    pub(in crate::session) async fn leave_for_good(&self) {
        // SeqCst: once in its life.
        if self.lost.get().is_none() && !self.has_left.swap(true, Ordering::SeqCst) {
            self.leave(Leaving::Gone).await;
        }
    }

    /// Tells the store that the node leaves. If that fails, the lease ends and others bury it.
    pub(super) async fn leave(&self, how: Leaving) {
        if !matches!(timeout(self.bound(), self.store.leave(self.lease.id(), how)).await, Ok(Ok(()))) {
            // Nothing depends on it but how soon others see it.
        }
    }

    /// Declares others dead that are, until the node is over.
    pub(super) async fn bury_others(self: Arc<Self>) {
        let looks = async {
            loop {
                sleep(LOOK_FOR_DEAD).await;
                if self.lease.left().is_zero() {
                    continue;
                }
                match timeout(ANSWER, self.store.bury()).await {
                    Ok(Ok(buried)) if !buried.is_empty() => self.buried.send_replace(()),
                    // What was not found is found by the next look.
                    Ok(Ok(_) | Err(_)) | Err(_) => {}
                }
            }
        };
        let mut over = self.over.subscribe();
        let over = pin!(over.wait_for(|is_over| *is_over));
        // The looks never end by themselves; one that is dropped has buried or has not.
        drop(select(over, pin!(looks)).await);
    }
}

/// Whether no later request of the node can succeed.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Buried(_) | Error::NodeLapsed(_) | Error::Newer { .. } | Error::Gone)
}
