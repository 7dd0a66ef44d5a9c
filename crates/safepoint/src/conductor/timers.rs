//! The times that bound a run from its start or from a request: each fires once.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// What is over when a timer fires. Exhaustive: the conductor must act on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The run's wall time.
    Wall(Duration),
    /// The time limit of the call whose work the run is.
    Call(Duration),
    /// The grace that a child run has to reach a safe point of its own.
    Grace,
}

/// The timers that run, and whether the grace has.
#[derive(Default)]
pub(super) struct Timers {
    running: Vec<(Pin<Box<Sleep>>, Over)>,
    grace: Grace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Grace {
    #[default]
    Unasked,
    Running,
    Over,
}

impl Timers {
    pub(super) fn arm(&mut self, after: Duration, over: Over) {
        // A time beyond what the clock can hold never comes.
        if let Some(at) = Instant::now().checked_add(after) {
            self.running.push((Box::pin(sleep_until(at)), over));
        }
    }

    /// Counts the grace from its first asking.
    pub(super) fn arm_grace(&mut self, after: Duration) {
        if self.grace == Grace::Unasked {
            self.grace = Grace::Running;
            self.arm(after, Over::Grace);
        }
    }

    pub(super) fn grace_is_over(&self) -> bool {
        self.grace == Grace::Over
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        let Some(fired) = self.running.iter_mut().position(|(sleep, _)| sleep.as_mut().poll(cx).is_ready())
        else {
            return Poll::Pending;
        };
        let (_, over) = self.running.swap_remove(fired);
        if over == Over::Grace {
            self.grace = Grace::Over;
        }
        Poll::Ready(over)
    }
}
