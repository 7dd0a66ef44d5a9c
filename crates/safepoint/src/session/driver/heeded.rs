//! Stops as the store keeps them: heeded at once, and noted as seen to only when they have come to their end.
//!
//! **Invariants**: an intent that was heeded and is not noted as seen to holds for the next owner (S7.2, S7.5); one of ours
//! is never heeded a second time.

use std::{collections::HashSet, sync::OnceLock, time::Duration};

use safepoint_scope::{StopRequest, Task};
use tokio::{sync::oneshot, time::timeout};

use super::{Answer, Driver, Input, Item, SessionMessage, TurnId, plan};
use crate::{
    contract::store::{Durability, Write},
    run::outcome::Persisted,
    session::{
        asking::StopPersistence, intent::StoredStop, journal::in_time, outside::store_stop, stop::SessionStop,
    },
    sync,
};

/// How long the end of a session waits for the store to take it back.
const GIVE_BACK: Duration = Duration::from_secs(2);

/// What the store knows of stops, as far as it is not done with.
#[derive(Default)]
pub(super) struct StoredStops {
    /// Of the session: until it has ended.
    session: Vec<SessionStopRow>,
    /// Of one turn: until that has ended.
    turns: Vec<(TurnId, u64)>,
    /// Put there by this owner, for whoever asked here.
    own: HashSet<u64>,
    /// On their way there, and how many of them have not been heard of.
    keeping: Vec<Task<Option<u64>>>,
    under_way: usize,
    /// What came while those were on their way: it may be one of them.
    deferred: Vec<(u64, StoredStop)>,
}

/// A stop of the session: it has come to its end with the session, and one that waits until it is idle also when it is
/// taken back.
struct SessionStopRow {
    number: u64,
    is_idle: bool,
}

impl StoredStops {
    /// What is to be noted as a turn ends.
    pub(super) fn of_turn(&self, turn: TurnId) -> impl Iterator<Item = Write> {
        self.turns.iter().filter(move |(of, _)| *of == turn).map(|(_, number)| Write::StopSeen(*number))
    }

    pub(super) fn turn_noted(&mut self, turn: TurnId) {
        self.turns.retain(|(of, _)| *of != turn);
    }
}

impl<T: Item> Driver<T> {
    /// Does what somebody else asked.
    pub(super) async fn apply_stored_stop(&mut self, number: u64, intent: StoredStop) {
        if self.stops.own.contains(&number) {
            return;
        }
        if self.stops.under_way > 0 {
            self.stops.deferred.push((number, intent));
            return;
        }
        // Whoever wants the turn to end does not want it to begin anew.
        self.turns.restart = None;
        let (reply, mut told) = oneshot::channel();
        match intent {
            StoredStop::Session(stop) => {
                self.stops.session.push(SessionStopRow { number, is_idle: stop.is_when_idle() });
                self.cx.shared.family.ask(&stop);
                self.stop(stop, reply).await;
            }
            StoredStop::Turn(turn, request) => {
                self.stop_turn((turn, request), &OnceLock::new(), reply).await;
                match told.try_recv() {
                    Ok(Answer::StoppingTurn(turn)) => self.stops.turns.push((turn, number)),
                    _ => self.note_seen(vec![number]).await,
                }
            }
        }
    }

    /// Has the store keep a stop that was asked here, beside whatever it does already: nothing waits for the store.
    pub(super) fn keep_stop(&mut self, stop: SessionStop, reply: oneshot::Sender<StopPersistence>) {
        let is_idle = stop.is_when_idle();
        self.keep(StoredStop::Session(stop), reply, move |number| SessionMessage::StopKept {
            number,
            is_idle,
        });
    }

    fn keep(
        &mut self,
        intent: StoredStop,
        reply: oneshot::Sender<StopPersistence>,
        heard: impl FnOnce(Option<u64>) -> SessionMessage<T> + Send + 'static,
    ) {
        let Some(journal) =
            self.recorder.journal.clone().filter(|_| self.recorder.persisted == Persisted::Yes)
        else {
            return tell(reply, StopPersistence::NotStored);
        };
        let mailbox = self.cx.shared.mailbox.clone();
        self.stops.under_way += 1;
        self.stops.keeping.push(self.cx.scope.spawn("stop's record", async move {
            let kept = in_time(store_stop(&**journal.store(), journal.session(), &intent)).await.ok();
            tell(reply, kept.map_or(StopPersistence::NotStored, StopPersistence::Stored));
            mailbox.post(heard(kept));
            kept
        }));
    }

    /// The same of the stop of a turn, as long as there is something of it that could be stopped.
    pub(super) fn keep_turn_stop(
        &mut self,
        request: StopRequest,
        reached: Option<TurnId>,
        reply: oneshot::Sender<StopPersistence>,
    ) {
        match reached.filter(|turn| self.may_stop(*turn)) {
            None => tell(reply, StopPersistence::Ended),
            Some(turn) => {
                let intent = StoredStop::Turn(Some(turn), request);
                self.keep(intent, reply, move |number| SessionMessage::TurnStopKept { number, turn });
            }
        }
    }

    /// Whether a stop of this turn has something to end: it is at work, or waits for a decision.
    fn may_stop(&self, turn: TurnId) -> bool {
        self.turns.current.as_ref().is_some_and(|work| work.turn == turn && work.outcome.is_none())
            || self.machine.is_suspended() && self.machine.left() == Some(turn)
    }

    pub(super) async fn turn_stop_kept(&mut self, number: Option<u64>, turn: TurnId) {
        if let Some(number) = number {
            self.stops.own.insert(number);
            if self.may_stop(turn) {
                self.stops.turns.push((turn, number));
            } else {
                self.note_seen(vec![number]).await;
            }
        }
        self.kept_one().await;
    }

    pub(super) async fn stop_kept(&mut self, number: Option<u64>, is_idle: bool) {
        if let Some(number) = number {
            self.stops.own.insert(number);
            self.stops.session.push(SessionStopRow { number, is_idle });
        }
        self.kept_one().await;
    }

    async fn kept_one(&mut self) {
        self.stops.under_way -= 1;
        if self.stops.under_way > 0 {
            return;
        }
        self.stops.keeping.clear();
        if !self.machine.may_end_when_idle() {
            self.note_open().await;
        }
        for (number, intent) in std::mem::take(&mut self.stops.deferred) {
            Box::pin(self.apply_stored_stop(number, intent)).await;
        }
    }

    /// Whoever asked for the end of an idle session takes that back.
    pub(super) async fn keep_open(&mut self) {
        self.step(Input::KeepOpen).await;
        self.note_open().await;
    }

    async fn note_open(&mut self) {
        let idle = self.stops.session.extract_if(.., |stop| stop.is_idle);
        let idle = idle.map(|stop| stop.number).collect();
        self.note_seen(idle).await;
    }

    async fn note_seen(&mut self, numbers: Vec<u64>) {
        let Some(journal) = self.recorder.journal.clone().filter(|_| !numbers.is_empty()) else { return };
        let writes = numbers.into_iter().map(Write::StopSeen).collect();
        if let Err(error) = journal.append(writes, Durability::Recorded).await {
            self.fail_unless_stopped(plan::store_report(&error));
            self.step(Input::Broke).await;
        }
    }

    /// Gives the session back to the store, with the stops that it has ended by.
    pub(super) async fn release(&mut self) {
        let Some(journal) = self.recorder.journal.clone() else { return };
        let mut numbers: Vec<u64> = self.stops.session.iter().map(|stop| stop.number).collect();
        for task in std::mem::take(&mut self.stops.keeping) {
            numbers.extend(task.await.ok().flatten());
        }
        numbers.sort_unstable();
        numbers.dedup();
        let writes: Vec<_> = numbers.into_iter().map(Write::StopSeen).collect();
        if self.recorder.persisted == Persisted::Yes
            && !writes.is_empty()
            && journal.append(writes, Durability::Recorded).await.is_err()
        {
            // They hold for the next owner, who ends at once: asked for twice, and lost never.
        }
        if !matches!(timeout(GIVE_BACK, journal.give_back()).await, Ok(Ok(()))) {
            // Nobody is to be locked out by a lease that nobody holds; whoever waits for the end need not wait for this.
            drop(self.cx.scope.spawn("giving the session back", journal.give_back_at_last()));
        }
    }
}

fn tell(reply: oneshot::Sender<StopPersistence>, kept: StopPersistence) {
    sync::reply(reply, kept);
}
