//! The link from a child run to the call whose work it is: whose stop ended the run, and what its parent
//! learns.
//!
//! **Invariants**: the parent gets the end exactly once, even if the driver panics.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Demand, Mode, QuietGuard, Reach, Reason, SafePoints, Scope, StopRequest};

use super::Driver;
use crate::{
    definition::subagent::Subagent,
    run::{
        executor::{self, CallEnd as CallEnding, ResultHooks},
        outcome::Outcome,
        shared::{Activity, RunMessage},
    },
    sync::mailbox::Mailbox,
    value::{
        approval::ApprovalRequest,
        effect::SideEffect,
        ids::{CallId, Path},
        limits::Limits,
        receipt::{CallKind, CallStatus, ChildReport, QuietReport, StopSource},
    },
};

/// The link to the run above.
pub(super) struct Parent {
    pub(super) above: Above,
    pub(super) call_id: CallId,
    pub(super) child: Arc<Subagent>,
    /// The call's time limit.
    pub(super) limit: Option<Duration>,
    pub(super) entry: ChildStart,
    pub(super) started_at: Timestamp,
    /// The activity that the parent was last notified of.
    pub(super) reported: Activity,
    /// `Waits` once the parent has confirmed that all runs wait.
    pub(super) confirmed: Activity,
    pub(super) path: Path,
    /// The hooks of the parent that see the answer first.
    pub(super) hooks: Option<ResultHooks>,
    /// Whether the end was reported to the parent.
    pub(super) is_end_reported: bool,
    /// Keeps the parent from being quiet.
    pub(super) _hold: QuietGuard,
}

/// Whether a call's run is new. Exhaustive: it is, or it was begun earlier and resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildStart {
    Anew,
    /// And whether it asks its open questions again.
    Again {
        asks: bool,
    },
}

/// What a run knows of the one above it.
pub(super) struct Above {
    pub(super) mailbox: Mailbox<RunMessage>,
    /// Its scope: a stop of it, or of what encloses it, is not the stop of the run below.
    pub(super) scope: Scope,
    pub(super) limits: Arc<Limits>,
}

/// Whose stop ended a run, and at which boundary.
type StopOrigin = (StopSource, Option<SafePoints>);

impl Parent {
    fn post(&self, msg: RunMessage) {
        if !self.above.mailbox.post(msg) {
            // The parent is gone: it has the report, or this run is in the background and outlives it.
        }
    }

    /// The demand on this child run that comes from above.
    pub(super) fn demand(&self, scope: &Scope) -> Option<Demand> {
        scope.demand_from(&self.above.scope)
    }

    pub(super) fn report_activity(&mut self, activity: Activity) {
        if self.child.kind() == CallKind::Child && self.reported != activity {
            (self.reported, self.confirmed) = (activity, Activity::Works);
            self.post(RunMessage::ChildActivity { call_id: self.call_id.clone(), activity });
        }
    }

    /// How long the child may take to reach a safe point, if a demand from above asks for one (S9.5).
    pub(super) fn grace(&self, scope: &Scope) -> Option<Duration> {
        let asked = self.demand(scope)?;
        self.child.grace_time().filter(|_| asked.mode != Mode::Now)
    }

    pub(super) fn quiet(&self, quiet: QuietReport) {
        self.post(RunMessage::ChildQuiet { call_id: self.call_id.clone(), quiet });
    }

    fn report(&mut self, mut ending: CallEnding) {
        self.is_end_reported = true;
        ending.started_at = Some(self.started_at);
        let budget = self.child.spec().output_bytes.unwrap_or(self.above.limits.call_output_bytes);
        let call_id = self.call_id.clone();
        let hooks = self.hooks.take();
        if ending.is_within(budget) && hooks.is_none() {
            self.post(RunMessage::CallEnded { call_id, ending: Box::new(ending) });
            return;
        }
        let (parent, run) = (self.above.mailbox.clone(), self.above.scope.clone());
        let bound = self.above.limits.cleanup_timeout;
        drop(self.above.scope.spawn("a child's answer", async move {
            if let Some(hooks) = hooks {
                hooks.check(&mut ending).await;
            }
            ending.fit(budget, bound, &run).await;
            if !parent.post(RunMessage::CallEnded { call_id, ending: Box::new(ending) }) {
                // The parent is gone; it settled without its log.
            }
        }));
    }
}

impl Drop for Parent {
    /// A driver that panicked has reported nothing, and its parent must not wait indefinitely.
    fn drop(&mut self) {
        if !self.is_end_reported && self.child.kind() == CallKind::Child {
            let report =
                ChildReport { path: self.path.clone(), work: CallKind::Child, receipt: None, cost: 0.0 };
            let reported = "error: the child run's driver panicked".to_owned();
            self.report(executor::ended_as_run(CallStatus::Failed, reported, SideEffect::Unknown, report));
        }
    }
}

impl Driver {
    /// Makes this the driver of a child run.
    pub(super) fn under(mut self, up: Parent) -> Self {
        self.tree.parent = Some(Box::new(up));
        self
    }

    /// Whose stop ends this run, as things are now: a demand from above outranks one on the run alone.
    pub(super) fn origin(&self) -> StopOrigin {
        let fired = self.stops.stands(&self.machine);
        let fires = |demand: &Demand| match fired {
            Some(points) => demand.fires_at(points),
            None => demand.mode == Mode::Now,
        };
        let above = self.tree.demand_above(&self.cx.scope);
        match above {
            Some(Demand { mode: Mode::At(points), .. }) if self.queue.grace.is_over() => {
                (StopSource::Run, Some(points))
            }
            Some(above) if fires(&above) => (StopSource::Run, fired),
            Some(_) | None => (StopSource::Call, None),
        }
    }

    /// The child's grace is over: it ends now, by its parent's stop.
    pub(super) fn stop_for_grace(&self) {
        let above = self.tree.demand_above(&self.cx.scope);
        let mut reason =
            Reason::new(Code::PARENT).with_actor(Actor::Parent).with_text("its grace as a child is over");
        if let Some(first) = self.cx.scope.reason() {
            reason = reason.caused_by(&first);
        }
        let mut request = StopRequest::now().with_reach(Reach::Tree).grace_over().with_reason(reason);
        if let Some(above) = above {
            request = request.with_cleanup_cap(above.cleanup_cap);
        }
        self.cx.shared.stop.stop(request);
    }

    /// Waits in place until an answer or the expiry, while no approver is asked. A background run has no
    /// parent that would resume it, and neither has a run below one in a session.
    pub(super) fn wait_in_place(&mut self, request: &ApprovalRequest) {
        if !self.cx.shared.waits_in_place && !self.tree.is_background() {
            return;
        }
        self.expire_later(request);
    }

    /// Reports to the parent how this run ended.
    pub(super) fn report_to_parent(&mut self, outcome: &Outcome, origin: StopOrigin) {
        // Taken out during the report, which reads the whole run.
        let Some(mut up) = self.tree.parent.take() else { return };
        self.report_through(&mut up, outcome, origin);
        up.is_end_reported = true;
        self.tree.parent = Some(up);
    }

    fn report_through(&self, up: &mut Parent, outcome: &Outcome, origin: StopOrigin) {
        let receipt = outcome.receipt();
        let report = ChildReport {
            path: self.cx.shared.path.clone(),
            work: up.child.kind(),
            receipt: Some(Arc::clone(receipt)),
            cost: self.cost(&receipt.usage),
        };
        let (call_id, effect) = (up.call_id.clone(), self.machine.effect());
        match outcome {
            _ if report.work == CallKind::Background => {
                up.post(RunMessage::ChildSettled { call_id, child: report });
            }
            Outcome::Suspended(waiting) => {
                let approvals: Vec<ApprovalRequest> = waiting.approvals().to_vec();
                up.post(RunMessage::ChildSuspended { call_id, child: report, approvals });
            }
            Outcome::Done(answer) => {
                let text = answer.text().to_owned();
                up.report(executor::ended_as_run(CallStatus::Completed, text, effect, report));
            }
            Outcome::Failed(error) => {
                let text = format!("error: {error}");
                up.report(executor::ended_as_run(CallStatus::Failed, text, effect, report));
            }
            Outcome::Stopped(_) => up.report(self.stopped_ending(outcome, origin, report)),
        }
    }

    fn stopped_ending(&self, outcome: &Outcome, (by, fired): StopOrigin, report: ChildReport) -> CallEnding {
        let reason = self.stops.reason();
        let timed_out =
            by == StopSource::Call && reason.as_ref().is_some_and(|reason| *reason.code() == Code::TIMEOUT);
        let (status, stopped_by) =
            if timed_out { (CallStatus::TimedOut, None) } else { (CallStatus::Stopped, Some(by)) };
        let mut ending = executor::ended_as_run(status, String::new(), self.machine.effect(), report);
        (ending.reason, ending.stopped_by, ending.fired) = (reason, stopped_by, fired);
        ending.finish_text(outcome.partial_text());
        ending
    }
}
