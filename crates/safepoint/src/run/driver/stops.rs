//! Stop requests as the run notices them: each is recorded once and reported in the receipt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use safepoint_scope::{Demand, FiredBy, LoggedRequest, Mode, Reason, SafePoints, Scope};

use super::{Driver, LogFailure};
use crate::{
    run::machine::Machine,
    value::{
        event::Fact,
        receipt::{StopReport, TookEffect},
    },
};

/// Tracks the demand on a run, and what came of it.
pub(super) struct StopTracker {
    scope: Scope,
    seen: Option<Demand>,
    changed: Option<Pin<Box<dyn Future<Output = Demand> + Send>>>,
    /// Requests of several nodes reach a child run, and a wider reach admits older ones later.
    noticed: Vec<LoggedRequest>,
    phase: Option<&'static str>,
    observed: Option<TookEffect>,
    /// The safe points at which this stop has ended child runs and calls that only waited.
    closing: Option<SafePoints>,
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
            closing: None,
        }
    }

    pub(super) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let changed = self.changed.get_or_insert_with(|| Box::pin(self.scope.changed(self.seen)));
        let _demand = ready!(changed.as_mut().poll(cx));
        self.changed = None;
        Poll::Ready(())
    }

    /// Whether the demand differs from the one that was noticed last.
    pub(super) fn is_asked_anew(&self) -> bool {
        self.scope.demand().is_some_and(|demand| self.seen != Some(demand))
    }

    /// Notices the demand, in `phase` if it is the first. Returns whether a deadline has just turned a stop
    /// at a safe point into an immediate one; `None` without a demand.
    fn see(&mut self, phase: &'static str) -> Option<bool> {
        let demand = self.scope.demand()?;
        let before = self.seen.replace(demand);
        self.changed = None;
        self.phase.get_or_insert(phase);
        let by_deadline = self.scope.fired().is_some_and(|fired| fired.by == FiredBy::Deadline);
        let was_now = before.is_some_and(|before| before.mode == Mode::Now);
        Some(demand.mode == Mode::Now && by_deadline && !was_now)
    }

    /// The oldest request that is not recorded yet.
    fn unrecorded(&self) -> Option<LoggedRequest> {
        let is_recorded = |asked: &LoggedRequest| self.noticed.iter().any(|noticed| is_same(noticed, asked));
        self.scope.requests().into_iter().find(|asked| !is_recorded(asked))
    }

    /// The boundaries at which the run is for its stop: the machine's, and those at which the stop has ended
    /// what ran below.
    pub(super) fn stands(&self, machine: &Machine) -> Option<SafePoints> {
        either(machine.boundary(), self.closing)
    }

    /// The stop has ended something below, at these boundaries.
    pub(super) fn closed_at(&mut self, points: Option<SafePoints>) {
        self.closing = either(self.closing, points);
    }

    /// The stop takes effect at the run's boundary, or at `gate`; `None` if none was requested, or it took
    /// effect earlier.
    fn take_effect(&mut self, machine: &Machine, gate: Option<SafePoints>) -> Option<&TookEffect> {
        if self.observed.is_some() || self.scope.demand().is_none() {
            return None;
        }
        let effect = TookEffect::just_now(&self.scope, either(self.stands(machine), gate));
        Some(self.observed.insert(effect))
    }

    /// The stop took effect when nothing could be recorded any more.
    pub(super) fn take_effect_unrecorded(&mut self, machine: &Machine) {
        let stands = self.stands(machine);
        self.observed.get_or_insert_with(|| TookEffect::just_now(&self.scope, stands));
    }

    /// Why the run ends: the reason when its stop took effect, or the current one before that.
    pub(super) fn reason(&self) -> Option<Reason> {
        let observed = self.observed.as_ref().and_then(TookEffect::reason).cloned();
        observed.or_else(|| self.scope.reason())
    }

    /// The report of the stop; `None` if none was requested.
    fn report(&self, phase: impl FnOnce() -> &'static str) -> Option<StopReport> {
        StopReport::of(&self.scope.requests(), self.observed.as_ref(), self.phase.unwrap_or_else(phase))
    }
}

impl Driver {
    /// Records requests and escalations that are not recorded yet.
    pub(super) async fn notice(&mut self) -> Result<(), LogFailure> {
        if !self.stops.is_asked_anew() {
            return Ok(());
        }
        let phase = self.phase();
        let Some(is_escalated) = self.stops.see(phase) else { return Ok(()) };
        while let Some(asked) = self.stops.unrecorded() {
            self.record(Fact::StopRequested((&asked).into())).await?;
            self.stops.noticed.push(asked);
        }
        if let Some(grace) = self.tree.grace(&self.cx.scope) {
            self.queue.grace.arm(grace);
        }
        if is_escalated {
            self.record(Fact::StopEscalated).await?;
        }
        Ok(())
    }

    /// Records the first effect of a demand: it ended something, or kept it from beginning at the run's
    /// boundary or at `gate`.
    pub(super) async fn observe(&mut self, gate: Option<SafePoints>) -> Result<(), LogFailure> {
        if let Some(effect) = self.stops.take_effect(&self.machine, gate) {
            let at = effect.at;
            self.record(Fact::StopObserved { at }).await?;
        }
        Ok(())
    }

    /// Where the run is, for people and histograms.
    fn phase(&self) -> &'static str {
        if self.waits_for_a_person() { "it waited for a decision" } else { self.machine.phase() }
    }

    /// The report of the stop; `None` if none was requested.
    pub(super) fn stop_report(&self) -> Option<StopReport> {
        self.stops.report(|| self.phase())
    }
}

/// The union of both.
fn either(one: Option<SafePoints>, other: Option<SafePoints>) -> Option<SafePoints> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one | other),
        (one, other) => one.or(other),
    }
}

fn is_same(one: &LoggedRequest, other: &LoggedRequest) -> bool {
    (one.seq, one.at, &one.reason) == (other.seq, other.at, &other.reason)
}
