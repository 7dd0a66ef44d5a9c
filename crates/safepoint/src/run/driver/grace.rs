//! The grace that a child run has to reach a safe point, counted once from the first request.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::value::limits::after;

/// The state of the grace.
#[derive(Default)]
pub(super) enum Grace {
    #[default]
    Unasked,
    Running(Pin<Box<Sleep>>),
    Over,
}

impl Grace {
    /// Starts counting at the first request.
    pub(super) fn arm(&mut self, time: Duration) {
        if let Self::Unasked = self {
            *self = Self::Running(Box::pin(sleep_until(after(Instant::now(), time))));
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Ready once, when the grace is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self::Running(sleep) = self else { return Poll::Pending };
        std::task::ready!(sleep.as_mut().poll(cx));
        *self = Self::Over;
        Poll::Ready(())
    }
}
