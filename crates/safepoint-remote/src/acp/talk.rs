//! The engine's end of the connection to an agent: events come in, orders leave. The keeper does the rest in
//! a task of the call's own scope, so that the run is not quiet before the process is gone.

use std::pin::pin;

use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use safepoint::{
    approval::Decision,
    raw::remote::{RemoteCall, RemoteEvent, RemoteStopReply},
    stop::Failure,
};
use tokio::sync::{mpsc, oneshot};

use super::{
    dialogue::Dialogue,
    keeper::{Keeper, Work, account},
};

/// An order to the keeper: an answer or a stop.
pub(super) enum Order {
    Answer(String, Decision),
    /// The caller that waits for the result.
    Stop(oneshot::Sender<RemoteStopReply>),
}

/// The engine's end.
pub(super) struct Talk {
    state: State,
}

enum State {
    Fresh(Box<(Work, Dialogue)>),
    Open {
        said: mpsc::Receiver<RemoteEvent>,
        orders: mpsc::UnboundedSender<Order>,
    },
    /// Its process was never started.
    Unasked,
    Over,
}

impl Talk {
    pub(super) fn new(work: Work, dialogue: Dialogue) -> Self {
        Self { state: State::Fresh(Box::new((work, dialogue))) }
    }

    /// Starts the keeper with the first poll of [`RemoteCall::next`], and with nothing else.
    fn open(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Fresh(fresh) => {
                let (work, dialogue) = *fresh;
                let (tell, said) = mpsc::channel(1);
                let (orders, given) = mpsc::unbounded_channel();
                let scope = work.cx.scope().clone();
                drop(
                    scope.spawn(work.command.label.clone(), Keeper::new(work, dialogue, tell, given).keep()),
                );
                self.state = State::Open { said, orders };
            }
            other => self.state = other,
        }
    }
}

impl RemoteCall for Talk {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        async move {
            self.open();
            let lost =
                || RemoteEvent::Lost(Failure::new("the agent's keeper is gone, and its process with it"));
            match &mut self.state {
                State::Open { said, .. } => said.recv().await.unwrap_or_else(lost),
                State::Unasked => account::nothing_done(),
                State::Fresh(_) | State::Over => lost(),
            }
        }
        .boxed()
    }

    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()> {
        if let State::Open { orders, .. } = &self.state
            && orders.send(Order::Answer(question, decision)).is_err()
        {
            // The agent is gone, and its question with it.
        }
        async {}.boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        let (tell, told) = oneshot::channel();
        let State::Open { orders, .. } = &self.state else {
            self.state = State::Unasked;
            return async { account::unasked() }.boxed();
        };
        if orders.send(Order::Stop(tell)).is_err() {
            // The keeper is gone: the reply is lost with the sender.
        }
        let keeper = orders.clone();
        async move {
            // A message sent as its receiver goes may stay in the channel, neither received nor dropped,
            // while a sender exists, and this task has one. So the call also checks whether the keeper still
            // exists (S12.30).
            match select(told, pin!(keeper.closed())).await {
                Either::Left((told, _)) => told.ok(),
                Either::Right(((), mut told)) => told.try_recv().ok(),
            }
            .unwrap_or_else(|| RemoteStopReply::confirmed("its process is gone"))
        }
        .boxed()
    }
}
