//! What a store needs from its environment: the time, and whether an owner is alive.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::process::{Liveness, OwnerProcess};
use crate::sync::clock;

/// Returns the time of day.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Returns whether an owner is alive.
pub type LivenessCheck = Arc<dyn Fn(&OwnerProcess) -> Liveness + Send + Sync>;

/// Returns the uptime of an owner's machine, sleep included, if it is this machine since the same start.
pub type Uptime = Arc<dyn Fn(&OwnerProcess) -> Option<Duration> + Send + Sync>;

/// The environment of a store; tests replace it.
#[derive(Clone)]
pub struct Environment {
    /// The time of day, by which leases and approvals end.
    pub clock: Clock,
    /// Whether an owner is alive.
    pub witness: LivenessCheck,
    /// The clock by which a lease on this machine ends: it cannot be set.
    pub uptime: Uptime,
    /// How long a lease must be over before another process takes the session without proof. Default 5 s.
    pub margin: Duration,
}

impl Default for Environment {
    fn default() -> Self {
        const MARGIN: Duration = Duration::from_secs(5);
        Self {
            clock: Arc::new(clock::now),
            witness: Arc::new(OwnerProcess::life),
            uptime: Arc::new(OwnerProcess::uptime),
            margin: MARGIN,
        }
    }
}

impl Environment {
    /// The time of day.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        truncate_to_micros((self.clock)())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("margin", &self.margin).finish_non_exhaustive()
    }
}

/// Truncates a time to microseconds, as stores keep it, so that a value returned now equals the one read
/// later.
#[must_use]
pub fn truncate_to_micros(at: Timestamp) -> Timestamp {
    of_micros(at.as_microsecond())
}

/// The time `micros` microseconds after 1970, or the farthest possible one.
#[must_use]
pub fn of_micros(micros: i64) -> Timestamp {
    let farthest = if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(micros).unwrap_or(farthest)
}
