//! What is running in a turn: the model, the calls, and what a pending stop waits for.
//!
//! **Invariants**: a fold of events; it reads no clock and no terminal.

use std::time::{Duration, Instant};

use safepoint::{
    approval::{ApprovalKind, Decision},
    event::{EventKind, Fact, Resolution},
    ids::CallId,
    message::ProviderPart,
    receipt::RequestReport,
};

use crate::render::{call::in_words, edit, screen::Weight};

/// What is known of a turn.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// What the model does, and since when.
    pub(crate) model: Option<(&'static str, Instant)>,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: Option<PendingStop>,
    /// How the turn ended, and when; what it started may still be running.
    pub(crate) settled: Option<(&'static str, Instant)>,
}

/// A call that runs, or that waits for an approval.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) args: String,
    pub(crate) state: CallState,
    pub(crate) since: Instant,
    /// The end of what it has reported.
    pub(crate) progress: String,
}

/// Exhaustive: it waits for an approval, waits its turn among the calls, or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    Asked,
    Allowed,
    Runs,
}

/// A requested stop. Exhaustive: at a safe point, forced at this moment; or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingStop {
    AtSafePoint(Option<Instant>),
    Now,
}

const MODEL: &str = "the model";

impl Call {
    /// More of its output: the end of it is kept.
    fn report(&mut self, text: &str) {
        const KEPT: usize = 16 << 10;
        self.progress.push_str(text);
        let over = self.progress.len().saturating_sub(KEPT);
        let from = (over..).find(|at| self.progress.is_char_boundary(*at)).unwrap_or(over);
        self.progress.drain(..from);
    }
}

impl Activity {
    pub(crate) fn on(&mut self, kind: &EventKind, now: Instant) {
        match kind {
            EventKind::Fact(fact) => self.fact(fact, now),
            EventKind::Retrying { .. } | EventKind::FailedOver { .. } => {
                self.model = Some(("the model (waits to try again)", now));
            }
            EventKind::Waiting { .. } => self.model = Some(("the model (waits for its turn)", now)),
            EventKind::Provider(block) => {
                if let Some((model, _)) = &mut self.model {
                    let runs = matches!(block.part, ProviderPart::Use { result: None, .. });
                    *model = if runs { "the model (its provider runs a tool)" } else { MODEL };
                }
            }
            EventKind::Text(_)
            | EventKind::Reasoning(_)
            | EventKind::CallBegun(_)
            | EventKind::CallDelta { .. } => {
                if let Some((model, _)) = &mut self.model {
                    *model = MODEL;
                }
            }
            EventKind::Progress { call_id, text } => {
                // Of an edit it is the diff, which is shown as a whole.
                let mut others = self.calls.iter_mut().filter(|call| !edit::is_edit(&call.name));
                if let Some(call) = others.find(|call| call.id == *call_id) {
                    call.report(text);
                }
            }
            _ => {}
        }
    }

    /// Whether this call, which runs, edits a file.
    pub(crate) fn edits(&self, id: &CallId) -> bool {
        self.calls.iter().any(|call| call.id == *id && edit::is_edit(&call.name))
    }

    fn fact(&mut self, fact: &Fact, now: Instant) {
        match fact {
            Fact::ModelStarted { .. } => self.model = Some((MODEL, now)),
            Fact::SummaryStarted { .. } => self.model = Some(("a summary of the oldest rounds", now)),
            Fact::ModelEnded { .. } | Fact::ModelTooLong { .. } | Fact::SummaryEnded { .. } => {
                self.model = None
            }
            Fact::CallStarted { call_id, name, args, .. } => {
                self.call((call_id, name, args), CallState::Runs, now);
            }
            Fact::ApprovalRequested(asked) => {
                // A running call asks in the name of what it would do, behind a slash.
                let name = match asked.question {
                    ApprovalKind::DuringCall => {
                        asked.tool.rsplit_once('/').map_or(&*asked.tool, |(name, _)| name)
                    }
                    ApprovalKind::BeforeCall | ApprovalKind::AfterUnknownEnd => &asked.tool,
                };
                self.call((&asked.call_id, name, &asked.args), CallState::Asked, now);
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
            Fact::StopEscalated => self.stop = Some(PendingStop::Now),
            Fact::Settled { receipt, .. } => self.settle(receipt.ending.as_str(), now),
            _ => {}
        }
    }

    /// The turn has ended; the first end counts.
    pub(crate) fn settle(&mut self, ending: &'static str, now: Instant) {
        self.model = None;
        self.calls.clear();
        self.settled.get_or_insert((ending, now));
    }

    /// Requests join: the earlier deadline counts, and now is now.
    fn stopping(&mut self, request: &RequestReport, now: Instant) {
        let within = request.within_ms.map(|within| now + Duration::from_millis(within));
        self.stop = Some(match (self.stop, request.mode.as_str()) {
            (Some(PendingStop::Now), _) | (_, "now") => PendingStop::Now,
            (Some(PendingStop::AtSafePoint(before)), _) => {
                PendingStop::AtSafePoint(before.into_iter().chain(within).min())
            }
            (None, _) => PendingStop::AtSafePoint(within),
        });
    }

    fn call(
        &mut self,
        (id, name, args): (&CallId, &str, &serde_json::Value),
        state: CallState,
        since: Instant,
    ) {
        self.calls.retain(|other| other.id != *id);
        let (id, name, args) = (id.clone(), name.to_owned(), in_words(name, args));
        self.calls.push(Call { id, name, args, state, since, progress: String::new() });
    }

    /// Whether the turn has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.settled.is_none()
    }

    /// The live line, with how much it matters. `alive` is what still runs of a turn that has ended.
    pub(crate) fn line(&self, alive: &[String], now: Instant) -> Option<(String, Weight)> {
        if let Some((ending, since)) = self.settled {
            let text = format!("{ending}; waiting for {}{}", alive.join(", "), after(since, now));
            return (!alive.is_empty()).then_some((text, Weight::Heavy));
        }
        if let Some(text) = self.stop_line(now, "Ctrl-C") {
            return Some((text, Weight::Heavy));
        }
        let running = self.running(now);
        (!running.is_empty()).then_some((running, Weight::Light))
    }

    /// What a requested stop waits for, and when it is forced; `key` forces it earlier.
    pub(crate) fn stop_line(&self, now: Instant, key: &str) -> Option<String> {
        let waits = self.waits(now);
        Some(match self.stop.filter(|_| self.is_running())? {
            PendingStop::Now => format!("Stopping now{waits}"),
            PendingStop::AtSafePoint(None) => format!("Stopping at the next safe point{waits}"),
            PendingStop::AtSafePoint(Some(deadline)) => {
                let left = deadline.saturating_duration_since(now).as_secs_f64().ceil();
                format!("Stopping{waits}; forced in {left:.0} s, or press {key}")
            }
        })
    }

    /// `: waiting for` what is running; nothing if that is nothing.
    pub(crate) fn waits(&self, now: Instant) -> String {
        let running = self.running(now);
        if running.is_empty() { String::new() } else { format!(": waiting for {running}") }
    }

    /// What is running, and for how long.
    fn running(&self, now: Instant) -> String {
        const SHOWN: usize = 3;
        let model = self.model.map(|(what, since)| format!("{what}{}", after(since, now)));
        let calls = self.calls.iter().filter(|call| call.state != CallState::Allowed).map(|call| {
            let what = if call.state == CallState::Asked { " (waits for an answer)" } else { "" };
            format!("{}{what}{}", call.name, after(call.since, now))
        });
        let mut all: Vec<String> = model.into_iter().chain(calls).collect();
        let more = all.len().saturating_sub(SHOWN);
        all.truncate(SHOWN);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all.join(", ")
    }
}

/// ` 12 s`; nothing in the first second.
fn after(since: Instant, now: Instant) -> String {
    match now.saturating_duration_since(since).as_secs() {
        0 => String::new(),
        _ => format!(" {}", elapsed(since, now)),
    }
}

/// `0 s`, `12 s`, `3 min 5 s`.
pub(crate) fn elapsed(since: Instant, now: Instant) -> String {
    lasted(now.saturating_duration_since(since))
}

/// The same of a time that is known.
pub(crate) fn lasted(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use safepoint::{receipt::ReasonReport, tool::EffectClass};

    use super::*;

    fn asked(mode: &str, within_ms: Option<u64>) -> Fact {
        let reason = ReasonReport::from(&safepoint::Reason::user(""));
        let request = serde_json::json!({
            "seq": 0, "at": jiff::Timestamp::UNIX_EPOCH, "reason": reason, "mode": mode, "reach": "tree",
            "within_ms": within_ms, "asked": "first",
        });
        Fact::StopRequested(serde_json::from_value(request).unwrap())
    }

    fn started(name: &str) -> Fact {
        Fact::CallStarted {
            call_id: CallId::from(name),
            name: name.to_owned(),
            round: 1,
            args: serde_json::Value::Null.into(),
            effect: EffectClass::ReadOnly,
            key: String::new(),
            work: safepoint::receipt::CallKind::Tool,
            at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn line(status: &Activity, now: Instant) -> String {
        status.line(&[], now).map(|(text, _)| text).unwrap_or_default()
    }

    /// S1.4: requests join: the earlier deadline counts, and now is now.
    #[test]
    fn the_earlier_deadline_is_counted_down_and_now_is_now() {
        let (mut status, now) = (Activity::default(), Instant::now());
        status.fact(&started("shell"), now);
        assert_eq!(line(&status, now + Duration::from_secs(61)), "shell 1 min 1 s");
        status.fact(&asked("after-model", None), now);
        assert_eq!(line(&status, now), "Stopping at the next safe point: waiting for shell");
        status.fact(&asked("after-model", Some(5000)), now);
        status.fact(&asked("after-model", Some(9000)), now);
        let later = now + Duration::from_secs(2);
        assert_eq!(line(&status, later), "Stopping: waiting for shell 2 s; forced in 3 s, or press Ctrl-C");
        status.fact(&asked("now", None), now);
        status.fact(&asked("after-model", Some(1000)), now);
        assert_eq!(line(&status, later), "Stopping now: waiting for shell 2 s");
    }

    /// A round of many calls is still one line.
    #[test]
    fn many_calls_are_counted() {
        let (mut status, now) = (Activity::default(), Instant::now());
        for name in ["a", "b", "c", "d", "e"] {
            status.fact(&started(name), now);
        }
        assert_eq!(line(&status, now), "a, b, c, 2 more");
    }
}
