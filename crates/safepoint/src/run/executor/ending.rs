//! The one place where a call's end is decided: a stop, a failure and a result are kept apart here (S4.5).

use std::time::Duration;

use jiff::Timestamp;
use safepoint_scope::{Failure, Halt, Reason, SafePoints, Scope, TaskEnd};
use serde_json::Value;

use super::{effect_of, failed, output};
use crate::{
    contract::tool::{EffectClass, FullOutput, Output, ToolResult},
    definition::secret::Secrets,
    sync::clock,
    value::{
        event::OutputExtent,
        history::note,
        ids::CallId,
        message::{CallResult, Part, ResultStatus, ToolCall},
        receipt::{
            CallReport, CallStatus, ChildReport, CleanupReport, ProcessReport, ReasonReport, RemoteReport,
            RuledReport, SideEffect, StopSource,
        },
    },
};

mod hooked;

use hooked::HookedEnd;

/// The end of a call, before it is recorded.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) status: CallStatus,
    pub(crate) text: String,
    parts: Vec<Part>,
    structured: Option<Box<Value>>,
    pub(crate) effect: SideEffect,
    pub(crate) reason: Option<Reason>,
    pub(crate) stopped_by: Option<StopSource>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) cleanups: Vec<CleanupReport>,
    pub(crate) processes: Vec<ProcessReport>,
    /// What policy decided about its questions.
    pub(super) ruled: Vec<RuledReport>,
    pub(crate) extent: OutputExtent,
    /// What to do about a failure, if the failure says so.
    pub(crate) hint: Option<String>,
    /// The run that was the call's work, if it was one.
    pub(crate) child: Option<ChildReport>,
    /// The remote agent that did the work, if one did.
    pub(crate) remote: Option<Box<RemoteReport>>,
    /// The safe points at which the run's stop ended it.
    pub(crate) fired: Option<SafePoints>,
    /// Whether its failure reported that it left no effect.
    is_without_effect: bool,
    /// Whether its body continues beyond its time limit.
    is_body_alive: bool,
    /// What hooks did to it.
    pub(crate) hooked: HookedEnd,
}

impl CallEnd {
    /// Removes secrets from its texts: text that arrived in pieces, or in a failure, is complete only here.
    pub(crate) fn clean(&mut self, secrets: &Secrets) {
        if !secrets.is_empty() {
            self.text = secrets.clean_text(std::mem::take(&mut self.text));
            self.hint = self.hint.take().map(|hint| secrets.clean_text(hint));
            if let Some(value) = &mut self.structured {
                secrets.clean_value(value);
            }
            secrets.clean_parts(&mut self.parts);
        }
    }

    /// Adds what a person tells the model, who changed the call. A wire that takes the value alone would leave it out.
    pub(crate) fn add(&mut self, said: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text = format!("{}{gap}{said}", self.text);
        self.structured = None;
    }

    pub(crate) fn new(status: CallStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            parts: Vec::new(),
            structured: None,
            effect: SideEffect::None,
            reason: None,
            stopped_by: None,
            started_at: None,
            cleanups: Vec::new(),
            processes: Vec::new(),
            ruled: Vec::new(),
            extent: OutputExtent::All,
            hint: None,
            child: None,
            remote: None,
            fired: None,
            is_without_effect: false,
            is_body_alive: false,
            hooked: HookedEnd::default(),
        }
    }

    /// The body returned. A result is a result, with or without a stop. Under a stop a failure proves nothing
    /// and becomes *stopped*; what the tool reports of its effect is kept.
    pub(super) fn returned(result: Result<ToolResult, TaskEnd>, stop: Option<Reason>) -> Self {
        match (result, stop) {
            (Ok(Ok(output)), _) => Self::new(CallStatus::Completed, "").holding(output),
            (Ok(Err(Halt::Stop(own))), None) => Self::stopped(Some(own.reason().clone())),
            (Ok(Err(Halt::Failed(failure))), None) => Self::failed(&failure),
            (Err(TaskEnd::Panicked(message)), None) => {
                Self::new(CallStatus::Failed, format!("error: the tool panicked: {message}"))
            }
            (Err(TaskEnd::Dropped), None) => {
                Self::new(CallStatus::Failed, "error: the tool's task was shut down before it ended")
            }
            (Ok(Err(Halt::Failed(failure))), Some(reason)) if failure.had_no_effect() => {
                Self { is_without_effect: true, ..Self::stopped(Some(reason)) }
            }
            (Ok(Err(Halt::Stop(_) | Halt::Failed(_))) | Err(_), Some(reason)) => Self::stopped(Some(reason)),
        }
    }

    /// Uses what the body returned or kept as what the model sees.
    fn holding(mut self, output: Output) -> Self {
        self.text = output.text;
        self.parts = output::bounded(output.parts, &mut self.text);
        self.structured = output.structured.map(Box::new);
        self.name_whole(output.whole);
        self
    }

    fn name_whole(&mut self, whole: Option<FullOutput>) {
        if let Some(FullOutput { bytes, file }) = whole {
            let file = file.map(|file| file.display().to_string());
            self.extent = OutputExtent::Truncated { bytes, file };
        }
    }

    fn failed(failure: &Failure) -> Self {
        if failure.is_by_time_limit() {
            return Self::new(CallStatus::TimedOut, failure.to_string());
        }
        let mut ending = Self::new(failed(failure), format!("error: {failure}"));
        if let Some(hint) = failure.hint() {
            ending.text.push_str(&format!("\nhint: {hint}"));
            ending.hint = Some(hint.to_owned());
        }
        ending.is_without_effect = failure.had_no_effect();
        ending
    }

    pub(super) fn stopped(reason: Option<Reason>) -> Self {
        Self { reason, stopped_by: Some(StopSource::Run), ..Self::new(CallStatus::Stopped, "") }
    }

    /// The task that ends it panicked: the end was not seen.
    pub(crate) fn unwatched() -> Self {
        let text = "error: the task that watches the call panicked";
        Self { effect: SideEffect::Unknown, ..Self::new(CallStatus::Failed, text) }
    }

    pub(super) fn left_running(reason: Option<Reason>) -> Self {
        Self { reason, stopped_by: Some(StopSource::Run), ..Self::new(CallStatus::LeftRunning, "") }
    }

    pub(super) fn timed_out(limit: Duration) -> Self {
        Self::new(CallStatus::TimedOut, format!("its limit of {limit:?} passed"))
    }

    /// The call is over for its caller, and its body could not be ended.
    pub(super) fn with_live_body(mut self) -> Self {
        self.is_body_alive = true;
        self
    }

    /// Sets whose stop it was: the run's outranks the call's own.
    pub(super) fn name_stop(&mut self, call: &Scope, (run, ends_with_it): (&Scope, bool)) {
        if self.stopped_by.is_some() {
            let by_run = run.is_stopping() || ends_with_it;
            self.stopped_by = Some(if by_run { StopSource::Run } else { StopSource::Call });
            if self.reason.is_none() {
                self.reason = call.reason();
            }
        }
    }

    /// Adds its processes and the remote agent's last report. A stop that had to use SIGKILL is reported as
    /// such.
    pub(super) fn name_rows(&mut self, (processes, remote): (Vec<ProcessReport>, Option<RemoteReport>)) {
        self.remote = remote.map(Box::new).or(self.remote.take());
        let forced = processes.iter().any(|process| process.signals.iter().any(|signal| signal == "SIGKILL"));
        if self.status == CallStatus::Stopped && forced {
            self.status = CallStatus::Killed;
        }
        self.processes = processes;
    }

    /// Adds what is known of the remote agent that did the work: what it has not confirmed is not reported as
    /// stopped (S10.3).
    pub(super) fn name_remote(&mut self, remote: Option<RemoteReport>) {
        if remote.as_ref().is_some_and(RemoteReport::may_go_on) {
            match self.status {
                CallStatus::Stopped | CallStatus::Killed => self.status = CallStatus::LeftRunning,
                CallStatus::TimedOut => self.is_body_alive = true,
                _ => {}
            }
            // The remote agent's name for the work is in the history too: a later reader can ask for it. An answer stays as
            // it came; the row says what it is worth.
            let is_answered = self.status == CallStatus::Completed;
            if let Some(known) = remote.as_ref().filter(|remote| remote.task.is_some() && !is_answered) {
                let parts = [self.text.as_str(), &known.label()].map(str::to_owned);
                self.text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
                self.text.push_str(note::MAY_CONTINUE);
            }
        }
        self.remote = remote.map(Box::new);
    }

    pub(crate) fn judge_effect(&mut self, class: EffectClass) {
        self.effect = effect_of(class, self.status, self.is_without_effect);
    }

    /// Sets what the model sees: the result, or the output so far and a note about what is known.
    pub(super) fn finish(&mut self, emitted: Output) {
        if self.note().is_some() {
            self.name_whole(emitted.whole);
        }
        self.finish_text(&emitted.text);
    }

    /// Like [`finish`](Self::finish), for work that emits only text.
    pub(crate) fn finish_text(&mut self, partial: &str) {
        let Some(note) = self.note() else { return };
        let mut text = String::new();
        for part in [partial.trim_end(), self.text.as_str(), note] {
            if !part.is_empty() && !text.is_empty() {
                text.push('\n');
            }
            text.push_str(part);
        }
        self.text = text;
    }

    /// The note for a call without a result.
    fn note(&self) -> Option<&'static str> {
        let stopped = matches!(self.status, CallStatus::Stopped | CallStatus::Killed);
        Some(match (self.status, self.stopped_by, self.effect) {
            (_, _, SideEffect::None) if stopped && self.child.is_some() => note::CHILD_STOPPED_HARMLESS,
            (_, _, SideEffect::Done) if stopped && self.child.is_some() => note::CHILD_STOPPED,
            (CallStatus::Stopped | CallStatus::Killed, Some(StopSource::Call), _) => note::STOPPED_ALONE,
            (CallStatus::Stopped | CallStatus::Killed, _, SideEffect::None) => note::STOPPED_HARMLESS,
            (CallStatus::Stopped | CallStatus::Killed, _, SideEffect::Done | SideEffect::Unknown) => {
                note::STOPPED_UNKNOWN
            }
            (CallStatus::TimedOut, _, _) if self.is_body_alive => note::TIMED_OUT_STILL_RUNNING,
            (CallStatus::TimedOut, _, _) => note::TIMED_OUT,
            (CallStatus::LeftRunning, _, _) => note::STILL_RUNNING,
            (CallStatus::NotStarted, _, _) => note::NOT_STARTED,
            (CallStatus::Denied, _, _) if self.text.is_empty() => note::DENIED,
            (CallStatus::Expired, _, _) => note::EXPIRED,
            (
                CallStatus::Completed | CallStatus::Failed | CallStatus::Denied | CallStatus::Unreachable,
                _,
                _,
            ) => return None,
        })
    }

    pub(crate) fn is_within(&self, budget: usize) -> bool {
        self.text.len() <= budget
    }

    /// Shortens what is too long for the model and spills the rest to a file (S4.7). The wait for that is
    /// bounded, also by the clean-up cap while the run is being stopped (S2.8).
    pub(crate) async fn fit(&mut self, budget: usize, bound: Duration, run: &Scope) {
        if self.text.len() > budget {
            let cap = run.demand().filter(|_| run.is_stopping()).map(|demand| demand.cleanup_cap);
            let patience = cap.map_or(bound, |cap| cap.min(bound));
            self.structured = None;
            let whole = std::mem::take(&mut self.text);
            if self.extent == OutputExtent::All {
                (self.text, self.extent) = Box::pin(output::shorten(whole, budget, patience, run)).await;
            } else {
                // The tool has already named where the whole output is.
                self.text = output::narrowed(&whole, budget);
            }
        }
    }

    /// The rows and the result that are recorded.
    pub(crate) fn into_parts(self, call: &ToolCall, round: u32) -> (CallReport, CallResult, OutputExtent) {
        let verdict =
            if self.status == CallStatus::Completed { ResultStatus::Ok } else { ResultStatus::Error };
        let report = CallReport {
            call_id: call.id.clone(),
            name: call.name.clone(),
            round,
            status: self.status,
            effect: self.effect,
            started_at: self.started_at,
            ended_at: Some(clock::now()),
            reason: self.reason.as_ref().map(ReasonReport::from),
            stopped_by: self.stopped_by,
            processes: self.processes,
            cleanups: self.cleanups,
            ruled: self.ruled,
            child: self.child,
            remote: self.remote,
        };
        let plain = CallResult::of_text(call.id.clone(), &call.name, self.text, verdict);
        let result = CallResult { parts: self.parts, structured: self.structured, ..plain };
        (report, result, self.extent)
    }
}

/// The end of a call whose body never began.
pub(crate) fn not_begun(
    status: CallStatus,
    text: impl Into<String>,
    stop: Option<(Reason, StopSource)>,
) -> CallEnd {
    let (reason, stopped_by) = stop.unzip();
    let mut ending = CallEnd { reason, stopped_by, ..CallEnd::new(status, text) };
    ending.finish_text("");
    ending
}

/// The end of a call whose work is a run.
pub(crate) fn ended_as_run(
    status: CallStatus,
    text: String,
    effect: SideEffect,
    child: ChildReport,
) -> CallEnd {
    CallEnd { effect, child: Some(child), ..CallEnd::new(status, text) }
}

/// The end of a call that was running when its process ended, and what a person says about it (S7.3).
pub(crate) fn end_unknown(said: impl Into<String>, unseen: Option<RemoteReport>) -> CallEnd {
    let said: String = said.into();
    let between = if said.is_empty() { "" } else { "\n" };
    let mut ending = CallEnd::new(CallStatus::Stopped, format!("{said}{between}{}", note::CUT_OFF));
    ending.effect = SideEffect::Unknown;
    ending.name_remote(unseen);
    ending
}

/// The end of a call that may have run earlier, when a stop keeps it from resuming.
pub(crate) fn stopped_unknown(stop: (Reason, StopSource), unseen: Option<RemoteReport>) -> CallEnd {
    CallEnd { reason: Some(stop.0), stopped_by: Some(stop.1), ..end_unknown("", unseen) }
}

/// The result of a person who says that the call was already done.
pub(crate) fn done_before(text: String) -> CallEnd {
    CallEnd { effect: SideEffect::Done, ..answered(text) }
}

/// The result of a person who answered instead of the tool.
pub(crate) fn answered(text: String) -> CallEnd {
    CallEnd::new(CallStatus::Completed, text)
}

/// Names a late arrival.
pub(crate) fn late(call_id: &CallId, what: &str) -> String {
    format!("call {call_id} {what}")
}

#[cfg(test)]
mod tests;
