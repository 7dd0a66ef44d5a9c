//! Stops of turns and of items, wherever they are, and how far a stop is.

use std::{sync::Arc, time::Duration};

use safepoint::{
    RunHandle, StopRequest,
    ids::{SessionId, TurnId},
    raw::{StoredStop, store, store_stop},
    session::{ItemStopAck, QueueAfterStop, StopPersistence, TurnStopAck},
    store::Error,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Caller, Kept, is_held, items::view};
use crate::{
    answer::{ItemAnswer, StopAnswer, StopState, outcome_words},
    host::{open::OpenSession, read},
    problem::{Answered, Problem},
};

/// How often the end of a turn of another process is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// How far a stop has come when its answer is given. Exhaustive: it is under way, its turn has settled, or it is known what of the
/// turn is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StopWait {
    #[default]
    No,
    Settled,
    Quiet,
}

/// A turn that a stop reached.
pub(crate) struct ReachedTurn {
    pub(crate) turn: TurnId,
    /// Its run, if this process has it.
    run: Option<RunHandle>,
    /// None: the store has it not.
    number: Option<u64>,
}

impl ReachedTurn {
    /// One that is stopped through the store.
    fn stored(turn: TurnId, number: u64) -> Self {
        Self { turn, run: None, number: Some(number) }
    }
}

/// Where the store has an item that is not over.
enum StoredItem {
    /// It waits, perhaps since this turn gave it back.
    Waiting(Option<TurnId>),
    /// This turn has it.
    Taken(TurnId),
}

/// What a stop of a turn found. Exhaustive: a turn, or the plan of the next one, which does not begin.
pub(crate) enum StoppedTurn {
    Reached(ReachedTurn),
    Held,
}

/// What a stop of an item found. Exhaustive: no turn had it and none gets it, or the turn that has it is stopped.
pub(crate) enum StoppedItem {
    Withdrawn,
    Stopping(ReachedTurn),
}

/// How far a stop is.
pub(crate) struct StopProgress {
    pub(crate) answer: StopAnswer,
    /// Whether it is as far as was waited for.
    pub(crate) is_there: bool,
}

impl Caller {
    /// Stops the turn that runs or waits for a decision, or only this one; one that is planned does not begin.
    ///
    /// # Errors
    /// `no_active_turn`, `turn_mismatch`, `too_late`, and the store's.
    ///
    /// # Cancel safety
    /// The stop may be under way.
    pub(crate) async fn stop_turn(
        &self,
        kept: &Kept,
        meant: Option<TurnId>,
        request: StopRequest,
    ) -> Answered<StoppedTurn> {
        match self.host.opened(kept.id()) {
            Some(open) => self.stop_here(kept, &open, meant, request).await,
            None => self.stop_in_store(kept, meant, request).await,
        }
    }

    async fn stop_here(
        &self,
        kept: &Kept,
        open: &Arc<OpenSession>,
        meant: Option<TurnId>,
        request: StopRequest,
    ) -> Answered<StoppedTurn> {
        let handle = open.handle();
        let run = handle.current_turn();
        // Under way from here on, whatever becomes of this request.
        let ticket = handle.stop_turn(meant, request.clone());
        let number = number(ticket.recorded().await);
        match ticket.asked().await {
            TurnStopAck::Stopping(turn) => {
                let run = run.or_else(|| handle.current_turn()).filter(|view| view.turn == turn);
                let run = run.map(|view| view.run);
                Ok(StoppedTurn::Reached(ReachedTurn { turn, run, number }))
            }
            TurnStopAck::Mismatch(turn) => {
                let problem = self.too_late(kept, meant).await?.unwrap_or_else(|| {
                    Problem::conflict("turn_mismatch", format!("the turn that runs is {turn}"))
                });
                Err(problem.with("running", turn.to_string()))
            }
            // A suspended turn is stopped where its questions are.
            TurnStopAck::NoTurn => self.stop_in_store(kept, meant, request).await,
            TurnStopAck::Held => Ok(StoppedTurn::Held),
        }
    }

    /// Stops a turn of another process, or one that waits for a decision, through the store.
    async fn stop_in_store(
        &self,
        kept: &Kept,
        meant: Option<TurnId>,
        request: StopRequest,
    ) -> Answered<StoppedTurn> {
        let row = self.store().open(kept.id()).await?;
        if let Some(problem) = self.too_late(kept, meant).await? {
            return Err(problem);
        }
        let is_ours = self.host.opened(&row.id).is_some();
        let may_stop = row.label == "suspended"
            || !is_ours && (is_held(&row) || ["running", "cut"].contains(&&*row.label));
        let turns = read::turns(self.store(), &row.id).await?;
        let last = turns.keys().last().map(|turn| TurnId::new(*turn));
        let Some(turn) = meant.or(last).filter(|_| may_stop) else {
            return Err(no_turn("no turn runs or waits"));
        };
        self.write_stop(kept, turn, request).await.map(StoppedTurn::Reached)
    }

    async fn write_stop(&self, kept: &Kept, turn: TurnId, request: StopRequest) -> Answered<ReachedTurn> {
        let intent = StoredStop::Turn(Some(turn), request);
        let number = store_stop(self.store(), kept.id(), &intent).await?;
        self.wake(kept);
        Ok(ReachedTurn::stored(turn, number))
    }

    /// Withdraws an item that no turn has, or stops the turn that has it. An item of an earlier owner, or of a session that this
    /// server does not have, is reached through the store.
    ///
    /// # Errors
    /// `too_late` with the outcome of an item that is over, `no_such_item`, and the store's.
    ///
    /// # Cancel safety
    /// The stop may be under way.
    pub(crate) async fn stop_item(
        &self,
        kept: &Kept,
        item: u64,
        request: StopRequest,
        queue: QueueAfterStop,
    ) -> Answered<StoppedItem> {
        let open = self.host.opened(kept.id());
        if let Some((open, id)) = open.as_ref().and_then(|open| Some((open, open.handle().item_of(item)?))) {
            let handle = open.handle();
            let run = handle.current_turn();
            let stop = handle.stop_item(id, request.clone(), queue);
            let stored = number(stop.recorded().await);
            return match stop.asked().await {
                ItemStopAck::Withdrawn => Ok(StoppedItem::Withdrawn),
                ItemStopAck::Stopping(turn) => {
                    let run = run.or_else(|| handle.current_turn()).filter(|view| view.turn == turn);
                    let run = run.map(|view| view.run);
                    Ok(StoppedItem::Stopping(ReachedTurn { turn, run, number: stored }))
                }
                ItemStopAck::TooLate => self.stop_again(kept, item, request).await,
            };
        }
        self.stop_item_in_store(kept, item, (request, queue)).await
    }

    /// Stops the turn of an item that was over for its owner, if that runs again: it was resumed.
    async fn stop_again(&self, kept: &Kept, item: u64, request: StopRequest) -> Answered<StoppedItem> {
        let found = view(&self.host, kept.id(), item).await?;
        match turn_of(&found).filter(|_| self.may_stop(kept, &found)) {
            Some(turn) => match self.stop_turn(kept, Some(turn), request).await? {
                StoppedTurn::Reached(reached) => Ok(StoppedItem::Stopping(reached)),
                StoppedTurn::Held => Err(no_turn("its turn has not begun")),
            },
            None => {
                let outcome = found.outcome.unwrap_or("not known");
                let detail = format!("item-{item} was over before the stop: {outcome}");
                Err(Problem::conflict("too_late", detail).with("outcome", outcome))
            }
        }
    }

    /// Whether something of the item is left to stop. That its turn runs again is known here before it is recorded.
    pub(crate) fn may_stop(&self, kept: &Kept, item: &ItemAnswer) -> bool {
        let running = || self.host.opened(kept.id())?.handle().current_turn();
        !item.is_over() || turn_of(item).is_some_and(|turn| running().is_some_and(|view| view.turn == turn))
    }

    /// Stops an item of another process, of an earlier owner, or of none, through the store.
    async fn stop_item_in_store(
        &self,
        kept: &Kept,
        item: u64,
        (request, queue): (StopRequest, QueueAfterStop),
    ) -> Answered<StoppedItem> {
        let Some(was) = self.stored_item(kept, item).await? else {
            return self.stop_again(kept, item, request).await;
        };
        let stop = StoredStop::Item(item, request, queue);
        let number = match store_stop(self.store(), kept.id(), &stop).await {
            Err(Error::ItemElsewhere(_)) => return Err(Problem::no_such("item")),
            stored => stored?,
        };
        let turn = match was {
            StoredItem::Waiting(before) => match self.stored_item(kept, item).await? {
                Some(StoredItem::Taken(turn)) => Some(turn),
                Some(StoredItem::Waiting(_)) => None,
                // A turn that was stopped by now may have had it, one that it came back from did not.
                None => {
                    let turns = read::turns(self.store(), kept.id()).await?;
                    read::turn_of(&turns, item).map(|(turn, _)| turn).filter(|turn| Some(*turn) != before)
                }
            },
            StoredItem::Taken(turn) => Some(turn),
        };
        match (turn, self.host.opened(kept.id())) {
            (Some(_), _) => self.wake(kept),
            (None, Some(open)) => open.handle().check_store(),
            (None, None) => {}
        }
        Ok(turn
            .map_or(StoppedItem::Withdrawn, |turn| StoppedItem::Stopping(ReachedTurn::stored(turn, number))))
    }

    /// Where the store has an item; `None`: it is over, or there never was one.
    async fn stored_item(&self, kept: &Kept, item: u64) -> Answered<Option<StoredItem>> {
        let inbox = self.store().inbox(kept.id()).await?;
        let Some(row) = inbox.into_iter().find(|row| row.number == item) else { return Ok(None) };
        let turns = read::turns(self.store(), kept.id()).await?;
        let has = read::turn_of(&turns, item).map(|(turn, _)| turn);
        Ok(match row.state {
            store::ItemState::Waiting => Some(StoredItem::Waiting(has)),
            // One that steers is in no plan, but in the turn that runs.
            store::ItemState::Taken => {
                let last = || turns.keys().last().map(|turn| TurnId::new(*turn));
                has.or_else(last).map(StoredItem::Taken)
            }
            store::ItemState::Removed => None,
        })
    }

    /// How far the stop of a turn is, while the turn has not settled; `None`: it has settled, or no stop of it is known of.
    pub(crate) fn stop_under_way(
        &self,
        session: &SessionId,
        (turn, read): (TurnId, &read::TurnRead),
    ) -> Option<StopState> {
        let running = || self.host.opened(session).and_then(|open| open.handle().current_turn());
        let is_requested =
            || running().is_some_and(|view| view.turn == turn && view.run.stop_requested().is_some());
        match read.is_stop_observed() {
            _ if read.is_settled() => None,
            true => Some(StopState::Observed),
            false => is_requested().then_some(StopState::Requested),
        }
    }

    /// Waits for a stop of an item: until its turn is as far as is asked for, and its questions are withdrawn, at most until then. The item
    /// is as it is then, or when this server ends.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// The stop is under way all the same.
    pub(crate) async fn item_stopped(
        &self,
        kept: &Kept,
        item: u64,
        stopped: StoppedItem,
        (wait, over): (StopWait, Instant),
    ) -> Answered<ItemAnswer> {
        if let StoppedItem::Stopping(reached) = stopped {
            drop(self.stopped(kept.id(), reached, (wait, over)).await?);
        }
        loop {
            let answer = view(&self.host, kept.id(), item).await?;
            // A turn that waits for a decision is over once an owner has read the stop.
            let is_left = self.host.is_draining() && self.host.opened(kept.id()).is_none();
            if answer.is_over() || is_left || Instant::now() >= over {
                return Ok(answer);
            }
            sleep(LOOK).await;
        }
    }

    /// Whether the turn that is meant has ended.
    async fn too_late(&self, kept: &Kept, meant: Option<TurnId>) -> Answered<Option<Problem>> {
        let Some(meant) = meant else { return Ok(None) };
        let turns = read::turns(self.store(), kept.id()).await?;
        let ended = turns.get(&meant.number()).and_then(|turn| turn.outcome);
        let words = ended.map(outcome_words).filter(|(word, ..)| *word != "suspended");
        Ok(words.map(|(word, ..)| {
            Problem::conflict("too_late", format!("{meant} had ended before the stop: {word}"))
                .with("outcome", word)
        }))
    }

    /// Waits as asked, at most until then, and says how far the stop is.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// The stop is under way all the same.
    pub(crate) async fn stopped(
        &self,
        session: &SessionId,
        reached: ReachedTurn,
        (wait, over): (StopWait, Instant),
    ) -> Answered<StopProgress> {
        let ReachedTurn { turn, run, number } = reached;
        let is_far_enough = |read: &read::TurnRead| match wait {
            // It gets no farther.
            _ if read.is_cut => true,
            StopWait::No => true,
            StopWait::Settled => read.is_settled(),
            StopWait::Quiet => read.is_quiet_known(),
        };
        if let Some(run) = run.as_ref().filter(|_| wait != StopWait::No) {
            // What is not so by then is answered as it is.
            let waited = async {
                drop(run.done().await);
                if wait == StopWait::Quiet {
                    drop(run.quiet().await);
                }
            };
            drop(timeout_at(over, waited).await);
        }
        loop {
            let turns = read::turns(self.store(), session).await?;
            let read = turns.get(&turn.number()).cloned().unwrap_or_default();
            let is_there = is_far_enough(&read);
            if is_there || Instant::now() >= over {
                let mut answer = read.stop();
                answer.number = number;
                answer.recorded = number.is_some();
                answer.turn = Some(turn.to_string());
                if answer.state < StopState::Settled {
                    answer.waits_for = run.map(|run| run.alive()).unwrap_or_default();
                }
                return Ok(StopProgress { answer, is_there });
            }
            sleep(LOOK.min(over.saturating_duration_since(Instant::now()))).await;
        }
    }
}

fn turn_of(item: &ItemAnswer) -> Option<TurnId> {
    item.turn.as_ref()?.parse().ok()
}

fn number(persistence: StopPersistence) -> Option<u64> {
    match persistence {
        StopPersistence::Stored(number) => Some(number),
        StopPersistence::Ended | StopPersistence::NotStored => None,
    }
}

pub(crate) fn no_turn(detail: &str) -> Problem {
    Problem::conflict("no_active_turn", detail)
}
