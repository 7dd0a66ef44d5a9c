//! What all requests together demand: a join-semilattice that only strengthens (S1.4).

use std::time::Duration;

use tokio::time::Instant;

use crate::request::{check_time::CheckTime, points::SafePoints};

/// How soon. Exhaustive: at a safe point or at once, there is no third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At the first of these safe points.
    At(SafePoints),
    /// At once.
    Now,
}

/// How far. Exhaustive: this run, or all below it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Nested runs do not see safe points; background ones are spared.
    Root,
    /// Nested runs honour safe points at their own boundaries; background ones are included.
    Tree,
}

/// What is demanded of a run: the join of all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// How soon.
    pub mode: Mode,
    /// How far.
    pub reach: Reach,
    /// When a safe-point demand becomes `Now`; never set beside `Now`.
    pub deadline: Option<Instant>,
    /// The bound over all clean-up times.
    pub cleanup_cap: Duration,
}

impl Demand {
    /// Both demands together: safe points unite, `Now` absorbs and drops the deadline, the earlier deadline and the
    /// smaller cap win, `Tree` absorbs `Root`.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let mode = match (self.mode, other.mode) {
            (Mode::At(a), Mode::At(b)) => Mode::At(a | b),
            (Mode::Now, _) | (_, Mode::Now) => Mode::Now,
        };
        let deadline = match mode {
            Mode::Now => None,
            Mode::At(_) => self.deadline.into_iter().chain(other.deadline).min(),
        };
        Self {
            mode,
            deadline,
            reach: self.reach.max(other.reach),
            cleanup_cap: self.cleanup_cap.min(other.cleanup_cap),
        }
    }

    /// The demand as it stands at `now`: one whose deadline has come is `Now`.
    #[must_use]
    pub fn due(self, now: Instant) -> Self {
        match self.deadline {
            Some(deadline) if deadline <= now => Self { mode: Mode::Now, deadline: None, ..self },
            _ => self,
        }
    }

    /// The demand as it stands at the time of a check.
    pub(crate) fn at(self, check: &CheckTime) -> Self {
        if self.deadline.is_some() { self.due(check.now()) } else { self }
    }

    /// Whether it takes effect at a boundary that is one of `gate`.
    #[must_use]
    pub fn fires_at(&self, gate: SafePoints) -> bool {
        match self.mode {
            Mode::Now => true,
            Mode::At(points) => points.intersects(gate),
        }
    }
}
