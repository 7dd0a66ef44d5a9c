//! Which of several requests took effect, and how: by what stands in the log, never by who looked first (S1.4, S1.7).

use tokio::time::Instant;

use crate::{
    request::{Onset, check_time::CheckTime, demand::Mode, points::SafePoints},
    scope::logged::LoggedRequest,
};

/// The request that took effect.
#[derive(Clone, Debug)]
pub struct Fired {
    /// The request.
    pub request: LoggedRequest,
    /// How.
    pub by: FiredBy,
}

/// How a request took effect. Exhaustive: S1.7 tells these three apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FiredBy {
    /// Its grace was over.
    Deadline,
    /// It is `Now`.
    Request,
    /// A safe point that it names was reached.
    SafePoint,
}

impl Fired {
    /// The first of one log to take effect, and its rank: what was `Now` ends the work when it becomes that, so the
    /// earliest of those came first; else, at a boundary, the earliest that names one of its points.
    pub(crate) fn first<'l>(
        log: impl Iterator<Item = &'l LoggedRequest>,
        gate: Option<SafePoints>,
        check: &CheckTime,
    ) -> Option<(Rank, Self)> {
        let ranked = log.filter_map(|logged| rank(logged, gate, check).map(|(rank, by)| (rank, logged, by)));
        // Of several that are alike the first.
        let (rank, request, by) = ranked.min_by_key(|(rank, ..)| *rank)?;
        Some((rank, Self { request: request.clone(), by }))
    }
}

/// What ends the work at once comes before what waits for a boundary; in one instant a grace is over before anything is
/// asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Now(Instant, FiredBy),
    AtABoundary(Instant),
}

fn rank(logged: &LoggedRequest, gate: Option<SafePoints>, check: &CheckTime) -> Option<(Rank, FiredBy)> {
    match (logged.demand.mode, logged.demand.deadline) {
        (Mode::Now, _) => {
            let by = match logged.onset {
                Onset::Asked => FiredBy::Request,
                Onset::GraceOver => FiredBy::Deadline,
            };
            Some((Rank::Now(logged.at, FiredBy::Request), by))
        }
        (Mode::At(_), Some(deadline)) if deadline <= check.now() => {
            Some((Rank::Now(deadline, FiredBy::Deadline), FiredBy::Deadline))
        }
        (Mode::At(points), _) => {
            let is_named = gate.is_some_and(|gate| points.intersects(gate));
            is_named.then_some((Rank::AtABoundary(logged.at), FiredBy::SafePoint))
        }
    }
}
