//! Events as lines of JSON: the contract of `--json`, described in `docs/schema/event.json`.

use std::{
    collections::HashMap,
    fmt::{self, Display},
    sync::Arc,
};

use jiff::Timestamp;
use safepoint::{
    Outcome, Receipt,
    event::{Completion, Event, EventKind, Fact, Resolution},
    ids::{Path, SessionId},
    outcome::Persisted,
    raw::{Omission, OutputExtent},
    receipt::{CallReport, Ending, RequestReport},
};
use serde_json::{Value, json};

use crate::{
    output::{JsonLine, Text},
    render::hints,
};

/// Numbers lines without a gap and stamps them. The next owner of a session begins anew, in another epoch.
pub(crate) struct Lines {
    session: SessionId,
    /// Which owner of the session this is; none where it lives in memory, and nothing survives this process.
    epoch: Option<u64>,
    seq: u64,
    turn: TurnLines,
    /// Events without a line, because the reader is too slow.
    missed: u64,
}

/// What the lines of one turn say, or its last one.
#[derive(Default)]
struct TurnLines {
    number: u64,
    run: String,
    round: u32,
    reason: Value,
    rounds: HashMap<Path, u32>,
}

impl Lines {
    /// Lines of this session, which is stored and in this epoch, or lives in memory.
    pub(crate) fn new(session: &SessionId, epoch: Option<u64>) -> Self {
        Self { epoch, session: session.clone(), seq: 0, turn: TurnLines::default(), missed: 0 }
    }

    pub(crate) fn turn(&mut self, number: u64, run: &str) {
        self.turn = TurnLines { number, run: run.to_owned(), ..TurnLines::default() };
    }

    /// The line of one event: most have one, some have none.
    pub(crate) fn event(&mut self, event: &Event) -> Option<JsonLine> {
        let (kind, fields) = self.fields(&event.kind)?;
        Some(self.line(kind, event.at, fields))
    }

    /// The line that was made last says more of the one before it, and is no line by itself.
    pub(crate) fn joined(&mut self) {
        self.seq -= 1;
    }

    /// Makes no line of this event, whose text is repeated at its end.
    pub(crate) fn pass_over(&mut self) {
        self.missed += 1;
    }

    /// The line that says how many were passed over, if there were any.
    pub(crate) fn missed(&mut self) -> Option<JsonLine> {
        let count = std::mem::take(&mut self.missed);
        (count > 0).then(|| self.line("missed", Timestamp::now(), json!({ "count": count })))
    }

    pub(crate) fn line(&mut self, kind: &str, at: Timestamp, fields: impl Into<JsonLine>) -> JsonLine {
        let mut all = fields.into();
        let mut line = json!({
            "v": 1, "type": kind, "session": self.session, "run": self.turn.run, "epoch": self.epoch.unwrap_or_default(),
            "seq": self.seq, "at": at.to_string(), "turn": self.turn.number,
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, all.fields().take()) {
            line.extend(fields);
        }
        self.seq += 1;
        *all.fields() = line;
        all
    }

    fn fields(&mut self, kind: &EventKind) -> Option<(&'static str, JsonLine)> {
        let (kind, fields) = match kind {
            EventKind::Child { path, event } => return self.child(path, event),
            EventKind::Fact(fact) => return self.fact(fact),
            EventKind::Text(text) => return Some(("text_delta", self.said(text))),
            EventKind::Reasoning(text) => return Some(("reasoning_delta", self.said(text))),
            EventKind::Provider(block) => {
                ("provider", json!({"round": self.turn.round, "wire": block.wire, "part": block.part}))
            }
            EventKind::Retrying { failed, after, error } => (
                "model_retrying",
                json!({"round": self.turn.round, "failed": failed, "after_ms": after.as_millis() as u64, "error": error}),
            ),
            EventKind::FailedOver { from, to, error } => (
                "model_failed_over",
                json!({"round": self.turn.round, "from": from, "to": to, "error": error}),
            ),
            EventKind::Progress { call_id, text } => {
                let line = JsonLine::from(json!({ "call_id": call_id }));
                return Some(("call_progress", line.saying("text", Text::Shared(text.as_str().into()))));
            }
            EventKind::Notice { call_id, text } => ("call_notice", json!({"call_id": call_id, "text": text})),
            EventKind::Ruled { call_id, ruled } => (
                "approval_ruled",
                json!({"call_id": call_id, "name": ruled.tool, "what": ruled.what,
                    "permission": ruled.permission, "by": ruled.by}),
            ),
            EventKind::Lagged { count } => ("missed", json!({"count": count})),
            EventKind::Late(what) => ("late", json!({"what": what})),
            EventKind::Quiet(receipt) => {
                ("quiet", json!({"quiet": receipt.quiet_at, "survivors": receipt.survivors}))
            }
            _ => return None,
        };
        Some((kind, fields.into()))
    }

    /// Output of the current round.
    fn said(&self, text: &Arc<str>) -> JsonLine {
        JsonLine::from(json!({"round": self.turn.round})).saying("text", Text::Shared(Arc::clone(text)))
    }

    /// A child run's line is like the root's, with the path and the rounds of the child.
    fn child(&mut self, path: &Path, event: &EventKind) -> Option<(&'static str, JsonLine)> {
        let root = std::mem::replace(&mut self.turn.round, self.turn.rounds.get(path).copied().unwrap_or(0));
        let reason = self.turn.reason.clone();
        let line = self.fields(event);
        self.turn.reason = reason;
        self.turn.rounds.insert(path.clone(), std::mem::replace(&mut self.turn.round, root));
        let (kind, mut fields) = line?;
        fields.fields()["path"] = json!(path);
        Some((kind, fields))
    }

    fn fact(&mut self, fact: &Arc<Fact>) -> Option<(&'static str, JsonLine)> {
        let (kind, fields) = match &**fact {
            Fact::AttemptOpened { attempt, .. } => ("run_started", json!({"attempt": attempt})),
            Fact::TimeTaken { .. } => return None,
            Fact::HistoryRepaired { repairs } => ("history_repaired", json!({"repairs": repairs})),
            Fact::ModelStarted { round } => {
                self.turn.round = *round;
                ("model_started", json!({"round": round}))
            }
            Fact::ModelEnded { whole, report, message } => {
                let fields = json!({"round": report.round, "name": report.model, "status": status(whole),
                    "state": report.state, "usage": report.usage});
                let text = TextOf(Arc::clone(message), |message, f| {
                    message.texts().try_for_each(|text| f.write_str(text))
                });
                return Some(("model_ended", JsonLine::from(fields).with("text", text)));
            }
            Fact::SteerTaken { round, steers } => {
                let steers: Vec<Value> =
                    steers.iter().map(|steer| json!({"id": steer.id, "text": steer.message.text, "notice": steer.is_notice()})).collect();
                ("steer_delivered", json!({"round": round, "steers": steers}))
            }
            Fact::HistoryShortened(shortened) => ("history_shortened", shortened_by(shortened)),
            Fact::SummaryStarted { round } => ("summary_started", json!({"round": round})),
            Fact::SummaryEnded { whole, report, shortened } => {
                let fields = json!({"round": report.round, "name": report.model, "status": status(whole),
                    "state": report.state, "usage": report.usage,
                    "shortened": shortened.as_ref().map(shortened_by)});
                ("summary_ended", fields)
            }
            Fact::CallStarted { call_id, name, round, args, effect, .. } => (
                "call_started",
                json!({"call_id": call_id, "name": name, "round": round, "args": args, "effect": effect}),
            ),
            Fact::RemoteTaskNamed { call_id, task } => {
                ("call_named", json!({"call_id": call_id, "task": task}))
            }
            Fact::CallEnded { report, extent, .. } => {
                return Some(("call_ended", call_ended(fact, report, extent)));
            }
            Fact::ChildSuspended { call_id, child, .. } => {
                ("call_suspended", json!({"call_id": call_id, "child": child.path}))
            }
            Fact::ApprovalRequested(request) => (
                "approval_asked",
                json!({"approval_id": request.id, "call_id": request.call_id, "name": request.tool,
                    "args": request.args, "digest": request.digest, "expires_at": request.expires_at}),
            ),
            Fact::ApprovalResolved { id, call_id, answer } => (
                "approval_decided",
                json!({"approval_id": id, "call_id": call_id, "answer": resolved(answer)}),
            ),
            Fact::StopRequested(request) => ("stop_requested", asked(request)),
            Fact::StopEscalated => ("stop_escalated", json!({"by": "deadline"})),
            Fact::StopObserved { at } => ("stop_observed", json!({"observed_at": at})),
            Fact::Settled { receipt, .. } => {
                self.turn.reason = json!(receipt.stop.as_ref().map(|stop| &stop.reason));
                ("settled", json!({"status": receipt.ending}))
            }
        };
        Some((kind, fields.into()))
    }

    /// The last line of a turn.
    pub(crate) fn outcome(&mut self, outcome: &Outcome, receipt: &Receipt) -> JsonLine {
        let error = match outcome {
            Outcome::Failed(error) => {
                let hint = error.hint().map(|hint| hints::here(error.code(), hint));
                json!({"code": error.code(), "message": error.to_string(), "hint": hint})
            }
            Outcome::Done(_) | Outcome::Stopped(_) | Outcome::Suspended(_) => Value::Null,
        };
        let reason = match (outcome.ending(), &error["code"]) {
            (Ending::Done, _) => json!({"code": "natural", "actor": "engine", "text": ""}),
            (Ending::Failed, code) => json!({"code": code, "actor": "engine", "text": error["message"]}),
            (Ending::Stopped | Ending::Suspended, _) => std::mem::take(&mut self.turn.reason),
        };
        let persisted = match outcome.persisted() {
            // The log of this command lives in memory: it does not survive the process, and is not said to.
            Persisted::Yes if self.epoch.is_none() => json!("no"),
            Persisted::Yes => json!("yes"),
            Persisted::No(error) => json!({"no": error}),
            Persisted::Unknown => json!("unknown"),
        };
        // With `quiet` beside its own fields, as the contract names it.
        let mut account = json!(receipt);
        account["quiet"] = json!(receipt.quiet_at);
        let fields = json!({"status": outcome.ending(), "reason": reason, "usage": outcome.usage(),
            "persisted": persisted, "error": error, "receipt": account});
        let mut fields = JsonLine::from(fields)
            .with("partial_text", TextOf(outcome.clone(), |outcome, f| f.write_str(outcome.partial_text())));
        match outcome {
            Outcome::Done(answer) => fields = fields.with("answer", answer.clone()),
            Outcome::Stopped(_) | Outcome::Failed(_) | Outcome::Suspended(_) => {
                fields.fields()["answer"] = Value::Null;
            }
        }
        self.line("outcome", Timestamp::now(), fields)
    }
}

/// A text of something, written from where it is.
struct TextOf<T>(T, fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result);

impl<T> Display for TextOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1(&self.0, f)
    }
}

/// How a question ended.
fn resolved(answer: &Resolution) -> Value {
    match answer {
        Resolution::Decided(decision) => json!(decision),
        Resolution::Expired => json!({"decision": "expired"}),
        Resolution::Withdrawn => json!({"decision": "cancelled"}),
    }
}

fn status(whole: &Completion) -> &'static str {
    match whole {
        Completion::Complete => "completed",
        Completion::Stopped => "stopped",
        Completion::Steered => "steered",
        Completion::Failed(_) => "failed",
    }
}

fn shortened_by(shortened: &Omission) -> Value {
    let omitted = &shortened.omitted;
    json!({"by": omitted.by, "entries": omitted.entries, "rounds": omitted.rounds, "text": omitted.text(),
        "tokens_before": shortened.tokens_before, "tokens_after": shortened.tokens_after})
}

fn asked(request: &RequestReport) -> Value {
    let points: Vec<&str> =
        if request.mode == "now" { Vec::new() } else { request.mode.split(',').collect() };
    let mode = if points.is_empty() { "now" } else { "at" };
    json!({"mode": mode, "points": points, "scope": request.reach, "within_ms": request.within_ms,
        "reason": request.reason, "asked": request.asked})
}

fn call_ended(fact: &Arc<Fact>, report: &CallReport, extent: &OutputExtent) -> JsonLine {
    let (truncated, file) = match extent {
        OutputExtent::All => (false, None),
        OutputExtent::Truncated { file, .. } => (true, file.as_ref()),
    };
    let fields = json!({"call_id": report.call_id, "name": report.name, "round": report.round,
        "status": report.status, "effect": report.effect, "truncated": truncated, "file": file,
        "started_at": report.started_at, "ended_at": report.ended_at});
    let output = TextOf(Arc::clone(fact), |fact, f| match &**fact {
        Fact::CallEnded { result, .. } => f.write_str(&result.text),
        _ => Ok(()),
    });
    JsonLine::from(fields).with("output", output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.4: joined lines, and events without a line, leave no gap in what a reader gets.
    #[test]
    fn what_is_joined_or_passed_over_leaves_no_gap() {
        let mut lines = Lines::new(&SessionId::from("ses_1"), None);
        let seq = |mut line: JsonLine| line.fields()["seq"].clone();
        let text = |lines: &mut Lines| {
            let event = Event::new(0, Timestamp::now(), EventKind::Text("a".into()));
            seq(lines.event(&event).unwrap())
        };
        assert_eq!(text(&mut lines), 0);
        assert_eq!(text(&mut lines), 1);
        lines.joined();
        assert_eq!(text(&mut lines), 1);
        lines.pass_over();
        lines.pass_over();
        let missed = lines.missed().unwrap().fields().take();
        assert_eq!((&missed["count"], &missed["seq"]), (&json!(2), &json!(2)));
        assert!(lines.missed().is_none());
        assert_eq!(text(&mut lines), 3);
    }
}
