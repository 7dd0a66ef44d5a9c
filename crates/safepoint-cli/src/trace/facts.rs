//! What each fact of a run says in a story.

use jiff::Timestamp;
use safepoint::{
    approval::{ApprovalRequest, Decision},
    event::{Answered, ErrorReport, Extent, Fact, TakenSteer, Wholeness},
    ids::{Path, TurnId},
    message::{AssistantMessage, CallResult},
    receipt::{CallReport, CallStatus, Effect, Ending, ModelReport, Receipt, RequestReport, WorkKind},
};
use serde_json::{Value, json};

use super::{
    fold::{Folder, Open, said},
    story::{Kind, Tone},
    text::lasting,
};

/// Where and when something was recorded.
pub(super) struct Moment {
    pub(super) turn: TurnId,
    pub(super) path: Path,
    pub(super) position: u64,
    pub(super) at: Option<Timestamp>,
}

impl Folder {
    pub(super) fn fact(&mut self, moment: Moment, fact: &Fact) {
        match fact {
            Fact::AttemptOpened { run, attempt, history, at, .. } => {
                self.forget_open(&moment.path);
                let asked = history.as_ref().and_then(|history| {
                    history.entries().iter().rev().find_map(|entry| said(entry).map(ToOwned::to_owned))
                });
                let step = self.begin_step(Open::Attempt(moment.path.clone()), Kind::Attempt, &moment);
                step.from = Some(*at);
                step.title = format!("attempt {attempt}");
                step.fields.insert("run".into(), json!(run));
                step.fields.insert("attempt".into(), json!(attempt));
                if let Some(asked) = asked {
                    step.fields.insert("asked".into(), json!(asked));
                }
            }
            Fact::ModelStarted { round } => self.model_started(&moment, *round),
            Fact::ModelEnded { message, whole, report } => {
                self.model_ended(&moment, message, whole, report);
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
            Fact::ApprovalAsked(asked) => self.asked(&moment, asked),
            Fact::ApprovalClosed { id, answer, .. } => self.answered(&moment, id.as_str(), answer),
            Fact::StopAsked(request) => self.stop_asked(&moment, request),
            Fact::StopEscalated => {
                let step = self.step(Kind::StopEscalated, &moment);
                step.title = "stop escalated".into();
                step.said = "now".into();
                step.tone = Tone::Stopped;
            }
            Fact::StopObserved { at } => {
                let step = self.step(Kind::StopObserved, &moment);
                step.from = Some(*at);
                step.title = "stop took effect".into();
                step.tone = Tone::Stopped;
            }
            Fact::Settled { receipt, error } => self.settled(&moment, receipt, error.as_ref()),
            other => self.other(&moment, other),
        }
    }

    /// A fact without a look of its own: its name, and what it says.
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
        whole: &Wholeness,
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
        whole: &Wholeness,
        report: &ModelReport,
    ) -> Option<usize> {
        if let Some(turn) = self.turn(moment.turn) {
            turn.usage.add(&report.usage);
        }
        let at = self.end_step(open)?;
        let step = &mut self.steps[at];
        step.from = Some(report.started_at);
        step.to = Some(report.ended_at);
        let (how, tone) = match whole {
            Wholeness::Whole => ("complete".to_owned(), Tone::Good),
            Wholeness::Cut => ("cut by a stop".to_owned(), Tone::Stopped),
            Wholeness::Steered => ("cut by a steer".to_owned(), Tone::Stopped),
            Wholeness::Failed(error) => (format!("failed: {}", error.message), Tone::Bad),
        };
        step.tone = tone;
        let usage = &report.usage;
        step.said = format!("{}, {how}, {} in, {} out", report.model, usage.input, usage.output);
        let fields = [
            ("name", json!(report.model)),
            ("state", json!(report.state)),
            ("whole", json!(whole)),
            ("usage", json!(usage)),
        ];
        step.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
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
            step.fields.insert("error".into(), json!(retry.error));
            step.fields.insert("after_ms".into(), json!(retry.after_ms));
            step.fields.insert("instead".into(), json!(retry.instead));
        }
    }

    fn steered(&mut self, moment: &Moment, round: u32, steers: &[TakenSteer]) {
        for steer in steers {
            let step = self.step(Kind::Steer, moment);
            step.round = Some(round);
            step.title = "steer".into();
            step.said.clone_from(&steer.message.text);
            step.fields.insert("steer_id".into(), json!(steer.id));
            step.fields.insert("text".into(), json!(steer.message.text));
        }
    }

    fn call_started(&mut self, moment: &Moment, fact: &Fact) {
        let Fact::CallStarted { call_id, name, round, args, effect, key, work, at } = fact else { return };
        let kind = match work {
            WorkKind::Body => Kind::Call,
            WorkKind::Child | WorkKind::Background => {
                self.lane(moment.turn, &moment.path.of(call_id), Some(name));
                Kind::Child
            }
        };
        let open = Open::Call(moment.path.clone(), call_id.as_str().to_owned());
        let step = self.begin_step(open, kind, moment);
        step.round = Some(*round);
        step.from = Some(*at);
        step.title.clone_from(name);
        let fields = [
            ("call_id", json!(call_id)),
            ("name", json!(name)),
            ("args", args.clone()),
            ("effect_class", json!(effect)),
            ("key", json!(key)),
            ("work", json!(work)),
        ];
        step.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }

    fn call_ended(&mut self, moment: &Moment, report: &CallReport, result: &CallResult, extent: &Extent) {
        let open = Open::Call(moment.path.clone(), report.call_id.as_str().to_owned());
        if !self.is_open(&open) {
            // It never began: denied, expired, or not started because of a stop.
            let step = self.begin_step(open.clone(), Kind::Call, moment);
            step.round = Some(report.round);
            step.title.clone_from(&report.name);
            step.fields.insert("call_id".into(), json!(report.call_id));
            step.fields.insert("name".into(), json!(report.name));
        }
        let Some(at) = self.end_step(&open) else { return };
        let step = &mut self.steps[at];
        step.from = report.started_at.or(step.from);
        step.to = report.ended_at.or(moment.at);
        step.tone = tone(report.status);
        let effect = match report.effect {
            Effect::None => "",
            Effect::Done => ", effect done",
            Effect::Unknown => ", EFFECT UNKNOWN",
        };
        step.said = format!("{}{effect}", report.status.as_str().replace('_', " "));
        let fields = [
            ("status", json!(report.status)),
            ("effect", json!(report.effect)),
            ("reason", json!(report.reason)),
            ("stopped_by", json!(report.stopped_by)),
            ("processes", json!(report.processes)),
            ("cleanups", json!(report.cleanups)),
            ("output", json!(result.text)),
            ("extent", json!(extent)),
        ];
        step.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }

    fn asked(&mut self, moment: &Moment, asked: &ApprovalRequest) {
        let step = self.begin_step(Open::Approval(asked.id.as_str().to_owned()), Kind::Approval, moment);
        step.from = Some(asked.asked_at);
        step.title = format!("may {} run?", asked.tool);
        let fields = [
            ("approval_id", json!(asked.id)),
            ("call_id", json!(asked.call_id)),
            ("name", json!(asked.tool)),
            ("args", asked.args.clone()),
            ("digest", json!(asked.digest)),
            ("expires_at", json!(asked.expires_at)),
        ];
        step.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }

    fn answered(&mut self, moment: &Moment, id: &str, answer: &Answered) {
        let Some(at) = self.end_step(&Open::Approval(id.to_owned())) else { return };
        let step = &mut self.steps[at];
        step.to = moment.at;
        let (how, tone) = match answer {
            Answered::Decided(Decision::Approve) => ("approved".to_owned(), Tone::Good),
            Answered::Decided(Decision::ApproveWith { .. }) => {
                ("approved with other arguments".to_owned(), Tone::Good)
            }
            Answered::Decided(Decision::Deny { message }) if message.is_empty() => {
                ("denied".to_owned(), Tone::Bad)
            }
            Answered::Decided(Decision::Deny { message }) => (format!("denied: {message}"), Tone::Bad),
            Answered::Decided(Decision::Respond { .. }) => ("answered instead".to_owned(), Tone::Good),
            Answered::Expired => ("expired".to_owned(), Tone::Bad),
            Answered::Withdrawn => ("withdrawn by a stop".to_owned(), Tone::Stopped),
        };
        step.said = how;
        step.tone = tone;
        step.fields.insert("answer".into(), json!(answer));
    }

    fn stop_asked(&mut self, moment: &Moment, request: &RequestReport) {
        let step = self.step(Kind::StopAsked, moment);
        step.from = Some(request.at);
        step.tone = Tone::Stopped;
        step.title = "stop asked".into();
        let within = request
            .within_ms
            .map(|ms| format!(", now after {}", lasting(i128::from(ms) * 1_000)))
            .unwrap_or_default();
        let is_any = request.mode == safepoint::SafePoints::ANY.to_string();
        let mode = if is_any { "at any safe point" } else { &request.mode };
        let reason = &request.reason;
        let text = if reason.text.is_empty() { String::new() } else { format!(": {}", reason.text) };
        step.said = format!("{mode} ({}){within}; {} ({}){text}", request.reach, reason.code, reason.actor);
        if let Ok(Value::Object(fields)) = serde_json::to_value(request) {
            step.fields.extend(fields.into_iter().filter(|(name, _)| name != "at" && name != "seq"));
        }
    }

    fn settled(&mut self, moment: &Moment, receipt: &Receipt, error: Option<&ErrorReport>) {
        let how = match error {
            Some(error) => format!("{}: {}", receipt.ending.as_str(), error.message),
            None => receipt.ending.as_str().to_owned(),
        };
        let tone = match receipt.ending {
            Ending::Done => Tone::Good,
            Ending::Stopped => Tone::Stopped,
            Ending::Failed => Tone::Bad,
            Ending::Suspended => Tone::Plain,
        };
        if let Some(at) = self.end_step(&Open::Attempt(moment.path.clone())) {
            let attempt = &mut self.steps[at];
            attempt.to = Some(receipt.settled_at);
            attempt.said.clone_from(&how);
            attempt.tone = tone;
        }
        let step = self.step(Kind::Settled, moment);
        step.from = Some(receipt.settled_at);
        step.title = "settled".into();
        step.said = how;
        step.tone = tone;
        let fields = [
            ("run", json!(receipt.run)),
            ("ending", json!(receipt.ending)),
            ("usage", json!(receipt.usage)),
            ("usage_total", json!(receipt.usage_total)),
            ("error", json!(error)),
            ("receipt", json!(receipt)),
            ("account", json!(receipt.to_string())),
        ];
        step.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
}

fn tone(status: CallStatus) -> Tone {
    match status {
        CallStatus::Completed => Tone::Good,
        CallStatus::Failed
        | CallStatus::Denied
        | CallStatus::Expired
        | CallStatus::TimedOut
        | CallStatus::LeftRunning
        | CallStatus::Unreachable => Tone::Bad,
        CallStatus::NotStarted | CallStatus::Stopped | CallStatus::Killed => Tone::Stopped,
    }
}
