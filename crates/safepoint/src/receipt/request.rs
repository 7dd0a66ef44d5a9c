//! A stop's account from the scope's own log of requests.

use jiff::Timestamp;
use safepoint_scope::{Asked, Logged, Mode};
use tokio::time::Instant;

use super::{Escalated, RequestReport, StopReport, mode_name, reach_name};

/// What is known of a stop beside its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effected {
    /// When and as what it took effect, if it did.
    pub(crate) fired: Option<(Timestamp, Mode)>,
    /// Whether a grace that was over made it `Now`.
    pub(crate) by_deadline: ByDeadline,
    /// Where the run was when it was asked.
    pub(crate) phase: &'static str,
}

/// Whether a grace ran out. Exhaustive: it did or it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByDeadline {
    No,
    Yes,
}

impl StopReport {
    /// The account; none if nobody asked.
    pub(crate) fn of(requests: &[Logged], effected: &Effected) -> Option<Self> {
        let first = requests.first()?;
        let mode = effected.fired.map(|(_, mode)| mode);
        let escalated = match (first.demand.mode, mode) {
            (Mode::At(_), Some(Mode::Now)) if effected.by_deadline == ByDeadline::Yes => {
                Escalated::ByDeadline
            }
            (Mode::At(_), Some(Mode::Now)) => Escalated::ByRequest,
            _ => Escalated::No,
        };
        Some(Self {
            reason: (&first.reason).into(),
            asked: mode_name(first.demand.mode),
            fired: mode.map(mode_name),
            escalated,
            requested_at: wall(first.at),
            observed_at: effected.fired.map(|(at, _)| at),
            phase: effected.phase.to_owned(),
            requests: requests.iter().map(RequestReport::from).collect(),
        })
    }
}

impl From<&Logged> for RequestReport {
    fn from(logged: &Logged) -> Self {
        Self {
            seq: logged.seq,
            at: wall(logged.at),
            reason: (&logged.reason).into(),
            mode: mode_name(logged.demand.mode),
            reach: reach_name(logged.demand.reach).to_owned(),
            within_ms: logged.demand.deadline.map(|deadline| {
                u64::try_from(deadline.duration_since(logged.at).as_millis()).unwrap_or(u64::MAX)
            }),
            asked: match logged.asked {
                Asked::First => "first",
                Asked::Strengthened => "strengthened",
                Asked::NothingAdded => "nothing_added",
                Asked::TooLate => "too_late",
            }
            .to_owned(),
        }
    }
}

/// The wall-clock time of an instant that is not in the future.
fn wall(at: Instant) -> Timestamp {
    let ago = jiff::SignedDuration::try_from(at.elapsed()).unwrap_or_default();
    Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH)
}
