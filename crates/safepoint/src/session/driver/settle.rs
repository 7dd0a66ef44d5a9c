//! What settles a driver: how the session ends, and the final accounting of everything that it holds.

use std::sync::Arc;

use safepoint_scope::{Actor, Code, Reach, Reason, StopRequest};
use tokio::time::timeout;

use super::{
    Arrival, CurrentTurn, Driver, ErrorReport, HeldItem, Input, Item, ItemOutcome, SessionEvent,
    SessionMessage, TicketState, report,
};
use crate::session::{
    exit::{ExitReason, OpenTurn, SessionExit},
    journal::later,
    machine,
    outcome::{PreemptOutcome, RejectReason},
    stop::StoppedTurn,
};
use crate::{contract::store::Rest, run::outcome::Persisted, sync::callback, value::event::ErrorKind};

/// How the session ends, as far as it is known.
#[derive(Default)]
pub(super) struct SessionEnd {
    pub(super) exit: Option<machine::ExitKind>,
    pub(super) error: Option<Box<ErrorReport>>,
    pub(super) cause: Option<String>,
    pub(super) stopped_turn: StoppedTurn,
    /// The code of what ends the current turn, if no request did.
    pub(super) turns_end_by: Option<Code>,
    /// Whether something to do came behind the end, when it was too late to stay.
    pub(super) is_called_for: bool,
    /// Whether an item came through the store after the session was asked to stop.
    pub(super) is_followed: bool,
}

impl SessionEnd {
    /// When the session wants an owner again. One that was stopped is left as its stopper wants it, until something comes. One that was
    /// only idle would have stayed for what came, and what its lease or its store has cut is for the next owner, as after a death.
    pub(super) fn rest(&self) -> Rest {
        match (self.exit, self.error.as_ref().map(|error| error.kind())) {
            (Some(machine::ExitKind::Idle), _) if self.is_called_for => Rest::Now,
            (Some(machine::ExitKind::Stopped), _) if self.is_followed => Rest::Now,
            (Some(machine::ExitKind::Broken), Some(ErrorKind::Store)) => {
                // What the store does not accept now it accepts no sooner from another owner.
                if self.turns_end_by == Some(Code::LEASE) { Rest::Now } else { later() }
            }
            _ => Rest::Nothing,
        }
    }
}

impl<T: Item> Driver<T> {
    /// Something panicked in the middle of a step. What is here is accounted for as it is; nothing more
    /// begins or is recorded.
    pub(super) fn fail_with_panic(&mut self, why: &str) {
        self.fail(report("something that the session called panicked", why));
        self.end.exit = Some(machine::ExitKind::Broken);
        self.settle_all();
    }

    /// The task was dropped before its end. What is here is accounted for as it is, so that no caller waits
    /// indefinitely.
    pub(super) fn dropped(&mut self) {
        if self.cx.shared.exit.get().is_some() {
            return;
        }
        if self.end.exit.is_none() {
            let message = "the runtime that the session was started on is gone".to_owned();
            let hint = "start it on a runtime that lives as long as the session";
            if self.recorder.journal.is_some() {
                self.recorder.persisted = Persisted::No(message.clone());
            }
            self.fail(ErrorReport::new("runtime", message, Some(hint)));
            self.end.exit = Some(machine::ExitKind::Broken);
        }
        self.settle_all();
        self.finish();
    }

    /// Shuts the entrance and settles everything that is here.
    fn settle_all(&mut self) {
        self.cx.shared.inbox.shut();
        if let Some((item, ticket)) = self.items.in_hand.take().map(|held| *held) {
            self.settle_unprocessed(item, ticket);
        }
        if let Some((item, ticket)) = self.items.being_stored.take().map(|held| *held) {
            // It may be stored, so it must not go back.
            self.recorder.persisted = Persisted::Unknown;
            self.hold_unhandled(item, ticket);
        }
        while let Some(message) = self.queue.ahead.pop_front().or_else(|| self.queue.received.now()) {
            match *message {
                SessionMessage::Push(item, ticket, _, _) | SessionMessage::PushWith(item, ticket, _) => {
                    self.settle_unprocessed(item, ticket);
                }
                // It stays in the store, for the next owner.
                SessionMessage::PushStored(number, item, ticket, _) => {
                    self.settle_stored(number, item, ticket)
                }
                _ => {}
            }
        }
        if let Some(work) = self.turns.current.take() {
            let fate = ItemOutcome::Interrupted(work.turn);
            self.turns.left = Some((work, fate));
        }
        let open = self.turns.left.as_ref().map(|(work, fate)| (work.items.clone(), *fate));
        for (item, known) in
            self.items.held.iter().map(|(id, held)| (*id, held.ticket.fate_now())).collect::<Vec<_>>()
        {
            let fate = match &open {
                Some((items, fate)) if items.contains(&item) => *fate,
                _ => ItemOutcome::Unhandled,
            };
            if known != Some(fate) {
                self.settle_item(item, fate);
            }
        }
        for (_, ticket) in std::mem::take(&mut self.items.preempting) {
            ticket.set_preempted(PreemptOutcome::SupersededByStop);
        }
    }

    /// Settles an item that the driver has not processed: unhandled, or returned to its sender if it would
    /// have to be recorded first.
    fn settle_unprocessed(&mut self, item: T, ticket: Arc<TicketState<T>>) {
        let id = ticket.id();
        if self.recorder.journal.is_some() {
            let fate = ItemOutcome::Returned(RejectReason::NotRecorded);
            self.show(SessionEvent::ItemSettled { item: id, fate });
            return ticket.give_back(item, fate);
        }
        self.settle_stored(id.number(), item, ticket);
    }

    fn settle_stored(&mut self, number: u64, item: T, ticket: Arc<TicketState<T>>) {
        ticket.set_recorded(number);
        self.hold_unhandled(item, ticket);
    }

    fn hold_unhandled(&mut self, item: T, ticket: Arc<TicketState<T>>) {
        let id = ticket.id();
        self.show(SessionEvent::Accepted(id));
        self.items.held.insert(id, HeldItem::new(item, Arrival::Queued, ticket));
    }

    /// Ends the background runs as the session was asked to, or now if it was not, because no owner is left.
    /// Waits for them within the bound of a turn.
    pub(super) async fn end_runs(&mut self) {
        let runs = &self.cx.shared.runs;
        let ended = || timeout(self.cx.settings.quiet, runs.stop.idle());
        let was_asked = runs.scope.demand().is_some();
        if !was_asked || ended().await.is_err() {
            let reason =
                Reason::new(Code::SHUTDOWN).with_actor(Actor::Engine).with_text("the session has ended");
            runs.stop.stop(StopRequest::now().with_reach(Reach::Tree).with_reason(reason));
            if ended().await.is_err() {
                // Runs that are still alive are fenced, and the exit names them.
            }
        }
        runs.stop.settle();
    }

    pub(super) fn finish(&mut self) {
        let open = self.turns.left.take().map(|(work, fate)| {
            let CurrentTurn { turn, items, outcome, agent, .. } = *work;
            let held = items.into_iter().filter_map(|id| {
                let held = self.items.held.remove(&id)?;
                held.ticket.set_final();
                Some((id, held.item))
            });
            let items = held.collect();
            if callback::drop_caught(agent).is_err() {
                // Nothing waits for it; the accounting continues.
            }
            OpenTurn { turn, fate, items, outcome }
        });
        let reason = match (self.end.exit, self.end.error.take()) {
            (Some(machine::ExitKind::Broken), Some(error)) => ExitReason::Failed(*error),
            (Some(machine::ExitKind::Idle), _) => ExitReason::Idle,
            _ => ExitReason::Stopped,
        };
        self.items.unhandled.sort_by_key(|(id, _)| *id);
        let exit = SessionExit {
            reason,
            cause: self.end.cause.take(),
            after: self.end.stopped_turn,
            unhandled: std::mem::take(&mut self.items.unhandled),
            open,
            history: self.turns.history.clone(),
            survivors: self.cx.shared.runs.stop.alive(),
            persisted: self.recorder.persisted.clone(),
            late: self.cx.shared.inbox.late(),
        };
        self.cx.shared.over(exit);
    }

    /// User code or the store failed: the session ends.
    pub(super) async fn broke(&mut self, error: ErrorReport) {
        self.fail(error);
        self.step(Input::Broke).await;
    }

    /// The first error is the one that the exit reports.
    pub(super) fn fail(&mut self, error: ErrorReport) {
        self.end.error.get_or_insert_with(|| Box::new(error));
    }
}
