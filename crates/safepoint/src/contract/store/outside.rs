//! What a store asks of the world outside: what time it is, and whether an owner lives.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::owner::{Liveness, OwnerProcess};

/// Tells the time of day.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Tells whether an owner is alive.
pub type LivenessCheck = Arc<dyn Fn(&OwnerProcess) -> Liveness + Send + Sync>;

/// Tells how long the machine of an owner has run, its sleep included, if it is this machine since this start.
pub type Uptime = Arc<dyn Fn(&OwnerProcess) -> Option<Duration> + Send + Sync>;

/// The world outside of a store; tests put their own in its place.
#[derive(Clone)]
pub struct Environment {
    /// The time of day, by which leases and approvals end.
    pub clock: Clock,
    /// Whether an owner is alive.
    pub witness: LivenessCheck,
    /// The clock by which a lease on this machine ends: nobody can set it.
    pub uptime: Uptime,
    /// How long a lease must be over before somebody else takes the session without proof. Default 5 s.
    pub margin: Duration,
}

impl Default for Environment {
    fn default() -> Self {
        const MARGIN: Duration = Duration::from_secs(5);
        Self {
            clock: Arc::new(Timestamp::now),
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
        f.debug_struct("Outside").field("margin", &self.margin).finish_non_exhaustive()
    }
}

/// A time as stores keep it: in microseconds, so that what is told now equals what is read later.
#[must_use]
pub fn truncate_to_micros(at: Timestamp) -> Timestamp {
    of_micros(at.as_microsecond())
}

/// The time of so many microseconds since 1970, or the farthest there is.
#[must_use]
pub fn of_micros(micros: i64) -> Timestamp {
    let farthest = if micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(micros).unwrap_or(farthest)
}
