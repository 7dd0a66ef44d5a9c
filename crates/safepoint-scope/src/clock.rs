//! The clocks of the machine: the one place that reads the time of day, so that a simulation can give another one.

use std::time::SystemTime;

use tokio::time::Instant;

use crate::simulation::here;

/// The time of day.
#[must_use]
pub fn time_of_day() -> SystemTime {
    here(|machine| machine.time_of_day()).unwrap_or_else(SystemTime::now)
}

/// Now, by a clock that cannot be set.
#[must_use]
pub fn monotonic() -> Instant {
    here(|machine| machine.monotonic()).unwrap_or_else(Instant::now)
}
