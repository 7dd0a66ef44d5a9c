//! What the facts of calls, and of the questions whether they may run, say in a story.

use safepoint::{
    approval::{AllowScope, ApprovalRequest, Decision},
    event::{Fact, Resolution},
    message::CallResult,
    raw::OutputExtent,
    receipt::{CallKind, CallReport, CallStatus, SideEffect},
};
use serde_json::json;

use super::{
    fold::{Moment, Open, TimelineBuilder},
    timeline::{Kind, Tone},
};
use crate::render::{approval, edit};

impl TimelineBuilder {
    pub(crate) fn call_started(&mut self, moment: &Moment, fact: &Fact) {
        let Fact::CallStarted { call_id, name, round, args, effect, key, work, at } = fact else { return };
        let kind = match work {
            CallKind::Tool => Kind::Call,
            CallKind::Child | CallKind::Background => {
                self.lane(moment.turn, &moment.path.of(call_id), Some(name));
                Kind::Child
            }
        };
        let open = Open::Call(moment.path.clone(), call_id.as_str().to_owned());
        let step = self.begin_step(open, kind, moment);
        step.round = Some(*round);
        step.from = Some(*at);
        step.title.clone_from(name);
        step.add([
            ("call_id", json!(call_id)),
            ("name", json!(name)),
            ("args", serde_json::Value::clone(args)),
            ("effect_class", json!(effect)),
            ("key", json!(key)),
            ("work", json!(work)),
        ]);
    }

    pub(crate) fn call_ended(
        &mut self,
        moment: &Moment,
        report: &CallReport,
        result: &CallResult,
        extent: &OutputExtent,
    ) {
        let open = Open::Call(moment.path.clone(), report.call_id.as_str().to_owned());
        if !self.is_open(&open) {
            // It never began: denied, expired, or not started because of a stop.
            let step = self.begin_step(open.clone(), Kind::Call, moment);
            step.round = Some(report.round);
            step.title.clone_from(&report.name);
            step.add([("call_id", json!(report.call_id)), ("name", json!(report.name))]);
        }
        let Some(at) = self.end_step(&open) else { return };
        let step = &mut self.steps[at];
        step.from = report.started_at.or(step.from);
        step.to = report.ended_at.or(moment.at);
        step.tone = tone(report.status);
        let effect = effect(report.effect);
        step.said = if approval::is_lost(report) {
            "side effects unknown: cut off while it was running; not run again".to_owned()
        } else {
            format!("{}{effect}", report.status.as_str().replace('_', " "))
        };
        step.add([
            ("status", json!(report.status)),
            ("effect", json!(report.effect)),
            ("reason", json!(report.reason)),
            ("stopped_by", json!(report.stopped_by)),
            ("processes", json!(report.processes)),
            ("cleanups", json!(report.cleanups)),
            ("output", json!(result.text)),
            ("extent", json!(extent)),
        ]);
    }

    pub(crate) fn asked(&mut self, moment: &Moment, asked: &ApprovalRequest) {
        let step = self.begin_step(Open::Approval(asked.id.as_str().to_owned()), Kind::Approval, moment);
        step.from = Some(asked.asked_at);
        step.title = format!("{}?", approval::short(asked));
        step.add([
            ("approval_id", json!(asked.id)),
            ("call_id", json!(asked.call_id)),
            ("name", json!(asked.tool)),
            ("args", asked.args.clone()),
            ("digest", json!(asked.digest)),
            ("expires_at", json!(asked.expires_at)),
        ]);
    }

    pub(crate) fn answered(&mut self, moment: &Moment, id: &str, answer: &Resolution) {
        let Some(at) = self.end_step(&Open::Approval(id.to_owned())) else { return };
        let step = &mut self.steps[at];
        step.to = moment.at;
        let (how, tone) = match answer {
            Resolution::Decided(Decision::Approve) => ("approved".to_owned(), Tone::Good),
            Resolution::Decided(Decision::ApproveAlways { covers }) => {
                let is_tool = *covers == AllowScope::Tool;
                let what = if is_tool { "every call of this tool" } else { "this very call" };
                (format!("approved, and from now on {what} in this session"), Tone::Good)
            }
            Resolution::Decided(decision) if edit::is_as_shown(decision) => {
                ("approved, if the file is as it was shown".to_owned(), Tone::Good)
            }
            Resolution::Decided(Decision::ApproveWith { .. }) => {
                ("approved with other arguments".to_owned(), Tone::Good)
            }
            Resolution::Decided(Decision::Deny { message }) if message.is_empty() => {
                ("denied".to_owned(), Tone::Bad)
            }
            Resolution::Decided(Decision::Deny { message }) => (format!("denied: {message}"), Tone::Bad),
            Resolution::Decided(Decision::Respond { .. }) => ("answered instead".to_owned(), Tone::Good),
            Resolution::Expired => ("expired".to_owned(), Tone::Bad),
            Resolution::Withdrawn => ("withdrawn".to_owned(), Tone::Stopped),
        };
        step.said = how;
        step.tone = tone;
        step.fields.insert("answer".into(), json!(answer));
    }
}

/// What a call has done, behind how it ended.
pub(super) fn effect(effect: SideEffect) -> &'static str {
    match effect {
        SideEffect::None => "",
        SideEffect::Done => ", side effects done",
        SideEffect::Unknown => ", side effects unknown",
    }
}

/// How a call looks that ended so.
pub(super) fn tone(status: CallStatus) -> Tone {
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
