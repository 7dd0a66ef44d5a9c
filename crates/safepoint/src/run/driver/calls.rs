//! Tool calls: the scope of each, and its end, which is recorded here and nowhere else: one at a time while the run
//! works, together when it ends.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Reason, Scope, StopHandle, StopRequest};

use super::{Driver, LogFailure, RunContext, running::WatchableCall};
use crate::{
    contract::tool::OnToolFailure,
    run::{
        executor::{self, CallBoard, CallEnd},
        machine::{Call, CallState, SharedCall},
        outcome::LastWords,
        shared::Closing,
    },
    value::{
        effect::EffectClass,
        event::Fact,
        ids::{ApprovalId, CallId},
        message::{CallResult, ToolCall},
        receipt::{CallReport, CallStatus, StopSource},
    },
};

/// The calls that were checked and have not ended.
#[derive(Default)]
pub(super) struct Calls {
    open: HashMap<CallId, CallScope>,
    /// Those of which a body is the work, while it runs. Apart, since a run of many children looks through them often.
    bodies: HashMap<CallId, WatchableCall>,
}

/// A call's own scope, and what its body leaves behind.
pub(super) struct CallScope {
    pub(super) scope: Scope,
    pub(super) stop: StopHandle,
    pub(super) board: Arc<CallBoard>,
    pub(super) started_at: Option<Timestamp>,
    /// Whether its body or its run has begun, in this attempt.
    pub(super) is_begun: bool,
}

impl Calls {
    /// The call's own scope, created at the first check, so that the call can be stopped alone from then on.
    pub(super) fn look_at(&mut self, cx: &RunContext, id: &CallId) -> &mut CallScope {
        self.open.entry(id.clone()).or_insert_with(|| {
            let (scope, stop) = cx.scope.child();
            cx.shared.name_call(id.clone(), stop.clone());
            CallScope { scope, stop, board: Arc::default(), started_at: None, is_begun: false }
        })
    }

    pub(super) fn get(&self, id: &CallId) -> Option<&CallScope> {
        self.open.get(id)
    }

    /// The calls that run as bodies.
    pub(super) fn running(&mut self) -> impl Iterator<Item = &mut WatchableCall> {
        self.bodies.values_mut()
    }

    /// A body runs from here on, if its call is open.
    pub(super) fn begins(&mut self, id: CallId, body: WatchableCall) {
        if let Some(call) = self.open.get_mut(&id) {
            call.is_begun = true;
            self.bodies.insert(id, body);
        }
    }

    /// The run that is the call's work exists from here on.
    pub(super) fn run_begins(&mut self, id: &CallId) {
        if let Some(call) = self.open.get_mut(id) {
            call.is_begun = true;
        }
    }

    /// A body has ended: nothing of it is left to watch.
    pub(super) fn has_ended(&mut self, id: &CallId) {
        self.bodies.remove(id);
    }

    /// Removes a call that has ended or continues elsewhere: later requests come too late.
    pub(super) fn settle(&mut self, id: &CallId) -> Option<CallScope> {
        let call = self.open.remove(id)?;
        self.bodies.remove(id);
        call.stop.settle();
        Some(call)
    }

    /// Ends each call by its own contract, because the run fails.
    pub(super) fn end_for_failure(&self) {
        let reason = run_failed();
        for call in self.open.values() {
            call.stop.stop(StopRequest::now().with_reason(reason.clone()));
        }
    }
}

impl Driver {
    /// Records the remote agent's name for the work: a later attempt asks for that, and begins nothing twice
    /// (S7.2).
    pub(super) async fn call_named(&mut self, call_id: CallId, task: String) -> Result<(), LogFailure> {
        if self.machine.running_call(&call_id).is_some() {
            self.record(Fact::RemoteTaskNamed { call_id, task }).await?;
        }
        Ok(())
    }

    pub(super) async fn call_ended(
        &mut self,
        id: CallId,
        mut ending: Box<CallEnd>,
    ) -> Result<(), LogFailure> {
        let Some(call) = self.machine.running_call(&id).cloned() else { return Ok(()) };
        ending.clean(&self.cx.def.secrets);
        self.child_ended(&id, &ending);
        self.note_waiting_end(&id, &ending);
        let is_bad = matches!(
            ending.status,
            CallStatus::Failed | CallStatus::Denied | CallStatus::Unreachable | CallStatus::TimedOut
        );
        let fatal = is_bad
            && self
                .cx
                .def
                .tools
                .get(&call.name)
                .is_some_and(|work| work.spec().on_failure == OnToolFailure::EndRun);
        let failure =
            fatal.then(|| (super::failure::of(&call, &ending, self.cx.def.is_remote), ending.hint.clone()));
        let mut asked = Vec::new();
        if ending.stopped_by == Some(StopSource::Run) {
            asked = self.observed(None);
        }
        let is_continued = failure.is_none();
        let hooked = std::mem::take(&mut ending.hooked);
        asked.extend(hooked.acted.into_iter().map(|acted| Arc::new(Fact::HookActed(acted))));
        self.end_call_after(asked, &call, ending, is_continued).await?;
        if let Some((message, hint)) = failure {
            self.fail("tool", message, hint.as_deref());
        }
        if let Some((hook, panic)) = hooked.panicked {
            self.hook_panicked(&hook, &panic);
        }
        Ok(())
    }

    /// Records the end of one call. [`end_unbegun`](Self::end_unbegun) records the ends of the calls of which nothing runs
    /// when the run ends. No other function records one.
    pub(super) fn end_call(
        &mut self,
        call: &ToolCall,
        ending: impl Into<Box<CallEnd>>,
    ) -> impl Future<Output = Result<(), LogFailure>> + Send {
        self.end_call_after(Vec::new(), call, ending.into(), false)
    }

    /// Records the end of one call behind `asked`, in one append where no question of the call stands between them, and with the
    /// start of the next model call, which then begins, if that is next and the run continues.
    pub(super) async fn end_call_after(
        &mut self,
        mut asked: Vec<Arc<Fact>>,
        call: &ToolCall,
        mut ending: Box<CallEnd>,
        is_continued: bool,
    ) -> Result<(), LogFailure> {
        if let Some(said) = self.machine.find(&call.id).and_then(Call::said) {
            ending.add(&self.cx.def.secrets.clean_text(said.to_owned()));
        }
        let (ended, given) = ended_fact(*ending, call, self.machine.rounds());
        let Fact::CallEnded { report, .. } = &*ended else { return Ok(()) };
        let next = is_continued && asked.is_empty() && self.calls_model_after(report);
        let mut before = Ok(None);
        if self.machine.live().any(|request| request.call_id == call.id) {
            before = self.record_all(std::mem::take(&mut asked)).await;
            if before.is_ok() {
                before = Box::pin(self.withdraw_of_call(&call.id)).await.map(|()| None);
            }
        }
        if let Some(site) = self.calls.settle(&call.id) {
            self.call_over(&site, given);
        }
        asked.push(Arc::clone(&ended));
        let round = self.machine.next_round();
        asked.extend(next.then(|| Arc::new(Fact::ModelStarted { round })));
        let recorded = match before {
            Ok(_) => self.record_all(asked).await,
            Err(broken) => Err(broken),
        };
        match &recorded {
            Ok(_) => self.notify(|hooks| hooks.after_call(report)),
            Err(_) => self.recorder.keep_unrecorded([CallReport::clone(report)]),
        }
        match recorded? {
            Some(started) if next => {
                let gate = self.machine.ready_gate();
                Box::pin(self.stream(round, None, (gate, &started))).await
            }
            _ => Ok(()),
        }
    }

    /// Ends calls of which nothing runs, in one append, so that a stop does not wait for each (S12.5). With each come
    /// the questions about it and about the run that is its work, which are no longer asked. A child run asks
    /// again when it is resumed (S8.3).
    pub(super) async fn end_unbegun(
        &mut self,
        ended: Vec<(SharedCall, CallEnd, Vec<ApprovalId>)>,
    ) -> Result<(), LogFailure> {
        if ended.is_empty() {
            return Ok(());
        }
        let (mut facts, mut reports) = (Vec::new(), Vec::new());
        for (call, ending, asked) in ended {
            let withdrawn = asked.into_iter().map(|id| self.closed(id, &call.id, Closing::Withdrawn));
            facts.extend(withdrawn.map(Arc::new));
            let (report, result, extent) = ending.into_parts(&call, self.machine.rounds());
            let report = Arc::new(report);
            facts.push(Arc::new(Fact::CallEnded { report: Arc::clone(&report), result, extent }));
            reports.push(report);
            if let Some(site) = self.calls.settle(&call.id) {
                self.call_over(&site, LastWords::default());
            }
        }
        if let Err(broken) = self.record_all(facts).await {
            self.recorder.keep_unrecorded(reports.into_iter().map(Arc::unwrap_or_clone));
            return Err(broken);
        }
        reports.iter().for_each(|report| self.notify(|hooks| hooks.after_call(report)));
        Ok(())
    }

    /// A call is over: what it said of the run's answer becomes the run's.
    fn call_over(&mut self, site: &CallScope, given: LastWords) {
        if self.cx.def.is_remote {
            // If the call has sent no text, the run's answer is the call's result.
            let said = site.board.take_said();
            self.model.was_said(said.map_or(given, |said| self.cx.def.secrets.clean_text(said).into()));
        }
    }

    /// The rows of all calls, in order. If the log failed, what it did not take is reported too: an end that
    /// was seen as it was, and a call without one as left running (S3.4, S3.7).
    pub(super) fn call_rows(&self) -> Vec<CallReport> {
        let mut rows = self.machine.call_reports();
        for open in self.machine.open_calls() {
            let seen = self.recorder.unrecorded().iter().find(|row| row.call_id == open.call.id);
            let status = match open.step {
                CallState::Running if !self.has_never_begun(&open) => CallStatus::LeftRunning,
                CallState::EffectUnknown => CallStatus::Stopped,
                _ if open.is_in_doubt() => CallStatus::Stopped,
                CallState::Running
                | CallState::Requested
                | CallState::Approved(_)
                | CallState::Ready { .. }
                | CallState::Resuming { .. } => CallStatus::NotStarted,
                // It waits for a person and is reported as that.
                CallState::AwaitingApproval(_) | CallState::Suspended { .. } | CallState::Ended { .. } => {
                    continue;
                }
            };
            rows.push(seen.cloned().unwrap_or_else(|| self.row_without_end(&open, status)));
        }
        rows
    }

    fn row_without_end(&self, open: &Call, status: CallStatus) -> CallReport {
        let stop = Some((run_failed(), StopSource::Run));
        let mut ending = executor::not_begun(status, "", stop);
        ending.judge_effect(open.effect.unwrap_or(EffectClass::Unsafe));
        let is_begun = status != CallStatus::NotStarted;
        ending.started_at =
            self.calls.get(&open.call.id).and_then(|site| site.started_at).filter(|_| is_begun);
        let (report, ..) = ending.into_parts(&open.call, self.machine.rounds());
        CallReport { ended_at: report.ended_at.filter(|_| !is_begun), ..report }
    }
}

/// The fact of an end, and what it says of the run's answer. Made apart, so that no future has room for its parts.
fn ended_fact(ending: CallEnd, call: &ToolCall, round: u32) -> (Arc<Fact>, LastWords) {
    let (report, result, extent) = ending.into_parts(call, round);
    let given = answer_given(&report, &result);
    (Arc::new(Fact::CallEnded { report: report.into(), result, extent }), given)
}

/// A call's result, if it completed: shared, since it may be large.
fn answer_given(report: &CallReport, result: &CallResult) -> LastWords {
    let given = (report.status == CallStatus::Completed).then(|| Arc::clone(&result.text));
    given.map(LastWords::from).unwrap_or_default()
}

/// Why the calls of a failed run end.
pub(super) fn run_failed() -> Reason {
    Reason::new(Code::PARENT).with_actor(Actor::Engine).with_text("the run failed")
}

/// Whether a stop comes from the failure of a run above, and not from a request.
pub(super) fn is_of_a_failure(reason: &Reason) -> bool {
    *reason.code() == Code::PARENT && *reason.actor() == Actor::Engine
}
