//! Stop requests as the run notices them: each is recorded once and reported in the receipt.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use safepoint_scope::{Demand, FiredBy, LoggedRequest, Mode, Onset, Reason, SafePoints, Scope};

use super::{Driver, LogFailure, model::ModelCalls};
use crate::{
    run::{machine::Machine, spans::StopSpan},
    value::{
        event::Fact,
        receipt::{Escalation, RequestReport, StopReport, TookEffect},
    },
};

/// Tracks the demand on a run, and what came of it.
pub(super) struct StopTracker {
    scope: Scope,
    seen: Option<Demand>,
    changed: Option<Pin<Box<dyn Future<Output = Demand> + Send>>>,
    /// Requests of several nodes reach a child run, and a wider reach admits older ones later.
    noticed: Vec<NoticedRequest>,
    phase: Option<&'static str>,
    observed: Option<TookEffect>,
    pub(super) span: StopSpan,
    /// The safe points at which this stop has ended child runs and calls that only waited.
    closing: Option<SafePoints>,
}

/// A request, and the fact of it: made once, so that the receipt says the same.
struct NoticedRequest {
    logged: LoggedRequest,
    fact: Arc<Fact>,
}

impl NoticedRequest {
    fn is(&self, other: &LoggedRequest) -> bool {
        let mine = &self.logged;
        (mine.seq, mine.at, &mine.reason) == (other.seq, other.at, &other.reason)
    }

    /// Whether it was made of this run, and not of one above, whose requests are given; nor is it what is left of the
    /// grace that a child run has under one of those.
    fn is_asked_here(&self, above: &[LoggedRequest]) -> bool {
        let is_of_one_above = !above.is_empty() && self.logged.onset == Onset::GraceOver;
        !is_of_one_above && !above.iter().any(|other| self.is(other))
    }

    fn report(&self) -> Option<&RequestReport> {
        if let Fact::StopRequested(report) = &*self.fact { Some(report) } else { None }
    }
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
            span: StopSpan::default(),
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

    /// Notices what is demanded, in `phase` if it is the first: the facts that are not recorded yet. None without a new
    /// demand. What was requested `above` is in the span of a run there.
    fn see(&mut self, above: Option<&Scope>, phase: impl FnOnce() -> &'static str) -> Option<Vec<Arc<Fact>>> {
        let demand = self.scope.demand().filter(|demand| self.seen != Some(*demand))?;
        let before = self.seen.replace(demand);
        self.changed = None;
        let phase = *self.phase.get_or_insert_with(phase);
        let above = above.map(Scope::requests).unwrap_or_default();
        // Read after the demand: all that was requested up to the demand is among these.
        let mut facts = Vec::new();
        for logged in self.scope.requests() {
            if !self.noticed.iter().any(|noticed| noticed.is(&logged)) {
                let fact = Arc::new(Fact::StopRequested((&logged).into()));
                facts.push(Arc::clone(&fact));
                let noticed = NoticedRequest { logged, fact };
                if let Some(report) = noticed.report().filter(|_| noticed.is_asked_here(&above)) {
                    self.span.requested(report, phase);
                }
                self.noticed.push(noticed);
            }
        }
        let was_now = before.is_some_and(|before| before.mode == Mode::Now);
        if demand.mode == Mode::Now && !was_now {
            if self.has_grace_ended() {
                facts.push(Arc::new(Fact::StopEscalated));
                self.span.escalated(Escalation::ByDeadline);
            } else if before.is_some() {
                self.span.escalated(Escalation::ByRequest);
            }
        }
        Some(facts)
    }

    /// Whether the stop is `Now` because a grace is over.
    fn has_grace_ended(&self) -> bool {
        let has_grace = |noticed: &NoticedRequest| {
            noticed.logged.demand.deadline.is_some() || noticed.logged.onset == Onset::GraceOver
        };
        self.noticed.iter().any(has_grace)
            && self.scope.fired().is_some_and(|fired| fired.by == FiredBy::Deadline)
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
        self.span.observed(&effect);
        Some(self.observed.insert(effect))
    }

    /// The stop took effect when nothing could be recorded any more.
    pub(super) fn take_effect_unrecorded(&mut self, machine: &Machine) {
        if self.observed.is_none() {
            let effect = TookEffect::just_now(&self.scope, self.stands(machine));
            self.span.observed(&effect);
            self.observed = Some(effect);
        }
    }

    /// Why the run ends: the reason when its stop took effect, or the current one before that.
    pub(super) fn reason(&self) -> Option<Reason> {
        let observed = self.observed.as_ref().and_then(TookEffect::reason).cloned();
        observed.or_else(|| self.scope.reason())
    }

    /// The report of the stop; `None` if none was requested.
    fn report(&self, phase: impl FnOnce() -> &'static str) -> Option<StopReport> {
        let report = |logged: &LoggedRequest| {
            let noticed = self.noticed.iter().find(|noticed| noticed.is(logged));
            noticed.and_then(NoticedRequest::report).cloned().unwrap_or_else(|| logged.into())
        };
        let phase = self.phase.unwrap_or_else(phase);
        StopReport::of(&self.scope.requests(), report, self.observed.as_ref(), phase)
    }
}

impl Driver {
    /// Notices requests and escalations: the facts that are to be recorded before anything else is done.
    pub(super) fn asked(&mut self) -> Vec<Arc<Fact>> {
        let (machine, children, def) = (&self.machine, &self.tree.children, &self.cx.def);
        let model = &self.model;
        let waits = || machine.waits_for_a_person(children.waiting(), def.limits.parallel_calls);
        let above = self.tree.above();
        let Some(facts) = self.stops.see(above, || phase(machine, model, waits())) else {
            return Vec::new();
        };
        if let Some(grace) = self.tree.grace(&self.cx.scope) {
            self.queue.grace.arm(grace);
        }
        facts
    }

    /// Records the first effect of a demand: it ended something, or kept it from beginning at the run's
    /// boundary or at `gate`.
    pub(super) async fn observe(&mut self, gate: Option<SafePoints>) -> Result<(), LogFailure> {
        let observed = self.observed(gate);
        self.record_all(observed).await.map(drop)
    }

    /// The first effect of a demand, to be recorded before what comes of it. Requests that are not recorded yet come before
    /// it: what runs may have seen one before this task did.
    pub(super) fn observed(&mut self, gate: Option<SafePoints>) -> Vec<Arc<Fact>> {
        let mut facts = self.asked();
        let effect = self.stops.take_effect(&self.machine, gate);
        facts.extend(effect.map(|effect| Arc::new(Fact::StopObserved { at: effect.at })));
        facts
    }

    /// Notes where the run is once a stop is asked: the message that is handled next may be of what the stop has ended
    /// already.
    pub(super) fn note_phase(&mut self) {
        if self.stops.phase.is_none() && self.cx.scope.demand().is_some() {
            self.stops.phase = Some(self.phase());
        }
    }

    /// Where the run is, for people and histograms.
    fn phase(&self) -> &'static str {
        phase(&self.machine, &self.model, self.waits_for_a_person())
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

/// Where a run is that waits for a person or not.
fn phase(machine: &Machine, model: &ModelCalls, waits: bool) -> &'static str {
    match waits {
        true => "it waited for a decision",
        false if model.is_unsent() => "the model's request waited to be sent",
        false => machine.phase(),
    }
}
