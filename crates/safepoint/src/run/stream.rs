//! A run as one stream: its events, then its outcome.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::outcome::Outcome;
use crate::value::event::{Event, Events};

/// The events of a run, and its outcome as the last item; from [`Run::into_stream`](crate::Run::into_stream).
///
/// Dropping it drops the run: a run that is not settled is stopped with `Now`, and settles on its own. A server that drops
/// the body of a response when its client disconnects stops the run with it.
///
/// # Examples
/// ```no_run
/// # use safepoint::{Agent, event::{EventKind, RunItem}};
/// # async fn print(agent: Agent) {
/// use futures_util::StreamExt as _;
/// let mut items = agent.run("What changed last week?").into_stream();
/// while let Some(item) = items.next().await {
///     match item {
///         RunItem::Event(event) => if let EventKind::Text(text) = event.kind { print!("{text}") },
///         RunItem::Outcome(outcome) => println!("{:?}", outcome.ending()),
///     }
/// }
/// # }
/// ```
#[must_use = "a run does nothing before its stream is polled, and stops when the stream is dropped"]
pub struct RunStream<T = String> {
    events: Events,
    /// None once it has given its outcome.
    run: Option<Pin<Box<dyn Future<Output = Outcome<T>> + Send>>>,
    outcome: Option<Outcome<T>>,
}

/// An item of a run's stream. Exhaustive: an event, or the outcome, which is the last.
///
/// An example is at [`RunStream`].
#[derive(Debug)]
pub enum RunItem<T = String> {
    /// What happened.
    Event(Event),
    /// How the run ended.
    Outcome(Outcome<T>),
}

impl<T> RunStream<T> {
    pub(super) fn new(events: Events, run: impl Future<Output = Outcome<T>> + Send + 'static) -> Self {
        Self { events, run: Some(Box::pin(run)), outcome: None }
    }
}

/// Nothing in it is pinned in place.
impl<T> Unpin for RunStream<T> {}

impl<T> Stream for RunStream<T> {
    type Item = RunItem<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunItem<T>>> {
        // The run first: it starts when it is polled, and it wakes this task when the events have ended and its outcome has
        // not come yet.
        if let Some(run) = &mut self.run
            && let Poll::Ready(outcome) = run.as_mut().poll(cx)
        {
            self.run = None;
            self.outcome = Some(outcome);
        }
        match Pin::new(&mut self.events).poll_next(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(Some(RunItem::Event(event))),
            Poll::Ready(None) if self.run.is_some() => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(self.outcome.take().map(RunItem::Outcome)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> fmt::Debug for RunStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").field("events", &self.events).finish_non_exhaustive()
    }
}
