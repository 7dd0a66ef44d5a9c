//! The engine's end of the connection to an agent: events come in, orders leave. The rest runs in
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
    process::{AgentProcess, Order, Work, report},
};

/// The engine's end.
pub(super) enum Channel {
    Fresh(Box<(Work, Dialogue)>),
    Open {
        said: mpsc::Receiver<RemoteEvent>,
        orders: mpsc::UnboundedSender<Order>,
    },
    /// Its process was never started.
    Unasked,
    Over,
}

impl Channel {
    pub(super) fn new(work: Work, dialogue: Dialogue) -> Self {
        Self::Fresh(Box::new((work, dialogue)))
    }

    /// Starts the process with the first poll of [`RemoteCall::next`], and with nothing else.
    fn open(&mut self) {
        match std::mem::replace(self, Self::Over) {
            Self::Fresh(fresh) => {
                let (work, dialogue) = *fresh;
                let (tell, said) = mpsc::channel(1);
                let (orders, given) = mpsc::unbounded_channel();
                let scope = work.cx.scope().clone();
                drop(scope.spawn(
                    work.command.label.clone(),
                    AgentProcess::new(work, dialogue, tell, given).keep(),
                ));
                *self = Self::Open { said, orders };
            }
            other => *self = other,
        }
    }
}

impl RemoteCall for Channel {
    fn next(&mut self) -> BoxFuture<'_, RemoteEvent> {
        async move {
            self.open();
            let lost = || {
                RemoteEvent::Lost(Failure::new(
                    "the task of the agent's process is gone, and its process with it",
                ))
            };
            match self {
                Self::Open { said, .. } => said.recv().await.unwrap_or_else(lost),
                Self::Unasked => report::nothing_done(),
                Self::Fresh(_) | Self::Over => lost(),
            }
        }
        .boxed()
    }

    fn answer(&mut self, question: String, decision: Decision) -> BoxFuture<'_, ()> {
        if let Self::Open { orders, .. } = self
            && orders.send(Order::Answer(question, decision)).is_err()
        {
            // The agent is gone, and its question with it.
        }
        async {}.boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, RemoteStopReply> {
        let (tell, reply) = oneshot::channel();
        let Self::Open { orders, .. } = self else {
            *self = Self::Unasked;
            return async { report::unasked() }.boxed();
        };
        if orders.send(Order::Stop(tell)).is_err() {
            // The task is gone: the reply is lost with the sender.
        }
        let task = orders.clone();
        async move {
            // A message sent as its receiver goes may stay in the channel, neither received nor dropped,
            // while a sender exists, and this task has one. So the call also checks whether that task still
            // exists (S12.30).
            match select(reply, pin!(task.closed())).await {
                Either::Left((reply, _)) => reply.ok(),
                Either::Right(((), mut reply)) => reply.try_recv().ok(),
            }
            .unwrap_or_else(|| RemoteStopReply::confirmed("its process is gone"))
        }
        .boxed()
    }
}
