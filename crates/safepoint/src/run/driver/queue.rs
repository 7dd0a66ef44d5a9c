//! What wakes a driver: messages, changes of the demand, and its own timers.

use std::task::Poll;

use futures_util::future::poll_fn;

use super::{
    Driver, LogFailure, clock::Clock, grace::Grace, model::ModelCalls, reading::ReadPart,
    running::WatchTimer, stops::StopTracker,
};
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
    /// Of the reply of this round, which the driver reads itself.
    Read(u32, ReadPart),
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

    /// Whether a message or a timer waits to be handled.
    pub(super) fn has_more(&self) -> bool {
        !self.mailbox.is_empty() || self.clock.is_over()
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Box<RunMessage> {
        self.mailbox.next().await
    }

    /// Parks until a message arrives, the demand changes, or a timer elapses, and reads the model's reply meanwhile, if the
    /// driver does that. Messages are taken before the demand is checked, and so is a reply that is complete: the loop checks
    /// it anyway before any other step.
    async fn woken(&mut self, stops: &mut StopTracker, model: &mut ModelCalls) -> Woken {
        poll_fn(|cx| {
            if let Poll::Ready(msg) = self.mailbox.poll_next(cx) {
                return Poll::Ready(Woken::Msg(msg));
            }
            if let Poll::Ready((round, part)) = model.poll_read(cx) {
                return Poll::Ready(Woken::Read(round, part));
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
        match self.queue.woken(&mut self.stops, &mut self.model).await {
            Woken::Msg(msg) => {
                self.note_phase();
                Box::pin(self.handle(msg)).await?;
            }
            Woken::Read(round, ReadPart::Ended(read)) => {
                self.note_phase();
                Box::pin(self.model_ended(round, read.err())).await?;
            }
            Woken::Read(_, ReadPart::Busy) => self.model.leave_reading(&self.cx),
            Woken::Grace => self.stop_for_grace(),
            Woken::Watches => self.watch_overdue(),
            Woken::Demand | Woken::Clock => {}
        }
        Ok(())
    }

    /// What is rare is boxed: this has room for what each round and each stop has, and for no more.
    pub(super) async fn handle(&mut self, msg: Box<RunMessage>) -> Result<(), LogFailure> {
        match *msg {
            RunMessage::ModelEnded { round, error } => self.model_ended(round, error).await?,
            // The next step looks at it.
            RunMessage::ModelWaits => {}
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
                Box::pin(self.call_named(call_id, task)).await?;
                sync::reply(recorded, ());
            }
            RunMessage::Asks { call_id, asks, reply } => {
                Box::pin(self.asked_by_call(call_id, asks, reply)).await?
            }
            RunMessage::Decided { id, ruled, reply } => Box::pin(self.decided(id, ruled, reply)).await?,
            RunMessage::Left { id } => Box::pin(self.left(id)).await?,
            RunMessage::Expired { id } => Box::pin(self.expire(&id)).await?,
            RunMessage::Hooked { key, answer } => Box::pin(self.hooked(key, answer)).await?,
            RunMessage::HookNotified { panicked } => self.notified(panicked),
            RunMessage::HookPanicked { hook, message } => self.hook_panicked(&hook, &Panicked(message)),
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
                Box::pin(self.child_suspended(call_id, child, approvals)).await?;
            }
            RunMessage::ChildSettled { call_id, child } => self.tree.children.settle(call_id, child),
            RunMessage::ChildQuiet { call_id, quiet } => self.tree.children.quiet(call_id, quiet),
            RunMessage::Look => {
                self.watch_asked_calls();
                Box::pin(self.withdraw_unwanted()).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::driver::Start;

    /// What an async function's future takes, without making one.
    fn size_of<A, B, R>(_made: impl FnOnce(A, B) -> R) -> usize {
        std::mem::size_of::<R>()
    }

    fn size_of_step<R>(_made: impl FnOnce(&'static mut Driver) -> R) -> usize {
        std::mem::size_of::<R>()
    }

    /// A run that waits takes little, and so does what each message is handled by: thousands wait, and are stopped, at
    /// once.
    #[test]
    fn a_run_that_waits_is_small() {
        let driver = std::mem::size_of::<Driver>();
        let task = size_of(|driver: Box<Driver>, start: Start| driver.run(start));
        let step = size_of_step(Driver::step_until_settled);
        let handled = size_of(|driver: &'static mut Driver, msg: Box<RunMessage>| driver.handle(msg));
        assert!(driver <= 2_368, "the driver takes {driver} bytes");
        assert!(task <= 256, "its task takes {task} bytes");
        assert!(step <= 1_664, "its step takes {step} bytes");
        // More than that does not come from the allocator's cache.
        assert!(handled <= 1_032, "handling a message takes {handled} bytes");
    }
}
