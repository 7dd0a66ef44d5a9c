//! A stop's report, from the scope's log of requests.

use jiff::Timestamp;
use safepoint_scope::{Demand, Fired, FiredBy, LoggedRequest, Mode, Reason, SafePoints, Scope, StopAck};
use tokio::time::Instant;

use super::{Escalation, RequestReport, StopReport, mode_name, reach_name};
use crate::sync::clock;
use crate::value::limits::millis;

/// When a stop took effect, as what, and by which request.
#[derive(Clone, Debug)]
pub(crate) struct TookEffect {
    pub(crate) at: Timestamp,
    pub(crate) mode: Mode,
    fired: Option<Fired>,
}

impl TookEffect {
    /// What takes effect in `scope` now, at a boundary with the safe points of `gate`; without a gate, `Now`
    /// alone.
    pub(crate) fn just_now(scope: &Scope, gate: Option<SafePoints>) -> Self {
        let fired = gate.map_or_else(|| scope.fired(), |gate| scope.fired_at(gate));
        let mode = match &fired {
            Some(Fired { by: FiredBy::Request | FiredBy::Deadline, .. }) => Mode::Now,
            // The combined demand, unless a later request has strengthened it at this very moment.
            Some(Fired { by: FiredBy::SafePoint, request }) => match scope.demand() {
                Some(Demand { mode: mode @ Mode::At(_), .. }) => mode,
                Some(Demand { mode: Mode::Now, .. }) | None => request.demand.mode,
            },
            None => scope.demand().map_or(Mode::Now, |demand| demand.mode),
        };
        Self { at: clock::now(), mode, fired }
    }

    /// Why; none if no request names what took effect.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        self.fired.as_ref().map(|fired| &fired.request.reason)
    }

    fn is_by_deadline(&self) -> bool {
        matches!(self.fired, Some(Fired { by: FiredBy::Deadline, .. }))
    }
}

impl StopReport {
    /// The report; `None` without a request. `report` is what is said of each, and `phase` is where the run was at the
    /// first.
    pub(crate) fn of(
        requests: &[LoggedRequest],
        report: impl Fn(&LoggedRequest) -> RequestReport,
        effect: Option<&TookEffect>,
        phase: &str,
    ) -> Option<Self> {
        let first = requests.first()?;
        let requests: Vec<RequestReport> = requests.iter().map(report).collect();
        let mode = effect.map(|effect| effect.mode);
        let escalated = match (first.demand.mode, mode) {
            (Mode::At(_), Some(Mode::Now)) if effect.is_some_and(TookEffect::is_by_deadline) => {
                Escalation::ByDeadline
            }
            (Mode::At(_), Some(Mode::Now)) => Escalation::ByRequest,
            _ => Escalation::No,
        };
        Some(Self {
            reason: effect.and_then(TookEffect::reason).unwrap_or(&first.reason).into(),
            asked: mode_name(first.demand.mode),
            fired: mode.map(mode_name),
            escalated,
            requested_at: requests.first()?.at,
            observed_at: effect.map(|effect| effect.at),
            phase: phase.to_owned(),
            requests,
        })
    }
}

impl From<&LoggedRequest> for RequestReport {
    fn from(logged: &LoggedRequest) -> Self {
        Self {
            seq: logged.seq,
            at: wall(logged.at),
            reason: (&logged.reason).into(),
            mode: mode_name(logged.demand.mode),
            reach: reach_name(logged.demand.reach).to_owned(),
            within_ms: logged.demand.deadline.map(|deadline| millis(deadline.duration_since(logged.at))),
            asked: match logged.asked {
                StopAck::First => "first",
                StopAck::Strengthened => "strengthened",
                StopAck::Unchanged => "nothing_added",
                StopAck::TooLate => "too_late",
            }
            .to_owned(),
        }
    }
}

/// The wall-clock time of an instant that is not in the future.
fn wall(at: Instant) -> Timestamp {
    let ago = jiff::SignedDuration::try_from(at.elapsed()).unwrap_or_default();
    clock::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH)
}
