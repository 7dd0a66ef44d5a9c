//! What wakes a driver: messages, changes of the demand, and its own timers.

use std::task::Poll;

use futures_util::future::poll_fn;
use tokio::task::yield_now;

use super::{Driver, LogFailure, clock::Clock, grace::Grace, running::WatchTimer, stops::StopTracker};
use crate::{
    run::{executor, shared::RunMessage},
    sync::{self, callback::Panicked, mailbox::Received},
    value::event::EventKind,
};

/// The messages of a run, and its timers.
pub(super) struct Queue {
    mailbox: Received<RunMessage>,
    pub(super) clock: Clock,
    pub(super) grace: Grace,
    pub(super) watches: WatchTimer,
}

/// What ended a wait. Exhaustive: the driver must handle each.
enum Woken {
    Msg(Box<RunMessage>),
    Demand,
    Grace,
    Watches,
    Clock,
}

impl Queue {
    pub(super) fn new(mailbox: Received<RunMessage>) -> Self {
        Self { mailbox, clock: Clock::new(), grace: Grace::default(), watches: WatchTimer::default() }
    }

    /// The next message, if it has come.
    pub(super) fn now(&mut self) -> Option<Box<RunMessage>> {
        self.mailbox.now()
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Box<RunMessage> {
        self.mailbox.next().await
    }

    /// Parks until a message arrives, the demand changes, or a timer elapses. Messages are taken before the
    /// demand is checked: the loop checks it anyway before any other step.
    async fn woken(&mut self, stops: &mut StopTracker) -> Woken {
        poll_fn(|cx| {
            if let Poll::Ready(msg) = self.mailbox.poll_next(cx) {
                return Poll::Ready(Woken::Msg(msg));
            }
            if stops.poll_changed(cx).is_ready() {
                return Poll::Ready(Woken::Demand);
            }
            if self.grace.poll(cx).is_ready() {
                return Poll::Ready(Woken::Grace);
            }
            if self.watches.poll(cx).is_ready() {
                return Poll::Ready(Woken::Watches);
            }
            self.clock.poll(cx).map(|()| Woken::Clock)
        })
        .await
    }
}

impl Driver {
    /// Parks until something happens, and handles it.
    pub(super) async fn wait(&mut self) -> Result<(), LogFailure> {
        match self.queue.woken(&mut self.stops).await {
            Woken::Msg(msg) => Box::pin(self.handle(*msg)).await?,
            Woken::Grace => self.stop_for_grace(),
            Woken::Watches => self.watch_overdue(),
            // A stop wakes all of a tree at once. What runs in it sees it first, and the runs below the root record after that.
            Woken::Demand if self.tree.parent.is_some() => yield_now().await,
            Woken::Demand | Woken::Clock => {}
        }
        Ok(())
    }

    pub(super) async fn handle(&mut self, msg: RunMessage) -> Result<(), LogFailure> {
        match msg {
            RunMessage::ModelEnded { round, error } => self.model_ended(round, error).await?,
            RunMessage::TooLong { round } => self.too_long(round),
            RunMessage::CallEnded { call_id, ending } => self.call_ended(call_id, ending).await?,
            RunMessage::Cleaned { call_id, cleanups, processes } => {
                self.machine.add_rows(&call_id, cleanups, processes);
            }
            RunMessage::Remote { call_id, remote } => self.machine.name_remote(&call_id, remote),
            RunMessage::Late { call_id, what } => {
                self.cx.shared.audit.push(EventKind::Late(executor::late(&call_id, &what)));
            }
            RunMessage::Named { call_id, task, recorded } => {
                self.call_named(call_id, task).await?;
                sync::reply(recorded, ());
            }
            RunMessage::Asks { call_id, asks, reply } => self.asked_by_call(call_id, asks, reply).await?,
            RunMessage::Decided { id, ruled, reply } => self.decided(id, ruled, reply).await?,
            RunMessage::Left { id } => self.left(id).await?,
            RunMessage::Expired { id } => self.expire(&id).await?,
            RunMessage::Hooked { key, answer } => self.hooked(key, answer).await?,
            RunMessage::HookNotified { panicked } => self.notified(panicked),
            RunMessage::AskingPanicked { message } => {
                self.callback_panicked("the approver", &Panicked(message));
            }
            RunMessage::Steer { steer, landed } => self.steers.add(steer, landed),
            RunMessage::WithdrawSteer { steer, reply } => self.steers.withdraw(&steer, reply),
            RunMessage::ChildActivity { call_id, activity } => {
                self.tree.children.set_activity(call_id, activity)
            }
            RunMessage::Suspend => self.tree.confirm(),
            RunMessage::ChildSuspended { call_id, child, approvals } => {
                self.child_suspended(call_id, child, approvals).await?;
            }
            RunMessage::ChildSettled { call_id, child } => self.tree.children.settle(call_id, child),
            RunMessage::ChildQuiet { call_id, quiet } => self.tree.children.quiet(call_id, quiet),
            RunMessage::Look => {
                self.watch_asked_calls();
                self.withdraw_unwanted().await?;
            }
        }
        Ok(())
    }
}
