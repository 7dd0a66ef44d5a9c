//! What wakes a conductor: its mail, a change of what is demanded, and the times that it set itself.

use std::task::Poll;

use futures_util::future::poll_fn;

use super::{Broken, Conductor};
use crate::{
    run::shared::Msg,
    sync::{self, callback::Panicked},
};

impl Conductor {
    /// Parks until something happens: a message, a change of what is demanded, or a time that is over.
    pub(super) async fn wait(&mut self) -> Result<(), Broken> {
        let Self { mailbox, watch, clock, grace, .. } = self;
        let woken = poll_fn(|cx| {
            if let Poll::Ready(msg) = mailbox.poll_next(cx) {
                return Poll::Ready(Woken::Msg(msg));
            }
            if watch.poll_changed(cx).is_ready() {
                return Poll::Ready(Woken::Demand);
            }
            if grace.poll(cx).is_ready() {
                return Poll::Ready(Woken::Grace);
            }
            clock.poll(cx).map(|()| Woken::Clock)
        })
        .await;
        match woken {
            Woken::Msg(msg) => Box::pin(self.handle(*msg)).await,
            Woken::Grace => {
                self.stop_for_grace();
                Ok(())
            }
            Woken::Demand | Woken::Clock => Ok(()),
        }
    }

    pub(super) async fn handle(&mut self, msg: Msg) -> Result<(), Broken> {
        match msg {
            Msg::ModelEnded { round, error } => self.model_ended(round, error).await,
            Msg::TooLong { round } => {
                self.too_long(round);
                Ok(())
            }
            Msg::CallEnded { call_id, ending } => self.call_ended(call_id, ending).await,
            Msg::ChildSuspended { call_id, child, approvals } => {
                self.child_suspended(call_id, child, approvals).await
            }
            Msg::Asks { call_id, asks, reply } => self.asked_by_call(call_id, asks, reply).await,
            Msg::Named { call_id, task, recorded } => {
                self.call_named(call_id, task).await?;
                sync::reply(recorded, ());
                Ok(())
            }
            Msg::Cleaned { .. }
            | Msg::Remote { .. }
            | Msg::Late { .. }
            | Msg::ChildSettled { .. }
            | Msg::ChildQuiet { .. }
            | Msg::Parked { .. }
            | Msg::Suspend => {
                self.take_late(msg);
                Ok(())
            }
            Msg::Decided { id, ruled, reply } => self.decided(id, ruled, reply).await,
            Msg::Expired { id } => self.expire(&id).await,
            Msg::Left { id } => self.left(id).await,
            Msg::Hooked { key, answer } => self.hooked(key, answer).await,
            Msg::Told { panicked } => {
                self.told(panicked);
                Ok(())
            }
            Msg::AskingPanicked { message } => {
                self.callback_panicked("the approver", &Panicked(message));
                Ok(())
            }
            Msg::Steer { steer, landed } => {
                self.steers.add(steer, landed);
                Ok(())
            }
            Msg::TakeBack { steer, reply } => {
                self.steers.take_back(&steer, reply);
                Ok(())
            }
            Msg::Look => self.take_back_unwanted().await,
        }
    }
}

/// What ended a wait.
enum Woken {
    Msg(Box<Msg>),
    Demand,
    Grace,
    Clock,
}
