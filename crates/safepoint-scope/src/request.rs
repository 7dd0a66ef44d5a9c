//! What is asked of a scope: mode, reach, grace, clean-up cap and reason. A wrong one cannot be built (S1.1, S1.6).

use std::{error::Error as StdError, fmt, time::Duration};

use tokio::time::Instant;

use crate::reason::{Code, Reason};

pub(crate) mod check_time;
pub(crate) mod demand;
pub(crate) mod points;

use demand::{Demand, Mode, Reach};
use points::SafePoints;

/// A bound over all clean-up times and the whole kill ladder together, where a request names none.
pub const DEFAULT_CLEANUP_CAP: Duration = Duration::from_secs(10);

/// How long a safe-point request waits before it becomes `Now`; never zero.
///
/// ```
/// use safepoint_scope::{Grace, StopRequest, secs};
/// let soon = StopRequest::graceful(secs(5)); // the same as `Grace::from_secs(5)`
/// let sooner = StopRequest::graceful(Grace::from_millis(200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grace(Duration);

impl Grace {
    /// A grace of whole seconds.
    ///
    /// # Panics
    /// If `secs` is zero: a grace of nothing is [`StopRequest::now`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        assert!(secs > 0, "a grace of zero is `StopRequest::now()`");
        Self(Duration::from_secs(secs))
    }

    /// A grace of milliseconds.
    ///
    /// # Panics
    /// If `millis` is zero: a grace of nothing is [`StopRequest::now`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        assert!(millis > 0, "a grace of zero is `StopRequest::now()`");
        Self(Duration::from_millis(millis))
    }

    /// The grace as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        self.0
    }
}

/// A grace of `n` seconds; see [`Grace::from_secs`].
///
/// # Panics
/// If `n` is zero.
#[must_use]
pub const fn secs(n: u64) -> Grace {
    Grace::from_secs(n)
}

impl TryFrom<Duration> for Grace {
    type Error = InvalidRequest;
    fn try_from(duration: Duration) -> Result<Self, InvalidRequest> {
        if duration.is_zero() { Err(InvalidRequest::zero_grace()) } else { Ok(Self(duration)) }
    }
}

/// A request that cannot be made, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRequest(String);

impl InvalidRequest {
    pub(crate) fn zero_grace() -> Self {
        Self("a grace must be longer than zero; to stop at once, ask for `now`".into())
    }
    pub(crate) fn no_points() -> Self {
        Self("name at least one safe point: after-model, after-started-calls, after-all-calls or any".into())
    }
    pub(crate) fn unknown_point(name: &str) -> Self {
        Self(format!(
            "there is no safe point `{name}`; there are after-model, after-started-calls, after-all-calls and any"
        ))
    }
}

impl fmt::Display for InvalidRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for InvalidRequest {}

/// A request that a run end early: a value, never an error.
///
/// ```
/// use safepoint_scope::{Reason, SafePoints, StopRequest, secs};
/// let polite = StopRequest::graceful(secs(5)).with_reason(Reason::user("ctrl-c"));
/// let whole_round = StopRequest::at(SafePoints::AFTER_MODEL | SafePoints::AFTER_ALL_CALLS);
/// let at_once = StopRequest::now();
/// ```
#[must_use = "hand it to `StopHandle::stop`"]
#[derive(Clone, Debug)]
pub struct StopRequest {
    mode: Mode,
    grace: Option<Grace>,
    reach: Reach,
    cleanup_cap: Duration,
    reason: Option<Reason>,
    onset: Onset,
}

/// Where a request comes from. Exhaustive: an actor asked, or a grace is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Onset {
    /// An actor asked.
    #[default]
    Asked,
    /// A grace is over. The caller counted it, and its effects are reported as done by deadline (S1.7).
    GraceOver,
}

impl StopRequest {
    /// At once.
    pub fn now() -> Self {
        Self {
            mode: Mode::Now,
            grace: None,
            reach: Reach::Root,
            cleanup_cap: DEFAULT_CLEANUP_CAP,
            reason: None,
            onset: Onset::Asked,
        }
    }

    /// At the first of these safe points, however long that takes.
    pub fn at(points: SafePoints) -> Self {
        Self { mode: Mode::At(points), ..Self::now() }
    }

    /// At the first of these safe points, or at once when `grace` is over.
    pub fn at_within(points: SafePoints, grace: Grace) -> Self {
        Self { grace: Some(grace), ..Self::at(points) }
    }

    /// At any safe point of the whole tree, or at once when `grace` is over.
    pub fn graceful(grace: Grace) -> Self {
        Self { grace: Some(grace), ..Self::graceful_unbounded() }
    }

    /// At any safe point of the whole tree, however long that takes.
    pub fn graceful_unbounded() -> Self {
        Self { reach: Reach::Tree, ..Self::at(SafePoints::ANY) }
    }

    /// Sets whether nested runs honour safe points too, and background ones are included.
    pub fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Sets the bound over all clean-up times together; zero allows none at all.
    pub fn with_cleanup_cap(mut self, cap: Duration) -> Self {
        self.cleanup_cap = cap;
        self
    }

    /// Says that it is the end of a grace that was counted outside of the scope, and no further ask.
    pub fn grace_over(mut self) -> Self {
        self.onset = Onset::GraceOver;
        self
    }

    /// Says why.
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The grace; none waits, or is `Now`.
    #[must_use]
    pub fn grace(&self) -> Option<Grace> {
        self.grace
    }

    /// The reach.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The clean-up cap.
    #[must_use]
    pub fn cleanup_cap(&self) -> Duration {
        self.cleanup_cap
    }

    /// The reason, if one was given.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    /// Whether an actor asked, or a grace is over.
    #[must_use]
    pub fn onset(&self) -> Onset {
        self.onset
    }

    /// What it demands when it is handed in at `now`: the grace counts from here (S1.7).
    pub(crate) fn demand(&self, now: Instant) -> Demand {
        Demand {
            mode: self.mode,
            reach: self.reach,
            // A grace beyond what the clock can hold is as good as none.
            deadline: self.grace.and_then(|grace| now.checked_add(grace.as_duration())),
            cleanup_cap: self.cleanup_cap,
        }
    }

    pub(crate) fn into_reason(self) -> Reason {
        self.reason.unwrap_or_else(|| Reason::new(Code::USER))
    }
}
