//! The clock since the machine's start: it counts while the machine sleeps, and cannot be set.

use std::time::Duration;

use safepoint_scope::{clock, simulation::SimulatedMachine};
use tokio::time::Instant;

/// How long this machine has run, sleep included; `None` if unknown. In a simulation it is the simulated machine.
#[must_use]
pub fn uptime() -> Option<Duration> {
    SimulatedMachine::uptime_here().or_else(since_boot)
}

fn since_boot() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Some(Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// A moment from which a duration is counted, by the task's clock and by the machine's.
#[derive(Clone, Copy, Debug)]
pub struct Since {
    task: Instant,
    machine: Option<Duration>,
}

impl Since {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self { task: clock::monotonic(), machine: uptime() }
    }

    /// This moment, `time` later.
    #[must_use]
    pub fn later_by(self, time: Duration) -> Self {
        Self { task: self.task + time, machine: self.machine.map(|since| since.saturating_add(time)) }
    }

    /// Whether this moment comes after the other.
    #[must_use]
    pub fn is_later_than(self, other: Self) -> bool {
        self.task > other.task
    }

    /// How much of `time` is left, by the clock with less.
    #[must_use]
    pub fn left(&self, time: Duration) -> Duration {
        let left = time.saturating_sub(clock::monotonic().saturating_duration_since(self.task));
        match (self.machine, uptime()) {
            (Some(since), Some(now)) => left.min(time.saturating_sub(now.saturating_sub(since))),
            (None, _) | (_, None) => left,
        }
    }

    /// The moment at which `time` is over, by the machine's clock.
    #[must_use]
    pub fn end_of(&self, time: Duration) -> Option<Duration> {
        self.machine.map(|since| since.saturating_add(time))
    }
}
