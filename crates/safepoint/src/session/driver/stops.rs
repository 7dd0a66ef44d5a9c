//! Stored stops: applied at once, and marked as seen only when they have completed.
//!
//! **Invariants**: a stop that was applied and not marked as seen applies to the next owner too (S7.2, S7.5);
//! a stop that this owner stored is never applied a second time.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use safepoint_scope::{StopRequest, Task};
use tokio::{sync::oneshot, time::timeout};

use super::{
    Driver, Input, Item, Reply, Request, RequestAnswer, SessionEvent, SessionMessage, TurnId, items::AtEnd,
    store_report,
};
use crate::{
    contract::store::{Durability, Write},
    run::{outcome::Persisted, steer::SteerWithdrawal},
    session::{
        item,
        item_stop::{ItemStop, SteerLook},
        journal::{InheritedTurn, in_time},
        machine::QueueAfterStop,
        stop::{SessionStop, StopPersistence, StopWhen, StoppedTurn},
        stored_stop::{StoredStop, store_stop},
    },
    sync,
    value::ids::SteerId,
};

/// How long the end of a session waits for the store to accept the release.
const RELEASE: Duration = Duration::from_secs(2);

/// The stored stops that are not done.
#[derive(Default)]
pub(super) struct StoredStops {
    /// Stops of the session, until it has ended.
    session: Vec<u64>,
    /// Those that wait until it is idle: done also when they are withdrawn.
    idle: Vec<u64>,
    /// Stops of one turn, until that turn has ended.
    turns: Vec<(TurnId, u64)>,
    /// Numbers that this owner stored for callers in this process.
    own: HashSet<u64>,
    /// Writes in flight, and how many of them have not been reported yet.
    writing: Vec<Task<Option<u64>>>,
    under_way: usize,
    /// Stops that arrived while those writes were in flight: each may be one of them.
    deferred: Vec<(u64, StoredStop)>,
}

impl StoredStops {
    /// The writes that mark the stops of a turn as seen when the turn ends.
    pub(super) fn of_turn(&self, turn: TurnId) -> impl Iterator<Item = Write> {
        self.turns.iter().filter(move |(of, _)| *of == turn).map(|(_, number)| Write::StopSeen(*number))
    }

    fn add(&mut self, number: u64, is_idle: bool) {
        if is_idle { self.idle.push(number) } else { self.session.push(number) }
    }

    pub(super) fn turn_noted(&mut self, turn: TurnId) {
        self.turns.retain(|(of, _)| *of != turn);
    }
}

impl<T: Item> Driver<T> {
    pub(super) async fn stop(&mut self, stop: SessionStop, reply: Reply<RequestAnswer>) {
        let SessionStop { how, cause, after, .. } = stop;
        if self.end.cause.is_none() {
            self.end.cause = cause;
        }
        if after == StoppedTurn::Abandoned {
            self.end.stopped_turn = StoppedTurn::Abandoned;
        }
        let (input, once_idle_for) = match how {
            StopWhen::Strength(strength) => (Input::Stop(strength), None),
            StopWhen::WhenIdle(idle) => (Input::StopWhenIdle(item::micros(idle)), Some(idle)),
        };
        self.show(SessionEvent::StopRequested { cause: self.end.cause.clone(), once_idle_for });
        answer_caller(reply, self.step_with(input, Request::None).await);
    }

    pub(super) async fn stop_turn(
        &mut self,
        (turn, request): (Option<TurnId>, StopRequest),
        reached: &OnceLock<TurnId>,
        reply: Reply<RequestAnswer>,
    ) {
        let answer = self.step_with(Input::StopTurn(turn), Request::Stop(Box::new(request.clone()))).await;
        if let Some(RequestAnswer::StoppingTurn(turn)) = answer {
            reached.get_or_init(|| turn);
            self.turns.stop_request.get_or_insert_with(|| Box::new(request));
        }
        answer_caller(reply, answer);
    }

    /// Withdraws the item, or stops the turn that has it. Whether a run has delivered a steer only the run knows, and where an item of
    /// a run that has ended is only its end says.
    pub(super) async fn stop_item(&mut self, stop: Box<ItemStop>, steer: SteerLook) {
        let item = stop.item;
        let running = self.turns.current.as_ref().filter(|work| work.outcome.is_none());
        let steered = running.filter(|_| self.machine.is_steering(item)).and_then(|work| work.handle.clone());
        match (steer, steered) {
            (SteerLook::Unasked, Some(handle)) => {
                let mailbox = self.cx.shared.mailbox.clone();
                return drop(self.cx.scope.spawn("stop of a steer", async move {
                    let look = match handle.withdraw_steer(&SteerId::from(item.to_string())).await {
                        SteerWithdrawal::Returned => SteerLook::Returned,
                        SteerWithdrawal::Delivered => SteerLook::Delivered,
                        SteerWithdrawal::RunEnded => SteerLook::Ended,
                    };
                    mailbox.post(SessionMessage::StopItem(stop, look));
                }));
            }
            // Its end arrives without a request.
            (SteerLook::Ended, Some(_)) => return self.items.at_end.push(AtEnd::Stop(stop)),
            _ => {}
        }
        let ItemStop { request, queue, reached, reply, stored, .. } = *stop;
        let input = match steer {
            SteerLook::Returned => Input::SteerReturned(item),
            SteerLook::Unasked | SteerLook::Delivered | SteerLook::Ended => Input::StopItem(item, queue),
        };
        let answer = self.step_with(input, Request::Stop(Box::new(request.clone()))).await;
        if let Some(RequestAnswer::StoppingTurn(turn)) = answer {
            reached.get_or_init(|| turn);
            self.turns.stop_request.get_or_insert_with(|| Box::new(request));
        }
        if let Some(number) = stored {
            self.turn_stop_applied(number, answer).await;
        }
        answer_caller(reply, answer);
    }

    /// A stored stop is done with the turn that it has reached; one that reached none is done now.
    async fn turn_stop_applied(&mut self, number: u64, answer: Option<RequestAnswer>) {
        match answer {
            Some(RequestAnswer::StoppingTurn(turn)) => self.stops.turns.push((turn, number)),
            Some(_) | None => self.mark_seen(vec![number]).await,
        }
    }

    /// Applies a stop of an item that another process requested.
    async fn stop_stored_item(
        &mut self,
        number: u64,
        item: u64,
        (request, queue): (StopRequest, QueueAfterStop),
    ) {
        let known = self.recorder.journal.as_ref().and_then(|journal| journal.item_of(item));
        // It is over: what an owner does not know waits nowhere, or in the store, which has withdrawn it.
        let Some(item) = known else { return self.mark_seen(vec![number]).await };
        if self.turns.left.as_ref().is_some_and(|(work, _)| work.items.contains(&item)) {
            // The last owner left its turn open: that is what the stop is of.
            if std::mem::take(&mut self.turns.inherited) != InheritedTurn::Over
                && queue == QueueAfterStop::Continues
            {
                self.machine.release_left();
            }
        }
        let (reply, reached) = (oneshot::channel().0, Arc::default());
        let stop = ItemStop { item, request, queue, reached, reply, stored: Some(number) };
        self.stop_item(Box::new(stop), SteerLook::Unasked).await;
    }

    /// Applies a stop that another process requested.
    pub(super) async fn apply_stored_stop(&mut self, number: u64, intent: StoredStop) {
        if self.stops.own.contains(&number) {
            return;
        }
        if self.stops.under_way > 0 {
            self.stops.deferred.push((number, intent));
            return;
        }
        let (reply, mut answered) = oneshot::channel();
        match intent {
            StoredStop::Session(stop) => {
                // A caller that wants the turn to end does not want it restarted.
                self.turns.inherited = InheritedTurn::Over;
                self.stops.add(number, stop.is_when_idle());
                self.cx.shared.runs.stop_by(&stop);
                self.stop(stop, reply).await;
            }
            StoredStop::Turn(turn, request) => {
                self.turns.inherited = InheritedTurn::Over;
                self.stop_turn((turn, request), &OnceLock::new(), reply).await;
                self.turn_stop_applied(number, answered.try_recv().ok()).await;
            }
            StoredStop::Item(item, request, queue) => {
                self.stop_stored_item(number, item, (request, queue)).await;
            }
        }
    }

    /// Stores a stop that was requested here, in parallel to other writes: nothing waits for the store.
    pub(super) fn write_stop(&mut self, intent: StoredStop, reply: Reply<StopPersistence>) {
        let Some(journal) =
            self.recorder.journal.clone().filter(|_| self.recorder.persisted == Persisted::Yes)
        else {
            return sync::reply(reply, StopPersistence::NotStored);
        };
        let mailbox = self.cx.shared.mailbox.clone();
        self.stops.under_way += 1;
        self.stops.writing.push(self.cx.scope.spawn("stop's record", async move {
            let kept = in_time(store_stop(&**journal.store(), journal.session(), &intent)).await.ok();
            sync::reply(reply, kept.map_or(StopPersistence::NotStored, StopPersistence::Stored));
            mailbox.post(SessionMessage::StopWritten(kept, intent));
            kept
        }));
    }

    /// Stores the stop of a turn, while something of that turn can still be stopped.
    pub(super) fn write_turn_stop(
        &mut self,
        request: StopRequest,
        reached: Option<TurnId>,
        reply: Reply<StopPersistence>,
    ) {
        match reached.filter(|turn| self.may_stop(*turn)) {
            None => sync::reply(reply, StopPersistence::Ended),
            Some(turn) => self.write_stop(StoredStop::Turn(Some(turn), request), reply),
        }
    }

    /// Whether a stop of this turn has something to end: the turn runs, or waits for a decision.
    fn may_stop(&self, turn: TurnId) -> bool {
        self.turns.current.as_ref().is_some_and(|work| work.turn == turn && work.outcome.is_none())
            || self.machine.is_suspended() && self.machine.left() == Some(turn)
    }

    /// The store has answered. `None`: it did not accept the stop.
    pub(super) async fn stop_written(&mut self, number: Option<u64>, intent: StoredStop) {
        if let Some(number) = number {
            self.stops.own.insert(number);
            match intent {
                StoredStop::Session(stop) => self.stops.add(number, stop.is_when_idle()),
                StoredStop::Turn(Some(turn), _) if self.may_stop(turn) => {
                    self.stops.turns.push((turn, number))
                }
                StoredStop::Turn(..) | StoredStop::Item(..) => self.mark_seen(vec![number]).await,
            }
        }
        self.stops.under_way -= 1;
        if self.stops.under_way > 0 {
            return;
        }
        self.stops.writing.clear();
        if !self.machine.may_end_when_idle() {
            self.mark_idle_stops_seen().await;
        }
        for (number, intent) in std::mem::take(&mut self.stops.deferred) {
            Box::pin(self.apply_stored_stop(number, intent)).await;
        }
    }

    /// Withdraws a stop that waits until the session is idle.
    pub(super) async fn withdraw_idle_stop(&mut self) {
        self.step(Input::WithdrawIdleStop).await;
        self.mark_idle_stops_seen().await;
    }

    async fn mark_idle_stops_seen(&mut self) {
        let idle = std::mem::take(&mut self.stops.idle);
        self.mark_seen(idle).await;
    }

    async fn mark_seen(&mut self, numbers: Vec<u64>) {
        let Some(journal) = self.recorder.journal.clone().filter(|_| !numbers.is_empty()) else { return };
        let writes = numbers.into_iter().map(Write::StopSeen).collect();
        if let Err(error) = journal.append(writes, Durability::Recorded).await {
            self.fail_unless_stopped(store_report(&error));
            self.step(Input::Broke).await;
        }
    }

    /// Releases the session in the store, together with the stops that ended it.
    pub(super) async fn release(&mut self) {
        let Some(journal) = self.recorder.journal.clone() else { return };
        let mut numbers = [self.stops.session.as_slice(), &self.stops.idle].concat();
        for task in std::mem::take(&mut self.stops.writing) {
            numbers.extend(task.await.ok().flatten());
        }
        numbers.sort_unstable();
        numbers.dedup();
        let writes: Vec<_> = numbers.into_iter().map(Write::StopSeen).collect();
        if self.recorder.persisted == Persisted::Yes
            && !writes.is_empty()
            && journal.append(writes, Durability::Recorded).await.is_err()
        {
            // The stops apply to the next owner, which ends at once: requested twice, never lost.
        }
        let rest = self.end.rest();
        if !matches!(timeout(RELEASE, journal.release(rest)).await, Ok(Ok(()))) {
            // A lease without an owner must not lock others out, and callers that wait for the end need not
            // wait for this.
            drop(self.cx.scope.spawn("giving the session back", journal.release_with_retries(rest)));
        }
    }
}

/// Sends the answer to the caller. Without one, the caller learns that the session is over.
pub(super) fn answer_caller(reply: Reply<RequestAnswer>, answer: Option<RequestAnswer>) {
    if let Some(answer) = answer {
        sync::reply(reply, answer);
    }
}
