//! Tool calls: judged, announced, permitted, supervised, and recorded at their end.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Mode, Reason, SafePoints, StopRequest};
use serde_json::Value;
use tracing::Instrument as _;

use super::{
    CallScope, Driver, LogFailure,
    children::{Begin, Entry},
    host::RunHost,
};
use crate::{
    contract::{
        hook::{HookCall, HookOf},
        tool::{CallSite, OnToolFailure, ToolContext},
    },
    definition::{AnswerOf, toolset::Callable},
    run::{
        executor::{self, CallBoard, CallEnd, Job, RunCall},
        machine::{ApprovalReuse, Call, CallState},
        outcome::LastWords,
        shared::{Closing, RunMessage},
        spans,
    },
    value::{
        effect::EffectClass,
        event::Fact,
        ids::{ApprovalId, CallId},
        message::{CallResult, ToolCall},
        receipt::{CallReport, CallStatus, StopSource},
    },
};

/// A call of which nothing runs as the run ends.
pub(super) struct Unbegun {
    pub(super) call: ToolCall,
    pub(super) ending: CallEnd,
    /// Questions about it, and of a run below that is its work, which nobody asks any more: a child run asks again when it is
    /// taken up again (S8.3).
    pub(super) asked: Vec<ApprovalId>,
}

impl Driver {
    pub(super) async fn start_calls(
        &mut self,
        calls: Vec<usize>,
        gate: SafePoints,
    ) -> Result<(), LogFailure> {
        let mut begun = 0;
        for index in calls {
            let Some(due) = self.machine.call(index).cloned() else { continue };
            let how = (entry_of(&due), due.named.clone());
            let Call { call, step: CallState::Ready { args, .. }, .. } = due else { continue };
            let key = HookOf::Call(call.id.clone());
            let hooked = HookCall { call_id: call.id.clone(), name: call.name.clone(), args: args.clone() };
            if !self.hook_passed(key, |hooks, _| hooks.before_call(&hooked)) {
                // Those after it may not overtake it.
                break;
            }
            self.start_call(&call, args, gate, how).await?;
            begun += 1;
        }
        if begun == 0 { self.wait().await } else { Ok(()) }
    }

    async fn start_call(
        &mut self,
        call: &ToolCall,
        args: Value,
        gate: SafePoints,
        (entry, named): (Entry, Option<String>),
    ) -> Result<(), LogFailure> {
        let Ok(work) = self.cx.def.tools.fit(&call.name, &args).cloned() else { return Ok(()) };
        let round = self.machine.rounds();
        let started_at = Timestamp::now();
        let key = format!("{}:{}", self.cx.shared.run, call.id);
        let announced = self
            .record(Fact::CallStarted {
                call_id: call.id.clone(),
                name: call.name.clone(),
                round,
                args: args.clone(),
                effect: work.spec().effect,
                key: key.clone(),
                work: work.kind(),
                at: started_at,
            })
            .await?;
        self.site(&call.id);
        let Some(site) = self.calls.get_mut(&call.id) else { return Ok(()) };
        site.started_at = Some(started_at);
        let permit = match site.scope.pass::<RunCall>(gate, &announced) {
            Ok(permit) => permit,
            Err(stop) => {
                let reason = stop.reason().clone();
                drop(stop);
                return self.not_started(call, (reason, gate), entry).await;
            }
        };
        let tool = match work {
            Callable::Body(tool) => tool,
            Callable::Child(child) => {
                let call = call.clone();
                return self.start_child(Begin { permit, child, call, args, entry, started_at }).await;
            }
        };
        let host = RunHost::new(&self.cx.shared, permit.scope(), &site.board, &self.cx.def);
        let earlier = match self.cx.def.answer {
            AnswerOf::TheCall => self.machine.history_now().earlier(),
            AnswerOf::TheModel => Vec::new(),
        };
        let site_of = CallSite { id: call.id.clone(), name: call.name.clone(), key, named, earlier };
        let job = Job {
            cx: ToolContext::new(permit.scope().clone(), site_of, Arc::new(host)),
            permit,
            stop: site.stop.clone(),
            tool,
            args,
            board: Arc::clone(&site.board),
            limits: Arc::clone(&self.cx.def.limits),
            run: self.cx.scope.clone(),
            started_at,
        };
        self.supervise(job, call.id.clone());
        Ok(())
    }

    fn supervise(&self, job: Job, call_id: CallId) {
        let ended = Arc::clone(&self.cx.shared);
        let cleaned = Arc::clone(&self.cx.shared);
        let late = Arc::clone(&self.cx.shared);
        let label = format!("call {call_id}");
        let span = spans::tool_call(job.cx.name(), call_id.as_str());
        let supervised = executor::supervise(
            job,
            move |ending| ended.post(RunMessage::CallEnded { call_id, ending }),
            move |call_id, cleanups| {
                cleaned.post(RunMessage::Cleaned { call_id, cleanups, processes: Vec::new() })
            },
            move |call_id, what| late.post(RunMessage::Late { call_id, what }),
        );
        // Dropping the task's handle lets it go on; its ending comes by mail.
        drop(self.cx.scope.spawn(label, supervised.instrument(span)));
    }

    /// The call's own scope, made when the call is first looked at, so that it can be stopped alone from then on.
    pub(super) fn site(&mut self, id: &CallId) -> &CallScope {
        self.calls.entry(id.clone()).or_insert_with(|| {
            let (scope, stop) = self.cx.scope.child();
            self.cx.shared.name_call(id.clone(), stop.clone());
            CallScope { scope, stop, board: Arc::new(CallBoard::default()), started_at: None }
        })
    }

    async fn not_started(
        &mut self,
        call: &ToolCall,
        (reason, gate): (Reason, SafePoints),
        entry: Entry,
    ) -> Result<(), LogFailure> {
        let by = match self.cx.scope.demand() {
            Some(demand) if demand.mode == Mode::Now || self.call_is_silent(&call.id) => {
                self.observe(Some(gate)).await?;
                StopSource::Run
            }
            _ => StopSource::Call,
        };
        let Some(of) = self.machine.find(&call.id) else { return Ok(()) };
        let ending = self.unbegun(of, entry, (reason, by));
        self.end_call(call, ending).await
    }

    /// Whether nobody asked for a stop of this call alone.
    fn call_is_silent(&self, id: &CallId) -> bool {
        let run = self.cx.scope.requests().len();
        self.calls.get(id).is_none_or(|site| site.scope.requests().len() == run)
    }

    /// What the peer calls the work is kept: a later attempt asks for that, and begins nothing twice (S7.2).
    pub(super) async fn call_named(&mut self, call_id: CallId, task: String) -> Result<(), LogFailure> {
        if self.machine.running_call(&call_id).is_some() {
            self.record(Fact::RemoteTaskNamed { call_id, task }).await?;
        }
        Ok(())
    }

    pub(super) async fn call_ended(&mut self, id: CallId, ending: CallEnd) -> Result<(), LogFailure> {
        let Some(call) = self.machine.running_call(&id).cloned() else { return Ok(()) };
        let ending = ending.without(&self.cx.def.secrets);
        self.child_ended(&id, &ending);
        self.note_rest(&id, &ending);
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
            fatal.then(|| (super::failure::of(&call, &ending, self.cx.def.answer), ending.hint.clone()));
        if ending.stopped_by == Some(StopSource::Run) {
            self.observe(None).await?;
        }
        self.end_call(&call, ending).await?;
        if let Some((message, hint)) = failure {
            self.fail("tool", message, hint);
        }
        Ok(())
    }

    /// The one place where a call's end is recorded.
    pub(super) async fn end_call(&mut self, call: &ToolCall, ending: CallEnd) -> Result<(), LogFailure> {
        let (report, result, extent) = ending.into_parts(call, self.machine.rounds());
        let given = answer_given(&report, &result);
        let ended = Fact::CallEnded { report: report.clone(), result, extent };
        let taken_back = self.take_back_of(&call.id).await;
        if let Some(site) = self.calls.remove(&call.id) {
            self.over(&site, given);
        }
        let recorded = match taken_back {
            Ok(()) => self.record(ended).await.map(drop),
            Err(broken) => Err(broken),
        };
        if let Err(broken) = recorded {
            self.recorder.keep_unrecorded([report]);
            return Err(broken);
        }
        self.tell(|hooks| hooks.after_call(&report));
        Ok(())
    }

    /// The same for calls of which nothing runs: all of it is recorded in one, so that a stop does not wait for each (S12.5).
    pub(super) async fn end_unbegun(&mut self, ended: Vec<Unbegun>) -> Result<(), LogFailure> {
        if ended.is_empty() {
            return Ok(());
        }
        let (mut facts, mut reports) = (Vec::new(), Vec::new());
        for Unbegun { call, ending, asked } in ended {
            let withdrawn = asked.into_iter().map(|id| self.closed(id, &call.id, Closing::Withdrawn));
            facts.extend(withdrawn);
            let (report, result, extent) = ending.into_parts(&call, self.machine.rounds());
            facts.push(Fact::CallEnded { report: report.clone(), result, extent });
            reports.push(report);
            if let Some(site) = self.calls.remove(&call.id) {
                self.over(&site, LastWords::default());
            }
        }
        if let Err(broken) = self.recorder.record_all(&mut self.machine, &self.cx, facts).await {
            self.recorder.keep_unrecorded(reports);
            return Err(broken);
        }
        reports.iter().for_each(|report| self.tell(|hooks| hooks.after_call(report)));
        Ok(())
    }

    /// A call is over: what it said of the run's answer is the run's.
    fn over(&mut self, site: &CallScope, given: LastWords) {
        site.stop.settle();
        self.model.said = match (self.cx.def.answer, site.board.take_said()) {
            (AnswerOf::TheCall, Some(said)) => self.cx.def.secrets.clean_text(said).into(),
            // It is what the call came to.
            (AnswerOf::TheCall, None) => given,
            (AnswerOf::TheModel, _) => LastWords::default(),
        };
    }

    /// The rows of all calls, in their order. Where the log broke, what it did not take is told too: an end that was
    /// seen, as it was, and a call of which none was seen as left running (S3.4, S3.7).
    pub(super) fn call_rows(&self) -> Vec<CallReport> {
        let mut rows = self.machine.call_reports();
        for open in self.machine.open_calls() {
            let seen = self.recorder.unrecorded().iter().find(|row| row.call_id == open.call.id);
            let status = match open.step {
                CallState::Running => CallStatus::LeftRunning,
                CallState::EffectUnknown => CallStatus::Stopped,
                _ if open.is_in_doubt() => CallStatus::Stopped,
                CallState::Requested
                | CallState::Approved(_)
                | CallState::Ready { .. }
                | CallState::Resuming { .. } => CallStatus::NotStarted,
                // It waits for a person, and is told as that.
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
        ending.started_at = self.calls.get(&open.call.id).and_then(|site| site.started_at);
        let (report, ..) = ending.into_parts(&open.call, self.machine.rounds());
        CallReport { ended_at: report.ended_at.filter(|_| status == CallStatus::NotStarted), ..report }
    }

    /// Ends what runs because the run fails: each call by its own contract.
    pub(super) fn end_running_calls(&self) {
        let reason = run_failed();
        for site in self.calls.values() {
            site.stop.stop(StopRequest::now().with_reason(reason.clone()));
        }
    }
}

/// What a call came to, if it came to its end: shared, since it may be large.
fn answer_given(report: &CallReport, result: &CallResult) -> LastWords {
    let given = (report.status == CallStatus::Completed).then(|| Arc::clone(&result.text));
    given.map(LastWords::from).unwrap_or_default()
}

/// Why the calls of a run that fails end.
pub(super) fn run_failed() -> Reason {
    Reason::new(Code::PARENT).with_actor(Actor::Engine).with_text("the run failed")
}

/// Whether a stop is that of a run above which failed, and nobody's wish.
pub(super) fn is_of_a_failure(reason: &Reason) -> bool {
    *reason.code() == Code::PARENT && *reason.actor() == Actor::Engine
}

/// Whether the call's run, if it has one, was begun before.
pub(super) fn entry_of(call: &Call) -> Entry {
    match (&call.step, call.has_run()) {
        (_, false) => Entry::Anew,
        (CallState::Ready { questions, .. } | CallState::Resuming { questions, .. }, true) => {
            Entry::Again(*questions)
        }
        (_, true) => Entry::Again(ApprovalReuse::Keep),
    }
}
