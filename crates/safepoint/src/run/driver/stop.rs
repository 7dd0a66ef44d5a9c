//! What was asked, as the run notices it: recorded once each, and told in the receipt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use safepoint_scope::{Demand, FiredBy, LoggedRequest, Mode, Reason, SafePoints, Scope};

use super::{Driver, LogFailure, Seen, children};
use crate::value::{
    event::Fact,
    receipt::{StopReport, TookEffect},
};

/// Follows what is demanded of a run.
pub(super) struct StopTracker {
    scope: Scope,
    seen: Seen,
    changed: Option<Pin<Box<dyn Future<Output = Demand> + Send>>>,
    /// Requests of several nodes reach a child run, and a wider reach lets older ones through later.
    noticed: Vec<LoggedRequest>,
    phase: Option<&'static str>,
    observed: Option<TookEffect>,
}

impl StopTracker {
    pub(super) fn new(scope: &Scope) -> Self {
        Self {
            scope: scope.clone(),
            seen: None,
            changed: None,
            noticed: Vec::new(),
            phase: None,
            observed: None,
        }
    }

    pub(super) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let changed = self.changed.get_or_insert_with(|| Box::pin(self.scope.changed(self.seen)));
        match changed.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_demand) => {
                self.changed = None;
                Poll::Ready(())
            }
        }
    }
}

impl Driver {
    /// Whether something else is demanded than what was noticed last.
    pub(super) fn is_asked_anew(&self) -> bool {
        self.cx.scope.demand().is_some_and(|demand| self.stops.seen != Some(demand))
    }

    /// Records the requests and the escalation that have not been.
    pub(super) async fn notice(&mut self) -> Result<(), LogFailure> {
        let Some(demand) = self.cx.scope.demand() else { return Ok(()) };
        if self.stops.seen == Some(demand) {
            return Ok(());
        }
        let before = self.stops.seen.replace(demand);
        self.stops.changed = None;
        let phase = self.phase();
        self.stops.phase.get_or_insert(phase);
        let requests = self.cx.scope.requests();
        for logged in &requests {
            if !self.stops.noticed.iter().any(|noticed| is_same(noticed, logged)) {
                self.record(Fact::StopRequested(logged.into())).await?;
                self.stops.noticed.push(logged.clone());
            }
        }
        if let Some(grace) = self.tree.parent.as_ref().and_then(|up| up.grace(&self.cx.scope)) {
            self.queue.grace.arm(grace);
        }
        let by_deadline = self.cx.scope.fired().is_some_and(|fired| fired.by == FiredBy::Deadline);
        if demand.mode == Mode::Now && by_deadline && before.is_none_or(|before| before.mode != Mode::Now) {
            self.record(Fact::StopEscalated).await?;
        }
        Ok(())
    }

    /// Records that a demand took effect, the first time: it ended something, or kept it from beginning where the run
    /// stands, or at `gate`.
    pub(super) async fn observe(&mut self, gate: Option<SafePoints>) -> Result<(), LogFailure> {
        if self.stops.observed.is_some() || self.cx.scope.demand().is_none() {
            return Ok(());
        }
        let stands = children::or(self.machine.boundary(), self.tree.children.closing);
        let effect = TookEffect::just_now(&self.cx.scope, children::or(stands, gate));
        let at = effect.at;
        self.stops.observed = Some(effect);
        self.record(Fact::StopObserved { at }).await?;
        Ok(())
    }

    /// The stop took effect where nothing could be recorded of it any more.
    pub(super) fn observe_unrecorded(&mut self) {
        let stands = children::or(self.machine.boundary(), self.tree.children.closing);
        self.stops.observed.get_or_insert_with(|| TookEffect::just_now(&self.cx.scope, stands));
    }

    /// Where the run is, for people and histograms.
    fn phase(&self) -> &'static str {
        if self.waits_for_a_person() { "it waited for a decision" } else { self.machine.phase() }
    }

    /// Why the run ends: as its stop took effect; before that, as it stands.
    pub(super) fn stop_reason(&self) -> Option<Reason> {
        let observed = self.stops.observed.as_ref().and_then(TookEffect::reason).cloned();
        observed.or_else(|| self.cx.scope.reason())
    }

    /// The stop's account; none if nobody asked.
    pub(super) fn stop_report(&self) -> Option<StopReport> {
        let phase = self.stops.phase.unwrap_or_else(|| self.phase());
        StopReport::of(&self.cx.scope.requests(), self.stops.observed.as_ref(), phase)
    }
}

fn is_same(one: &LoggedRequest, other: &LoggedRequest) -> bool {
    (one.seq, one.at, &one.reason) == (other.seq, other.at, &other.reason)
}
