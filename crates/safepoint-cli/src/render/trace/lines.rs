//! Folds the lines of a journal, as a server lists them, into the steps that the journal itself is folded into.
//!
//! **Invariants**: every line becomes a step or the end of one; what a line does not say is in no step.

use std::collections::HashMap;

use jiff::Timestamp;
use safepoint::{
    Receipt, Usage,
    event::{Completion, Fact, Resolution},
    ids::{ApprovalId, CallId, Path, TurnId},
    raw::{JournalFact, JournalStep},
    receipt::{CallStatus, Ending, RequestReport, SideEffect},
    store::SessionRow,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    calls,
    facts::ending_tone,
    fold::{Moment, Open, TimelineBuilder},
    timeline::{Kind, Timeline, Tone},
};
use crate::render::{outcome_word::outcome, text::completion};

/// What has been read so far.
#[derive(Default)]
pub(crate) struct LineFold {
    builder: TimelineBuilder,
    /// The tool of each call, which is the agent's name where the call's work is a run.
    names: HashMap<(TurnId, String), String>,
}

impl LineFold {
    /// Takes the next line.
    pub(crate) fn take(&mut self, position: u64, at: Option<Timestamp>, line: &Value) {
        let Some(turn) = line["turn"].as_u64().map(TurnId::new) else {
            self.unknown(None, position, at, line);
            return;
        };
        let step = |what| JournalStep { position, at, what: Ok(what) };
        match word(line, "type") {
            "turn_started" => self.builder.take(step(JournalFact::Planned { turn, items: Vec::new() })),
            "turn_ended" => match outcome(word(line, "outcome"), Some(turn), None) {
                Some(fate) => {
                    self.account(turn, line);
                    self.builder.take(step(JournalFact::Ended { turn, fate }));
                }
                None => self.unknown(Some(turn), position, at, line),
            },
            "turn_quiet" => {
                let survivors = read(line, "survivors").unwrap_or_default();
                self.builder.take(step(JournalFact::Quiet { turn, survivors }));
            }
            _ => {
                let path: Path = read(line, "path").unwrap_or_default();
                match fact(line) {
                    Some(fact) => {
                        let (fact, grown) = (fact.into(), Vec::new());
                        self.builder.take(step(JournalFact::Fact { turn, path, fact, grown }));
                    }
                    None => self.of_run(&Moment { turn, path, position, at }, line),
                }
            }
        }
    }

    /// The story, once everything was taken; how the session stands is given.
    pub(crate) fn story(self, row: SessionRow, state: String) -> Timeline {
        Timeline { state, ..self.builder.story(row) }
    }

    /// A line of a run that says less than its fact.
    fn of_run(&mut self, moment: &Moment, line: &Value) {
        if let Some(call) = moment.path.calls().last() {
            let name = self.names.get(&(moment.turn, call.as_str().to_owned()));
            self.builder.lane(moment.turn, &moment.path, name.map(String::as_str));
        }
        match word(line, "type") {
            "run_started" => self.attempt(moment, line),
            "model_ended" | "model_too_long" => {
                self.exchange(moment, &Open::Model(moment.path.clone()), line)
            }
            "summary_ended" => self.exchange(moment, &Open::Summary(moment.path.clone()), line),
            "steer_delivered" => self.steers(moment, line),
            "call_started" => self.call_started(moment, line),
            "call_ended" => self.call_ended(moment, line),
            "approval_asked" => self.asked(moment, line),
            "settled" => self.settled(moment, line),
            _ => {
                let step = self.builder.step(Kind::Other, moment);
                step.title = word(line, "type").replace('_', " ");
                step.fields.extend(more(line));
            }
        }
    }

    fn attempt(&mut self, moment: &Moment, line: &Value) {
        self.builder.forget_open(&moment.path);
        let step = self.builder.begin_step(Open::Attempt(moment.path.clone()), Kind::Attempt, moment);
        step.title = format!("attempt {}", line["attempt"]);
        step.fields.extend(more(line));
    }

    fn exchange(&mut self, moment: &Moment, open: &Open, line: &Value) {
        let usage: Usage = read(line, "usage").unwrap_or_default();
        if let Some(turn) = self.builder.turn(moment.turn) {
            turn.usage.add(&usage);
        }
        let Some(at) = self.builder.end_step(open) else { return };
        let (how, tone) = match word(line, "status") {
            "completed" => (completion(&Completion::Complete), Tone::Good),
            "stopped" => (completion(&Completion::Stopped), Tone::Stopped),
            "steered" => (completion(&Completion::Steered), Tone::Stopped),
            _ => (
                line["error"].as_str().map_or("failed".into(), |why| format!("failed: {why}").into()),
                Tone::Bad,
            ),
        };
        let step = &mut self.builder.steps[at];
        (step.to, step.tone) = (moment.at, tone);
        step.said = format!("{}, {how}, {} in, {} out", word(line, "name"), usage.input, usage.output);
        step.fields.extend(more(line));
    }

    fn steers(&mut self, moment: &Moment, line: &Value) {
        for steer in line["steers"].as_array().into_iter().flatten() {
            let step = self.builder.step(Kind::Steer, moment);
            step.round = line["round"].as_u64().and_then(|round| u32::try_from(round).ok());
            step.title = if steer["notice"] == true { "notice" } else { "steer" }.into();
            word(steer, "text").clone_into(&mut step.said);
            step.add([("steer_id", steer["id"].clone()), ("text", steer["text"].clone())]);
        }
    }

    fn call_started(&mut self, moment: &Moment, line: &Value) {
        let (call, name) = (word(line, "call_id").to_owned(), word(line, "name").to_owned());
        self.names.insert((moment.turn, call.clone()), name.clone());
        let step = self.builder.begin_step(Open::Call(moment.path.clone(), call), Kind::Call, moment);
        step.title = name;
        step.fields.extend(more(line));
    }

    fn call_ended(&mut self, moment: &Moment, line: &Value) {
        let open = Open::Call(moment.path.clone(), word(line, "call_id").to_owned());
        if !self.builder.is_open(&open) {
            // It never began: denied, expired, or not started because of a stop.
            let step = self.builder.begin_step(open.clone(), Kind::Call, moment);
            word(line, "name").clone_into(&mut step.title);
        }
        let Some(at) = self.builder.end_step(&open) else { return };
        let step = &mut self.builder.steps[at];
        step.from = read(line, "started_at").flatten().or(step.from);
        step.to = read(line, "ended_at").flatten().or(moment.at);
        step.tone = read(line, "status").map(|status: CallStatus| calls::tone(status)).unwrap_or_default();
        let effect = read(line, "effect").map_or("", |effect: SideEffect| calls::effect(effect));
        step.said = format!("{}{effect}", word(line, "status").replace('_', " "));
        // `effect` is what the tool may do at the beginning, and what it has done at the end.
        if let Some(class) = step.fields.remove("effect") {
            step.fields.insert("effect_class".to_owned(), class);
        }
        step.fields.extend(more(line));
    }

    fn asked(&mut self, moment: &Moment, line: &Value) {
        let open = Open::Approval(word(line, "approval_id").to_owned());
        let step = self.builder.begin_step(open, Kind::Approval, moment);
        // What exactly is asked about the call is not said.
        step.title = format!("{}?", word(line, "name"));
        step.fields.extend(more(line));
    }

    fn settled(&mut self, moment: &Moment, line: &Value) {
        let how = word(line, "status");
        let tone = read(line, "status").map(|ending: Ending| ending_tone(ending)).unwrap_or_default();
        if let Some(at) = self.builder.end_step(&Open::Attempt(moment.path.clone())) {
            let attempt = &mut self.builder.steps[at];
            (attempt.to, attempt.tone) = (moment.at, tone);
            how.clone_into(&mut attempt.said);
        }
        let step = self.builder.step(Kind::Settled, moment);
        (step.title, step.said, step.tone) = ("settled".into(), how.to_owned(), tone);
        step.add([("run", line["run"].clone()), ("ending", line["status"].clone())]);
    }

    /// The receipt of a turn, at the step at which it settled.
    fn account(&mut self, turn: TurnId, line: &Value) {
        let Some(receipt) = read::<Receipt>(line, "receipt") else { return };
        let is_it = |kind, of, run| (kind, of, run) == (Kind::Settled, Some(turn), 0);
        let mut steps = self.builder.steps.iter_mut().rev();
        if let Some(step) = steps.find(|step| is_it(step.kind, step.turn, step.run)) {
            step.add([("receipt", json!(receipt)), ("account", json!(receipt.to_string()))]);
        }
    }

    /// A line that this version cannot place.
    fn unknown(&mut self, turn: Option<TurnId>, position: u64, at: Option<Timestamp>, line: &Value) {
        let step = self.builder.mark(Kind::Other, turn, position, at);
        step.title = word(line, "type").replace('_', " ");
        step.fields.extend(more(line));
    }
}

/// The fact of a line that says all of it.
fn fact(line: &Value) -> Option<Fact> {
    Some(match word(line, "type") {
        "model_started" => Fact::ModelStarted { round: read(line, "round")? },
        "summary_started" => Fact::SummaryStarted { round: read(line, "round")? },
        "stop_requested" => Fact::StopRequested(request(line)?),
        "stop_escalated" => Fact::StopEscalated,
        "stop_observed" => Fact::StopObserved { at: read(line, "observed_at")? },
        "approval_decided" => {
            let answer = match word(&line["answer"], "decision") {
                "expired" => Resolution::Expired,
                "withdrawn" => Resolution::Withdrawn,
                _ => Resolution::Decided(read(line, "answer")?),
            };
            let (id, call_id) =
                (ApprovalId::from(word(line, "approval_id")), CallId::from(word(line, "call_id")));
            Fact::ApprovalResolved { id, call_id, answer }
        }
        _ => return None,
    })
}

fn request(line: &Value) -> Option<RequestReport> {
    let mode = match word(line, "mode") {
        "now" => "now".to_owned(),
        _ => read::<Vec<String>>(line, "points")?.join(","),
    };
    let at = if line["reason"]["at"].is_null() { &line["at"] } else { &line["reason"]["at"] };
    serde_json::from_value(json!({
        "seq": 0, "at": at, "reason": line["reason"], "mode": mode, "reach": line["scope"],
        "within_ms": line["within_ms"], "asked": line["asked"],
    }))
    .ok()
}

/// A field of a line; none if it is not there, or is something else.
fn read<T: DeserializeOwned>(line: &Value, name: &str) -> Option<T> {
    serde_json::from_value(line.get(name)?.clone()).ok()
}

fn word<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_default()
}

/// What a line says beside what every one says.
fn more(line: &Value) -> Map<String, Value> {
    const OF_EVERY: [&str; 9] = ["v", "type", "session", "seq", "epoch", "at", "turn", "path", "position"];
    let fields = line.as_object().into_iter().flatten();
    let more = fields.filter(|(name, _)| !OF_EVERY.contains(&name.as_str()));
    more.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests;
