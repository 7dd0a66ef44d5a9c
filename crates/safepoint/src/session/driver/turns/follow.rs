//! Follows a run: passes its events to the session's stream, its end to the mailbox, and then follows its
//! background runs.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, join_all, select};
use tokio::time::timeout;

use super::{Item, RunHandle, SessionEvent, SessionMessage, TurnId};
use crate::{
    session::{Delivery, SharedSession, journal::Journal},
    value::{
        event::{Event, EventKind, Fact, RecordedSteer},
        receipt::{Receipt, background_run},
    },
};

pub(super) struct Follower<T> {
    pub(super) turn: TurnId,
    pub(super) handle: RunHandle,
    pub(super) shared: Arc<SharedSession<T>>,
    /// How long the next turn waits for this one to be quiet.
    pub(super) bound: Duration,
    pub(super) journal: Option<Arc<Journal>>,
}

impl<T: Item> Follower<T> {
    pub(super) async fn follow(self) {
        let turn = self.turn;
        let mailbox = &self.shared.mailbox;
        self.follow_run().await;
        let outcome = self.handle.done().await;
        let settled = Arc::clone(outcome.receipt());
        mailbox.post(SessionMessage::Settled(turn, outcome));
        let receipt = match timeout(self.bound, self.handle.quiet()).await {
            Ok(quiet) => Arc::clone(quiet.receipt()),
            // What is alive is fenced and named; the next turn does not wait for it.
            Err(_elapsed) => Arc::new(Receipt { survivors: self.handle.alive(), ..Receipt::clone(&settled) }),
        };
        let mut survivors = receipt.survivors.clone();
        // Background runs belong to the session and delay no turn.
        let aside = self.handle.background();
        survivors.extend(aside.iter().map(|run| background_run(run.path())));
        let position = match &self.journal {
            Some(journal) => journal.record_quiet(turn, survivors.clone()).await,
            None => None,
        };
        mailbox.post(SessionMessage::Quiet { turn, survivors, receipt, position });
        self.follow_background().await;
        mailbox.post(SessionMessage::BackgroundOver);
    }

    async fn follow_run(&self) {
        let (turn, mailbox) = (self.turn, &self.shared.mailbox);
        let mut events = self.handle.events();
        while let Some(event) = events.next().await {
            if let EventKind::Fact(fact) = &event.kind
                && let Fact::SteerTaken { round, steers } = &**fact
            {
                for notice in steers.iter().filter(|steer| steer.is_notice()) {
                    mailbox.post(SessionMessage::Noticed(turn, notice.id.clone()));
                }
                for item in steers.iter().filter_map(RecordedSteer::item) {
                    mailbox.post(SessionMessage::SteerTaken(item, Delivery { turn, round: *round }));
                }
            }
            self.show(event, |turn, event| SessionEvent::Run { turn, event });
        }
    }

    /// Shows an event of a run where its record is in the session's journal.
    fn show(&self, event: Event, of: fn(TurnId, Event) -> SessionEvent) {
        let position = event.position().filter(|_| self.journal.is_some());
        self.shared.feed.push_recorded((of(self.turn, event), position));
    }

    /// Shows what the background runs do until none is alive; one may begin another.
    async fn follow_background(&self) {
        let background = |turn, event| SessionEvent::Background { turn, event };
        let Some(mut events) = self.handle.aside() else { return };
        loop {
            let runs = self.handle.background();
            if runs.is_empty() {
                break;
            }
            let mut quiet = pin!(join_all(runs.iter().map(RunHandle::quiet)));
            // Nothing is lost: reading is cancel-safe, and the wait for the runs continues.
            while let Either::Left((Some(event), _)) = select(pin!(events.next()), quiet.as_mut()).await {
                self.show(event, background);
            }
        }
        while let Some(event) = events.now() {
            self.show(event, background);
        }
    }
}
