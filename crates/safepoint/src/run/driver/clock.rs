//! The run's clock: how much is used of its wall time, and of the time of the call whose work it is (S12.7).
//!
//! **Invariants**: the clock stands exactly while only a person's decision can continue the run. Where a
//! limit applies, the log records in advance how long the attempt may have worked, so that an attempt without
//! a recorded end counts too.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use safepoint_scope::Code;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Driver, LogFailure};
use crate::{
    run::machine::over_attempts,
    value::{
        event::Fact,
        limits::{after, millis},
    },
};

/// An attempt records its time in steps of this fraction of its limit: that number of crashes uses up the
/// limit.
const STEPS: u32 = 20;
/// The longest such step: the most time that a crash costs.
const LONGEST_STEP: Duration = Duration::from_secs(60);

/// What has elapsed. Exhaustive: the driver must handle each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The run's wall time.
    Wall(Duration),
    /// The time limit of the call whose work the run is.
    Call(Duration),
    /// The time in the log: it is recorded in advance up to this value.
    Logged(Duration),
}

/// How long the run has worked. By default it stands, without limits.
#[derive(Default)]
pub(super) struct Clock {
    /// In earlier attempts.
    before: Duration,
    /// In this attempt, until the clock last stood.
    worked: Duration,
    /// Since when the clock runs; `None` while it stands.
    since: Option<Instant>,
    wall: Option<Duration>,
    call: Option<Duration>,
    /// How much time of this attempt is in the log.
    logged: Duration,
    step: Option<Duration>,
    sleep: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl Clock {
    /// A running clock without limits.
    pub(super) fn new() -> Self {
        Self { since: Some(Instant::now()), ..Self::default() }
    }

    /// How long this attempt has worked.
    pub(super) fn worked(&self) -> Duration {
        self.worked.saturating_add(self.since.map(|since| since.elapsed()).unwrap_or_default())
    }

    fn stand(&mut self) {
        self.worked = self.worked();
        self.since = None;
        self.sleep = None;
    }

    fn go(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// What this attempt may use of a limit.
    fn left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(self.before)
    }

    /// The timer that elapses first, and after how much work of this attempt.
    fn next(&self) -> Option<(Duration, Timer)> {
        let wall = self.wall.map(|limit| (self.left(limit), Timer::Wall(limit)));
        let call = self.call.map(|limit| (self.left(limit), Timer::Call(limit)));
        let logged = self.step.map(|step| (self.logged, Timer::Logged(self.logged.saturating_add(step))));
        [wall, call, logged].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Whether a timer has elapsed.
    pub(super) fn is_over(&self) -> bool {
        self.next().is_some_and(|(at, _)| at <= self.worked())
    }

    /// A timer that has elapsed; each is returned once.
    fn over(&mut self) -> Option<Timer> {
        let (_, over) = self.next().filter(|(at, _)| *at <= self.worked())?;
        match over {
            Timer::Wall(_) => self.wall = None,
            Timer::Call(_) => self.call = None,
            Timer::Logged(until) => self.logged = until,
        }
        if self.wall.is_none() && self.call.is_none() {
            self.step = None;
        }
        Some(over)
    }

    /// Ready when a timer has elapsed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some((at, _)), Some(since)) = (self.next(), self.since) else { return Poll::Pending };
        if self.sleep.as_ref().is_none_or(|(armed, _)| *armed != at) {
            let sleep = sleep_until(after(since, at.saturating_sub(self.worked)));
            self.sleep = Some((at, Box::pin(sleep)));
        }
        let Some((_, sleep)) = &mut self.sleep else { return Poll::Pending };
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(())
    }
}

impl Driver {
    /// The message exceeds its limit: the limit's stop ends the call, whatever else is known of its end by
    /// then.
    pub(super) fn too_long(&mut self, round: u32) {
        if self.model.is_at(round) {
            let limit = self.cx.def.limits.model_output_bytes;
            self.stop_for_limit(Code::OUTPUT_BYTES, format!("the model said more than {limit} bytes"));
        }
    }

    /// Starts counting against the run's limits, from what earlier attempts have used.
    pub(super) fn start_clock(&mut self) {
        let clock = &mut self.queue.clock;
        clock.before = self.machine.worked_before();
        clock.wall = self.cx.def.limits.wall_time;
        clock.call = self.tree.call_limit();
        let shortest = clock.wall.into_iter().chain(clock.call).min();
        clock.step = shortest.map(|limit| (limit / STEPS).min(LONGEST_STEP));
    }

    /// Lets the clock run or stand as the run does, and handles timers that have elapsed.
    pub(super) async fn keep_time(&mut self) -> Result<(), LogFailure> {
        let waits = self.waits_for_a_person();
        if waits {
            self.queue.clock.stand()
        } else {
            self.queue.clock.go()
        }
        let over = over_attempts(self.machine.attempt());
        match self.queue.clock.over() {
            Some(Timer::Wall(limit)) => {
                self.stop_for_limit(Code::WALL_TIME, format!("its limit of {limit:?} passed{over}"));
            }
            Some(Timer::Call(limit)) => {
                self.stop_for_limit(Code::TIMEOUT, format!("the call's limit of {limit:?} passed{over}"));
            }
            Some(Timer::Logged(until)) => {
                self.record(Fact::TimeTaken { ms: millis(until) }).await?;
            }
            None => {}
        }
        Ok(())
    }

    /// Whether only a person's decision can continue the run, about one of its calls or inside a run below.
    pub(super) fn waits_for_a_person(&self) -> bool {
        self.machine.waits_for_a_person(self.tree.children.waiting(), self.cx.def.limits.parallel_calls)
    }
}
