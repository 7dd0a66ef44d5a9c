//! Who reads a reply: a separate task; or the driver's task itself, where no poll of the reply can block it. A round over
//! such a wire then has one task and two wake-ups less.
//!
//! **Invariants**: the driver reads only while it waits for nothing but its mailbox, the demand and its timers. Before it
//! appends anything, or when a reply keeps it busy, the reply gets a separate task: so neither a slow log nor a flood
//! keeps a stop from releasing the exchange, and a delta is shown when it has come.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::future::BoxFuture;
use safepoint_scope::{QuietGuard, Scope, Task};
use tokio::task::coop;

use super::{model_errors::dead, promised_message::PromisedMessage};
use crate::{
    contract::{
        model::{ModelError, OnModelStop},
        trace::TracedAttempt,
    },
    run::shared::{RunMessage, SharedRun},
    sync::callback::{self, Guarded, Panicked},
};

/// The name of a reply that is read, among what is alive.
const LABEL: &str = "model call";

/// Who reads a reply. Exhaustive: its task; the driver; or no one, since it was not let begin or has ended.
pub(super) enum Reader {
    Task(Task<()>),
    Driver(Reading),
    Absent,
}

/// A reply that the driver reads. The hold is released after the exchange: the fields are dropped in this order.
pub(super) struct Reading {
    work: Guarded<dyn Future<Output = Result<(), ModelError>> + Send>,
    scope: Scope,
    _hold: QuietGuard,
}

/// What the driver got of a reply that it reads. Exhaustive: it has ended, or there is more of it than the driver has time for.
pub(super) enum ReadPart {
    Ended(Result<(), ModelError>),
    Busy,
}

impl Reader {
    /// The driver reads what `work` reads, within the scope.
    pub(super) fn driver(work: BoxFuture<'static, Result<(), ModelError>>, scope: Scope) -> Self {
        let hold = scope.hold(LABEL);
        Self::Driver(Reading { work: callback::guard(work), scope, _hold: hold })
    }

    /// A task does, which tells the driver how it has ended.
    pub(super) fn task(
        work: impl Future<Output = Result<(), ModelError>> + Send + 'static,
        (scope, on_cut): (&Scope, OnModelStop),
        (shared, round): (&Arc<SharedRun>, u32),
    ) -> Self {
        let performed = perform(work, (scope.clone(), on_cut), (Arc::clone(shared), round));
        Self::Task(scope.spawn(LABEL, performed))
    }

    /// Releases the exchange: where the driver reads it, then and there. A task that drops it would be behind all others that
    /// are ready, and of a reply of which no poll blocks, no drop does.
    pub(super) fn end(&mut self) {
        match std::mem::replace(self, Self::Absent) {
            Self::Task(task) => task.drop_now(),
            reading @ Self::Driver(_) => drop(reading),
            Self::Absent => {}
        }
    }

    /// The same, but as the present poll of the driver ends: where nothing that may wait or block is before that.
    pub(super) fn end_with_this_poll(&mut self, shared: &SharedRun) {
        match std::mem::replace(self, Self::Absent) {
            Self::Driver(Reading { work, scope, _hold: hold }) => {
                drop(scope);
                shared.given_up.leave((work, hold));
            }
            other @ (Self::Task(_) | Self::Absent) => {
                *self = other;
                self.end();
            }
        }
    }

    /// Gives the reply a separate task, if the driver reads it.
    pub(super) fn leave(&mut self, (shared, round): (&Arc<SharedRun>, u32)) {
        match std::mem::replace(self, Self::Absent) {
            Self::Driver(Reading { work, scope, _hold: hold }) => {
                let work = async { work.await.unwrap_or_else(|Panicked(_)| Err(dead())) };
                *self = Self::task(work, (&scope, OnModelStop::Disconnect), (shared, round));
                drop(hold);
            }
            other @ (Self::Task(_) | Self::Absent) => *self = other,
        }
    }

    /// Reads on, if the driver does.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ReadPart> {
        let Self::Driver(reading) = self else { return Poll::Pending };
        // What is stopped is not read on: the driver, which sees that next, cuts it.
        if reading.scope.is_stopping() {
            return Poll::Pending;
        }
        match Pin::new(&mut reading.work).poll(cx) {
            Poll::Ready(read) => {
                *self = Self::Absent;
                Poll::Ready(ReadPart::Ended(read.unwrap_or_else(|Panicked(_)| Err(dead()))))
            }
            Poll::Pending if coop::has_budget_remaining() => Poll::Pending,
            Poll::Pending => Poll::Ready(ReadPart::Busy),
        }
    }
}

/// The whole life of a driver, which ends no poll with an exchange that it has given up.
pub(super) struct Driven<F> {
    driver: Pin<Box<F>>,
    shared: Arc<SharedRun>,
    /// Dropped last: the attempt's span takes links until the driver has gone.
    _traced: Option<TracedAttempt>,
}

impl<F> Driven<F> {
    pub(super) fn new(driver: F, shared: Arc<SharedRun>, traced: Option<TracedAttempt>) -> Self {
        Self { driver: Box::pin(driver), shared, _traced: traced }
    }
}

impl<F: Future> Future for Driven<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.driver.as_mut().poll(cx);
        self.shared.given_up.release();
        polled
    }
}

/// Reads in a separate task, and tells the driver how it ended.
async fn perform(
    work: impl Future<Output = Result<(), ModelError>> + Send,
    (scope, on_cut): (Scope, OnModelStop),
    (shared, round): (Arc<SharedRun>, u32),
) {
    let unread = move || RunMessage::ModelEnded { round, error: Some(dead()) };
    let promised = PromisedMessage::new(&shared, unread);
    let read = match on_cut {
        // The performer observes the stop itself, so that the exchange is released while the driver still
        // records the request.
        OnModelStop::Disconnect => scope.run(work).await,
        OnModelStop::Drain => Ok(work.await),
    };
    match read {
        Ok(ended) => promised.send(RunMessage::ModelEnded { round, error: ended.err() }),
        // The driver observes the same stop, and cuts the message.
        Err(stop) => drop(stop),
    }
}
