//! What is running, in one line: the model, the calls, and what a pending stop waits for.
//!
//! **Invariants**: a fold of events; it reads no clock and no terminal.

use std::time::{Duration, Instant};

use safepoint::{
    event::{Event, EventKind, Fact},
    ids::CallId,
};

use crate::render::screen::Weight;

/// What is known of a turn.
#[derive(Debug, Default)]
pub(crate) struct Status {
    model: Option<(Model, Instant)>,
    calls: Vec<Call>,
    stop: Option<Stop>,
    end: Option<(&'static str, Instant)>,
}

/// What the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Streams,
    Summarises,
    Retries,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    name: String,
    state: CallState,
    since: Instant,
}

/// Whether a call runs or a person is asked about it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Asked,
    Runs,
}

/// A stop that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// At a safe point, and at the latest then.
    AtSafePoint(Option<Instant>),
    Now,
}

impl Status {
    pub(crate) fn on(&mut self, event: &Event, now: Instant) {
        match &event.kind {
            EventKind::Fact(fact) => self.fact(fact, now),
            EventKind::Retrying { .. } | EventKind::FailedOver { .. } => {
                self.model = Some((Model::Retries, now))
            }
            EventKind::Text(_) | EventKind::Reasoning(_) | EventKind::CallBegun(_) => {
                if let Some((model, _)) = &mut self.model {
                    *model = Model::Streams;
                }
            }
            _ => {}
        }
    }

    fn fact(&mut self, fact: &Fact, now: Instant) {
        match fact {
            Fact::ModelStarted { .. } => self.model = Some((Model::Streams, now)),
            Fact::SummaryStarted { .. } => self.model = Some((Model::Summarises, now)),
            Fact::ModelEnded { .. } | Fact::SummaryEnded { .. } => self.model = None,
            Fact::CallStarted { call_id, name, .. } => self.call(call_id, name, CallState::Runs, now),
            Fact::ApprovalRequested(asked) => self.call(&asked.call_id, &asked.tool, CallState::Asked, now),
            Fact::ApprovalResolved { call_id, .. } => self.calls.retain(|call| call.id != *call_id),
            Fact::CallEnded { report, .. } => self.calls.retain(|call| call.id != report.call_id),
            Fact::StopRequested(request) => {
                let within = request.within_ms.map(|within| now + Duration::from_millis(within));
                self.stop = Some(match (self.stop, request.mode.as_str()) {
                    (Some(Stop::Now), _) | (_, "now") => Stop::Now,
                    (Some(Stop::AtSafePoint(before)), _) => {
                        Stop::AtSafePoint(before.into_iter().chain(within).min())
                    }
                    (None, _) => Stop::AtSafePoint(within),
                });
            }
            Fact::StopEscalated => self.stop = Some(Stop::Now),
            Fact::Settled { receipt, .. } => {
                self.model = None;
                self.calls.clear();
                self.end = Some((receipt.ending.as_str(), now));
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &CallId, name: &str, state: CallState, since: Instant) {
        self.calls.retain(|call| call.id != *id);
        self.calls.push(Call { id: id.clone(), name: name.to_owned(), state, since });
    }

    /// The line, with how much it matters. `alive` is what still lives of a run that has ended.
    pub(crate) fn line(&self, alive: &[String], now: Instant) -> Option<(String, Weight)> {
        if let Some((ending, since)) = self.end {
            let text =
                format!("{ending}; waits for {} to end{}", alive.join(", "), elapsed(since, now, QUIET));
            return (!alive.is_empty()).then_some((text, Weight::Heavy));
        }
        let running = self.running(now);
        let Some(stop) = self.stop else {
            return (!running.is_empty()).then_some((running, Weight::Light));
        };
        let waits = if running.is_empty() { String::new() } else { format!(": waiting for {running}") };
        let text = match stop {
            Stop::Now => format!("Stopping now{waits}"),
            Stop::AtSafePoint(None) => format!("Stopping at the next safe point{waits}"),
            Stop::AtSafePoint(Some(deadline)) => {
                let left = deadline.saturating_duration_since(now).as_secs_f64().ceil();
                format!("Stopping{waits}; forced in {left:.0} s, or press Ctrl-C")
            }
        };
        Some((text, Weight::Heavy))
    }

    /// What runs, with how long it has.
    pub(crate) fn running(&self, now: Instant) -> String {
        const SHOWN: usize = 3;
        let model = self.model.map(|(model, since)| {
            let what = match model {
                Model::Streams => "the model",
                Model::Summarises => "a summary of the oldest rounds",
                Model::Retries => "the model (waits to try again)",
            };
            format!("{what}{}", elapsed(since, now, Duration::ZERO))
        });
        let calls = self.calls.iter().map(|call| {
            let what = if call.state == CallState::Asked { " (waits for an answer)" } else { "" };
            format!("{}{what}{}", call.name, elapsed(call.since, now, Duration::ZERO))
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

/// A run that has just ended is given a moment before its remains are counted.
const QUIET: Duration = Duration::from_secs(1);

/// ` 12 s`, in whole seconds; nothing for less than `least`.
fn elapsed(since: Instant, now: Instant, least: Duration) -> String {
    let elapsed = now.saturating_duration_since(since);
    if elapsed < least.max(QUIET) {
        return String::new();
    }
    match elapsed.as_secs() {
        seconds if seconds < 60 => format!(" {seconds} s"),
        seconds => format!(" {} min {} s", seconds / 60, seconds % 60),
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
            args: serde_json::Value::Null,
            effect: EffectClass::ReadOnly,
            key: String::new(),
            work: safepoint::receipt::CallKind::Tool,
            at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn line(status: &Status, now: Instant) -> String {
        status.line(&[], now).map(|(text, _)| text).unwrap_or_default()
    }

    /// S1.4: requests join: the earlier deadline counts, and now is now.
    #[test]
    fn the_earlier_deadline_is_counted_down_and_now_is_now() {
        let (mut status, now) = (Status::default(), Instant::now());
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
        let (mut status, now) = (Status::default(), Instant::now());
        for name in ["a", "b", "c", "d", "e"] {
            status.fact(&started(name), now);
        }
        assert_eq!(line(&status, now), "a, b, c, 2 more");
    }
}
