//! The running turn: what the model and the calls do, since when, and what a stop waits for.
//!
//! **Invariants**: a fold of events; it reads no clock.

use std::time::{Duration, Instant};

use safepoint::{
    approval::Decision,
    event::{EventKind, Fact, Resolution},
    ids::CallId,
    receipt::RequestReport,
};

/// The running turn.
#[derive(Debug)]
pub(crate) struct Work {
    model: Option<Instant>,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: Option<Stop>,
    pub(crate) stage: Stage,
}

/// Exhaustive: the turn is running, or settled and not yet quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Works,
    /// Settled; what it started may be alive.
    Settled(Instant),
}

/// A call that runs, or that a person is asked about.
#[derive(Debug)]
pub(crate) struct Call {
    id: CallId,
    pub(crate) name: String,
    pub(crate) args: String,
    pub(crate) state: CallState,
    since: Instant,
    /// Its last progress message.
    pub(crate) progress: String,
}

/// Exhaustive: it waits for an answer, for its turn among the calls, or it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    Asked,
    Allowed,
    Runs,
}

/// A stop that was asked. Exhaustive: at a safe point, at the latest then; or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    AtSafePoint(Option<Instant>),
    Now,
}

impl Work {
    pub(crate) fn new() -> Self {
        Self { model: None, calls: Vec::new(), stop: None, stage: Stage::Works }
    }

    pub(crate) fn on(&mut self, kind: &EventKind, now: Instant) {
        match kind {
            EventKind::Fact(fact) => self.fact(fact, now),
            EventKind::Progress { call_id, text } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == *call_id) {
                    call.progress.clone_from(text);
                }
            }
            _ => {}
        }
    }

    fn fact(&mut self, fact: &Fact, now: Instant) {
        match fact {
            Fact::ModelStarted { .. } => self.model = Some(now),
            Fact::ModelEnded { .. } => self.model = None,
            Fact::CallStarted { call_id, name, args, .. } => {
                let (id, name, args) = (call_id.clone(), name.clone(), brief(args));
                let state = CallState::Runs;
                self.call(Call { id, name, args, state, since: now, progress: String::new() });
            }
            Fact::ApprovalRequested(asked) => {
                let (id, name, args) = (asked.call_id.clone(), asked.tool.clone(), brief(&asked.args));
                let state = CallState::Asked;
                self.call(Call { id, name, args, state, since: now, progress: String::new() });
            }
            Fact::ApprovalResolved { call_id, answer, .. } => {
                let is_allowed = matches!(
                    answer,
                    Resolution::Decided(
                        Decision::Approve | Decision::ApproveAlways { .. } | Decision::ApproveWith { .. }
                    )
                );
                self.calls.retain(|call| is_allowed || call.id != *call_id);
                for call in self.calls.iter_mut().filter(|call| call.id == *call_id) {
                    call.state = CallState::Allowed;
                }
            }
            Fact::CallEnded { report, .. } => self.calls.retain(|call| call.id != report.call_id),
            Fact::StopRequested(request) => self.stopping(request, now),
            Fact::StopEscalated => self.stop = Some(Stop::Now),
            Fact::Settled { .. } => {
                self.model = None;
                self.calls.clear();
            }
            _ => {}
        }
    }

    /// Requests join: the earlier deadline counts, and now is now.
    fn stopping(&mut self, request: &RequestReport, now: Instant) {
        let within = request.within_ms.map(|within| now + Duration::from_millis(within));
        self.stop = Some(match (self.stop, request.mode.as_str()) {
            (Some(Stop::Now), _) | (_, "now") => Stop::Now,
            (Some(Stop::AtSafePoint(before)), _) => Stop::AtSafePoint(before.into_iter().chain(within).min()),
            (None, _) => Stop::AtSafePoint(within),
        });
    }

    fn call(&mut self, call: Call) {
        self.calls.retain(|other| other.id != call.id);
        self.calls.push(call);
    }

    /// What a stop waits for, in a few words.
    pub(crate) fn waits_for(&self) -> String {
        const SHOWN: usize = 3;
        let model = self.model.map(|_since| "the model's message");
        let running =
            self.calls.iter().filter(|call| call.state == CallState::Runs).map(|call| call.name.as_str());
        let mut names: Vec<&str> = model.into_iter().chain(running).collect();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        match (names.is_empty(), more) {
            (true, _) => "the turn to settle".to_owned(),
            (false, 0) => names.join(", "),
            (false, more) => format!("{} and {more} more", names.join(", ")),
        }
    }

    pub(crate) fn model(&self) -> Option<Instant> {
        self.model
    }
}

impl Call {
    pub(crate) fn elapsed(&self, now: Instant) -> String {
        elapsed(self.since, now)
    }
}

/// `0 s`, `12 s`, `3 min 5 s`.
pub(crate) fn elapsed(since: Instant, now: Instant) -> String {
    match now.saturating_duration_since(since).as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Arguments in one line: a single value alone, and for a call of an external agent its task.
pub(crate) fn brief(args: &serde_json::Value) -> String {
    if let (Some(task), true) = (args["task"].as_str(), args["conversation"].is_string()) {
        return brief(&serde_json::json!({ "task": task }));
    }
    let only = args.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    let text = match only {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => args.to_string(),
    };
    crate::output::plain(&text).replace(['\n', '\t'], " ")
}
