//! What each fact of a run says in a story.

use std::time::Duration;

use safepoint::{
    Receipt,
    event::{Completion, ErrorReport, Fact},
    message::AssistantMessage,
    raw::{RecordedSteer, lasting},
    receipt::{Ending, ModelReport, RequestReport},
};
use serde_json::{Value, json};

use super::{
    fold::{Moment, Open, SAME_ASK, TimelineBuilder, why},
    timeline::{Kind, Step, Tone},
};
use crate::render::text::{self, completion, said};

impl TimelineBuilder {
    pub(crate) fn fact(&mut self, moment: Moment, fact: &Fact) {
        match fact {
            Fact::AttemptOpened { run, attempt, history, at, .. } => {
                self.forget_open(&moment.path);
                let asked = history.as_ref().and_then(|history| {
                    history.entries().iter().rev().find_map(|entry| said(entry).map(ToOwned::to_owned))
                });
                let step = self.begin_step(Open::Attempt(moment.path.clone()), Kind::Attempt, &moment);
                step.from = Some(*at);
                step.title = format!("attempt {attempt}");
                step.add([("run", json!(run)), ("attempt", json!(attempt))]);
                if let Some(asked) = asked {
                    step.fields.insert("asked".into(), json!(asked));
                }
            }
            Fact::ModelStarted { round } => self.model_started(&moment, *round),
            Fact::ModelEnded { message, whole, report } => self.model_ended(&moment, message, whole, report),
            Fact::ModelTooLong { report, error } => {
                let open = Open::Model(moment.path.clone());
                self.exchange_ended(&moment, &open, &Completion::Failed(error.clone()), report);
            }
            Fact::HookActed(acted) => {
                let step = self.step(Kind::Other, &moment);
                (step.title, step.said) = (format!("hook {}", acted.hook), text::hook_action(&acted.action));
                step.add([("hook", json!(acted.hook)), ("action", json!(acted.action))]);
            }
            Fact::SummaryStarted { round } => {
                let step = self.begin_step(Open::Summary(moment.path.clone()), Kind::Model, &moment);
                step.round = Some(*round);
                step.title = format!("summary before round {round}");
            }
            Fact::SummaryEnded { whole, report, shortened } => {
                let open = Open::Summary(moment.path.clone());
                if let Some(at) = self.exchange_ended(&moment, &open, whole, report) {
                    self.steps[at].fields.insert("shortened".into(), json!(shortened));
                }
            }
            Fact::SteerTaken { round, steers } => self.steered(&moment, *round, steers),
            Fact::CallStarted { .. } => self.call_started(&moment, fact),
            Fact::CallEnded { report, result, extent } => self.call_ended(&moment, report, result, extent),
            Fact::ApprovalRequested(asked) => self.asked(&moment, asked),
            Fact::ApprovalResolved { id, answer, .. } => self.answered(&moment, id.as_str(), answer),
            Fact::StopRequested(request) => self.stop_asked(&moment, request),
            Fact::StopEscalated => {
                let step = self.step(Kind::StopEscalated, &moment);
                (step.title, step.said, step.tone) = ("stop escalated".into(), "now".into(), Tone::Stopped);
            }
            Fact::StopObserved { at } => {
                let step = self.step(Kind::StopObserved, &moment);
                (step.from, step.title, step.tone) = (Some(*at), "stop took effect".into(), Tone::Stopped);
            }
            Fact::Settled { receipt, error } => self.settled(&moment, receipt, error.as_ref()),
            other => self.other(&moment, other),
        }
    }

    /// A fact without special rendering: its name and its fields.
    fn other(&mut self, moment: &Moment, fact: &Fact) {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(fact) else { return };
        let name = match fields.remove("fact") {
            Some(Value::String(name)) => name.replace('_', " "),
            _ => "something else".into(),
        };
        let step = self.step(Kind::Other, moment);
        step.title = name;
        step.round = fields.get("round").and_then(Value::as_u64).and_then(|round| u32::try_from(round).ok());
        step.fields.extend(fields);
    }

    fn model_started(&mut self, moment: &Moment, round: u32) {
        if moment.path.is_root()
            && let Some(turn) = self.turn(moment.turn)
        {
            turn.rounds = turn.rounds.max(round);
        }
        let step = self.begin_step(Open::Model(moment.path.clone()), Kind::Model, moment);
        step.round = Some(round);
        step.title = format!("round {round}");
    }

    fn model_ended(
        &mut self,
        moment: &Moment,
        message: &AssistantMessage,
        whole: &Completion,
        report: &ModelReport,
    ) {
        let open = Open::Model(moment.path.clone());
        if !self.is_open(&open) {
            self.model_started(moment, report.round);
        }
        let Some(at) = self.exchange_ended(moment, &open, whole, report) else { return };
        let step = &mut self.steps[at];
        let calls: Vec<Value> = message
            .calls()
            .map(|call| json!({"call_id": call.id, "name": call.name, "args": call.args}))
            .collect();
        step.fields.insert("text".into(), json!(message.text()));
        step.fields.insert("calls".into(), Value::Array(calls));
    }

    /// The place of the step that ends here.
    fn exchange_ended(
        &mut self,
        moment: &Moment,
        open: &Open,
        whole: &Completion,
        report: &ModelReport,
    ) -> Option<usize> {
        if let Some(turn) = self.turn(moment.turn) {
            turn.usage.add(&report.usage);
        }
        let at = self.end_step(open)?;
        let step = &mut self.steps[at];
        step.from = Some(report.started_at);
        step.to = Some(report.ended_at);
        step.tone = match whole {
            Completion::Complete => Tone::Good,
            Completion::Stopped | Completion::Steered => Tone::Stopped,
            Completion::Failed(_) => Tone::Bad,
        };
        let (usage, how) = (&report.usage, completion(whole));
        step.said = format!("{}, {how}, {} in, {} out", report.model, usage.input, usage.output);
        step.add([
            ("name", json!(report.model)),
            ("state", json!(report.state)),
            ("whole", json!(whole)),
            ("usage", json!(usage)),
        ]);
        self.retried(moment, report);
        Some(at)
    }

    fn retried(&mut self, moment: &Moment, report: &ModelReport) {
        for retry in &report.retries {
            let step = self.step(Kind::Retry, moment);
            step.round = Some(report.round);
            step.from = Some(retry.at);
            let after = i64::try_from(retry.after_ms).unwrap_or(i64::MAX);
            step.to = retry.at.checked_add(jiff::SignedDuration::from_millis(after)).ok();
            step.tone = Tone::Bad;
            step.title = match &retry.instead {
                Some(model) => format!("failed over to {model}"),
                None => "waits to try again".into(),
            };
            step.said.clone_from(&retry.error);
            step.add([
                ("error", json!(retry.error)),
                ("after_ms", json!(retry.after_ms)),
                ("instead", json!(retry.instead)),
            ]);
        }
    }

    fn steered(&mut self, moment: &Moment, round: u32, steers: &[RecordedSteer]) {
        for steer in steers {
            let step = self.step(Kind::Steer, moment);
            step.round = Some(round);
            step.title = if steer.is_notice() { "notice" } else { "steer" }.into();
            step.said.clone_from(&steer.message.text);
            step.add([("steer_id", json!(steer.id)), ("text", json!(steer.message.text))]);
        }
    }

    fn stop_asked(&mut self, moment: &Moment, request: &RequestReport) {
        let within =
            request.within_ms.map(|ms| format!(", now after {}", lasting(Duration::from_millis(ms))));
        let within = within.unwrap_or_default();
        let is_any = request.mode == safepoint::SafePoints::ANY.to_string();
        let mode = if is_any { "at any safe point" } else { &request.mode };
        let said = format!("{mode} ({}){within}; {}", request.reach, why(&request.reason));
        let run = self.lane(moment.turn, &moment.path, None);
        let is_shown = |step: &Step| {
            let age = step.from.map(|from| request.at.duration_since(from));
            (step.kind, step.run, &step.said) == (Kind::StopAsked, run, &said)
                && age.is_some_and(|age| age < SAME_ASK)
        };
        // One request to the turn and its session is shown once.
        if self.steps.last().is_some_and(is_shown) {
            return;
        }
        let step = self.step(Kind::StopAsked, moment);
        step.from = Some(request.at);
        (step.title, step.said, step.tone) = ("stop requested".into(), said, Tone::Stopped);
        if let Ok(Value::Object(fields)) = serde_json::to_value(request) {
            step.fields.extend(fields.into_iter().filter(|(name, _)| name != "at" && name != "seq"));
        }
    }

    fn settled(&mut self, moment: &Moment, receipt: &Receipt, error: Option<&ErrorReport>) {
        let how = match error {
            Some(error) => format!("{}: {}", receipt.ending.as_str(), error.message),
            None => receipt.ending.as_str().to_owned(),
        };
        let tone = ending_tone(receipt.ending);
        if let Some(at) = self.end_step(&Open::Attempt(moment.path.clone())) {
            let attempt = &mut self.steps[at];
            attempt.to = Some(receipt.settled_at);
            attempt.said.clone_from(&how);
            attempt.tone = tone;
        }
        let step = self.step(Kind::Settled, moment);
        step.from = Some(receipt.settled_at);
        (step.title, step.said, step.tone) = ("settled".into(), how, tone);
        step.add([
            ("run", json!(receipt.run)),
            ("ending", json!(receipt.ending)),
            ("usage", json!(receipt.usage)),
            ("usage_total", json!(receipt.usage_total)),
            ("error", json!(error)),
            ("receipt", json!(receipt)),
            ("account", json!(receipt.to_string())),
        ]);
    }
}

/// How a run looks that ended so.
pub(super) fn ending_tone(ending: Ending) -> Tone {
    match ending {
        Ending::Done => Tone::Good,
        Ending::Stopped => Tone::Stopped,
        Ending::Failed => Tone::Bad,
        Ending::Suspended => Tone::Plain,
    }
}
