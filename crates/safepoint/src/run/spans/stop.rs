//! The span of a stop: from its first request until the run is quiet, or until the time for that is over (S11.12).
//!
//! **Invariants**: a stop has one span, in the run that was asked; the runs below it have none of their own. What subscribes to
//! spans may panic here, and the stop continues without its span.

use tracing::{
    Level, Span, event,
    field::{Empty, display},
    info_span,
};

use super::whole_number;
use crate::{
    sync::callback,
    value::receipt::{Escalation, QuietReport, Receipt, RequestReport, TookEffect, mode_name},
};

/// The span, once a stop was requested.
#[derive(Default)]
pub(crate) struct StopSpan(Option<Box<OpenStop>>);

struct OpenStop {
    span: Span,
    is_escalated: bool,
    is_settled: bool,
}

impl StopSpan {
    /// A request has reached the run, which is in this phase. The first begins the span, below the current one.
    pub(crate) fn requested(&mut self, request: &RequestReport, phase: &str) {
        self.shown(|open| {
            let open = open.get_or_insert_with(|| Box::new(OpenStop::new(request, phase)));
            event!(
                parent: &open.span,
                Level::INFO,
                safepoint.stop.mode = request.mode,
                safepoint.stop.reach = request.reach,
                safepoint.stop.reason = request.reason.code,
                safepoint.stop.actor = request.reason.actor,
                safepoint.stop.asked = request.asked,
                safepoint.stop.within_ms = request.within_ms.map(whole_number),
                "requested"
            );
        });
    }

    /// The demand has become `Now`.
    pub(crate) fn escalated(&mut self, why: Escalation) {
        self.shown(|open| {
            let Some(open) = open.as_deref_mut().filter(|open| !open.is_escalated) else { return };
            open.is_escalated = true;
            event!(parent: &open.span, Level::INFO, safepoint.stop.escalated = word(why), "escalated");
        });
    }

    /// The stop has ended something, or kept it from beginning.
    pub(crate) fn observed(&mut self, effect: &TookEffect) {
        self.shown(|open| {
            let Some(open) = open.as_deref() else { return };
            let fired = mode_name(effect.mode);
            event!(parent: &open.span, Level::INFO, safepoint.stop.fired = fired, "observed");
        });
    }

    /// The run's outcome is fixed.
    pub(crate) fn settled(&mut self, receipt: &Receipt) {
        self.shown(|open| {
            let Some(open) = open.as_deref_mut().filter(|open| !open.is_settled) else { return };
            open.is_settled = true;
            let span = &open.span;
            if let Some(stop) = &receipt.stop {
                span.record("safepoint.stop.fired", stop.fired.as_deref());
                span.record("safepoint.stop.reason", stop.reason.code.as_str());
                span.record("safepoint.stop.actor", stop.reason.actor.as_str());
                span.record("safepoint.stop.escalated", word(stop.escalated));
            }
            let ending = receipt.ending.as_str();
            span.record("safepoint.ending", ending);
            event!(parent: span, Level::INFO, safepoint.ending = ending, "settled");
        });
    }

    /// Nothing of the run is alive, or what is alive is known: the span ends.
    pub(crate) fn quiet(&mut self, report: &QuietReport) {
        self.shown(|open| {
            let Some(open) = open.take() else { return };
            open.span.record("safepoint.stop.quiet", matches!(report, QuietReport::Quiet(_)));
            let survivors = &report.receipt().survivors;
            if !survivors.is_empty() {
                open.span.record("safepoint.stop.survivors", display(survivors.join(", ")));
            }
        });
    }

    /// Shows something of it. Where that panics, the stop goes without its span from here on.
    fn shown(&mut self, show: impl FnOnce(&mut Option<Box<OpenStop>>)) {
        let open = &mut self.0;
        if callback::call(|| show(open)).is_err()
            && let Some(broken) = self.0.take()
            && callback::drop_caught(broken).is_err()
        {
            // It is gone.
        }
    }
}

impl OpenStop {
    fn new(first: &RequestReport, phase: &str) -> Self {
        let span = info_span!(
            "safepoint.stop",
            safepoint.stop.mode = first.mode,
            safepoint.stop.reach = first.reach,
            safepoint.stop.reason = first.reason.code,
            safepoint.stop.actor = first.reason.actor,
            safepoint.stop.phase = phase,
            safepoint.stop.fired = Empty,
            safepoint.stop.escalated = Empty,
            safepoint.stop.quiet = Empty,
            safepoint.stop.survivors = Empty,
            safepoint.ending = Empty,
        );
        Self { span, is_escalated: false, is_settled: false }
    }
}

fn word(why: Escalation) -> &'static str {
    match why {
        Escalation::No => "no",
        Escalation::ByRequest => "by_request",
        Escalation::ByDeadline => "by_deadline",
    }
}
