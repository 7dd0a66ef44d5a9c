//! A response as its turn's events make it: its output, its status, and the events of its own stream.
//!
//! **Invariants**: pure; the number of an event depends on what is recorded and on the text of the message that streams, and rises
//! from event to event, also over restarts; nothing is over before its turn has settled.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    calls::CallItem,
    draft::Draft,
    event::{Numbered, ResponseStatus, numbered, place, whole},
    id::ResponsePart,
};
use crate::follow::ShownEvent;

/// How many of them the end of a message has, and an item that is there and done at once.
const MESSAGE: u64 = 4;
const BOTH: u64 = 2;

/// Where in its turn the reading is. Exhaustive: before what the response is of, in it, behind a question that it ended with, or
/// behind all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoldStage {
    Before,
    Within,
    Asked,
    Behind,
}

/// What the events make of a response.
#[derive(Debug)]
pub(super) struct Fold {
    session: String,
    agent: String,
    part: ResponsePart,
    /// The number up to which the client has read.
    after: Option<u64>,
    stage: FoldStage,
    output: Vec<Value>,
    draft: Option<Draft>,
    /// The calls that run: where in the output each is.
    calls: HashMap<String, (usize, CallItem)>,
    /// The questions about calls.
    asked: HashMap<String, CallItem>,
    /// The questions that came while a message streamed: they follow it.
    behind: Vec<Value>,
    /// Whether questions are shown.
    asks: bool,
    /// Whether a question is no end yet, and the number that its end would have.
    passes: bool,
    passed: Option<u64>,
    last: u64,
    /// The last record of its turn, but for what says that nothing is alive.
    record: Option<u64>,
    pub(super) facts: TurnFacts,
}

/// What is known of the turn beside its output.
#[derive(Debug)]
pub(super) struct TurnFacts {
    pub(super) status: ResponseStatus,
    pub(super) turn: Option<u64>,
    pub(super) outcome: Option<String>,
    pub(super) receipt: Option<Value>,
    pub(super) survivors: Option<Vec<String>>,
    pub(super) is_stop_requested: bool,
}

impl TurnFacts {
    fn of(status: ResponseStatus) -> Self {
        let (turn, outcome, receipt, survivors) = (None, None, None, None);
        Self { status, turn, outcome, receipt, survivors, is_stop_requested: false }
    }
}

impl Fold {
    /// The response of this part of the agent's session, for a client that has read up to the number `after`.
    pub(super) fn of(session: &str, agent: &str, part: ResponsePart, after: Option<u64>) -> Self {
        Self {
            session: session.to_owned(),
            agent: agent.to_owned(),
            part,
            after,
            stage: FoldStage::Before,
            output: Vec::new(),
            draft: None,
            calls: HashMap::new(),
            asked: HashMap::new(),
            behind: Vec::new(),
            asks: true,
            passes: false,
            passed: None,
            last: 0,
            record: None,
            facts: TurnFacts::of(ResponseStatus::Queued),
        }
    }

    /// What a stream begins with.
    pub(super) fn begin(&mut self) -> Vec<Numbered> {
        self.sent(vec![whole(0, "response.created"), whole(1, "response.queued")])
    }

    /// Whether it ended with a question that nothing has answered.
    pub(super) fn is_asked(&self) -> bool {
        self.stage == FoldStage::Asked
    }

    /// Its questions cannot be answered: they are not shown.
    pub(super) fn without_questions(self) -> Self {
        Self { asks: false, ..self }
    }

    /// It is known to end otherwise than with the question that comes: the end of the turn is what it ends with, unless the
    /// question was answered.
    pub(super) fn pass_question(&mut self) {
        self.passes = true;
    }

    /// The output by now.
    pub(super) fn output(&self) -> Vec<Value> {
        let streams = self.draft.as_ref().and_then(Draft::now);
        self.output.iter().cloned().chain(streams).collect()
    }

    /// What an event of its turn gives.
    pub(super) fn step(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let data = &event.data;
        if event.kind != "turn_quiet" {
            self.record = event.position.or(self.record);
        }
        let begins = match &self.part {
            ResponsePart::Item(_) => event.kind == "turn_started",
            ResponsePart::After(id) => event.kind == "approval_decided" && data["approval_id"] == **id,
        };
        if begins && self.stage == FoldStage::Before {
            self.stage = FoldStage::Within;
            self.facts.status = ResponseStatus::InProgress;
            self.facts.turn = data["turn"].as_u64();
            let base = event.position.map(place).unwrap_or_default();
            return self.sent(vec![whole(base, "response.in_progress")]);
        }
        let all = match &*event.kind {
            "approval_asked" => self.asks(event),
            "approval_decided" => self.decided(data),
            "run_started" if event.is_root() => {
                self.again();
                Vec::new()
            }
            "turn_quiet" => {
                self.quiet(data);
                Vec::new()
            }
            _ if !event.is_root() => Vec::new(),
            "turn_ended" => self.turn_ended(event),
            _ if self.stage != FoldStage::Within => Vec::new(),
            "stop_requested" => {
                self.facts.is_stop_requested = true;
                Vec::new()
            }
            "model_started" | "text_delta" | "partial" | "model_ended" => self.message(event),
            "call_started" => self.call_started(event),
            "call_ended" => self.call_ended(event),
            _ => Vec::new(),
        };
        self.sent(all)
    }

    /// The item is at rest, and no record of its turn said so: no turn has had it, or it ended with its process.
    pub(super) fn rest(&mut self, outcome: Option<&str>) -> Vec<Numbered> {
        let outcome = outcome.unwrap_or("withdrawn");
        // A stop has withdrawn the question that it ended with.
        let is_withdrawn =
            self.is_asked() && ResponseStatus::of_outcome(outcome) != ResponseStatus::Completed;
        if self.facts.status.is_over() && !is_withdrawn {
            return Vec::new();
        }
        self.facts.outcome = Some(outcome.to_owned());
        self.end(ResponseStatus::of_outcome(outcome));
        // Behind all that has streamed behind the last record, of which the journal may have nothing.
        let number = self.record.map_or(self.last.max(1) + 1, |record| place(record + 1) - 1);
        self.sent(vec![whole(number, self.facts.status.event())])
    }

    /// Its turn runs again: what was alive of it is not what is, and a failure is none any more.
    fn again(&mut self) {
        self.facts.survivors = None;
        if self.facts.status == ResponseStatus::Failed {
            self.stage = FoldStage::Within;
            let (turn, status) = (self.facts.turn, ResponseStatus::InProgress);
            self.facts = TurnFacts { turn, ..TurnFacts::of(status) };
        }
    }

    fn end(&mut self, status: ResponseStatus) {
        self.facts.status = status;
        self.stage = FoldStage::Behind;
        self.output.extend(self.draft.take().and_then(|draft| draft.now()));
    }

    /// Keeps what the client has not read.
    fn sent(&mut self, all: Vec<Numbered>) -> Vec<Numbered> {
        if let Some(last) = all.last() {
            self.last = last.number;
        }
        let after = self.after;
        all.into_iter().filter(|event| after.is_none_or(|after| event.number > after)).collect()
    }

    fn message(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let text = event.data["text"].as_str().unwrap_or_default();
        match (&*event.kind, event.position, &mut self.draft) {
            ("model_started", Some(position), _) => {
                let place = (self.output.len(), &*self.session);
                self.draft = Some(Draft::behind(position, place, self.after));
                Vec::new()
            }
            ("text_delta", _, Some(draft)) => draft.more(text),
            ("partial", _, Some(draft)) => draft.partial(text),
            ("model_ended", Some(position), draft) => {
                let is_whole = event.data["status"] == "completed";
                let ended = draft.take().and_then(|draft| draft.ended(position, text, is_whole));
                let (item, all) = ended.unzip();
                self.output.extend(item);
                let mut all = all.unwrap_or_default();
                all.extend(self.follow(place(position) + MESSAGE));
                all
            }
            _ => Vec::new(),
        }
    }

    fn asks(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let (data, call) = (&event.data, CallItem::asked(&event.data, &self.agent));
        let id = data["call_id"].as_str().unwrap_or_default().to_owned();
        let item = call.request();
        let call = if self.asks { call } else { call.behind(None) };
        self.asked.insert(id, call);
        if self.stage != FoldStage::Within || !self.asks {
            return Vec::new();
        }
        self.behind.push(item);
        if self.draft.is_some() {
            Vec::new()
        } else {
            self.follow(event.position.map(place).unwrap_or_default())
        }
    }

    /// The questions that wait for their place in the output.
    fn follow(&mut self, mut number: u64) -> Vec<Numbered> {
        let mut all = Vec::new();
        for item in std::mem::take(&mut self.behind) {
            all.extend(self.both(number, item));
            number += BOTH;
        }
        all
    }

    /// An item that is there and done at once.
    fn both(&mut self, number: u64, item: Value) -> Vec<Numbered> {
        let index = self.output.len();
        let added = json!({"type": "response.output_item.added", "output_index": index, "item": item});
        let done = json!({"type": "response.output_item.done", "output_index": index, "item": item});
        self.output.push(item);
        vec![numbered(number, added), numbered(number + 1, done)]
    }

    /// An answer to a question that the response ended with: what follows is another response's. A question that a stop
    /// withdrew has none.
    fn decided(&mut self, data: &Value) -> Vec<Numbered> {
        if self.stage != FoldStage::Asked || data["answer"]["decision"] == "cancelled" {
            return Vec::new();
        }
        self.stage = FoldStage::Behind;
        self.facts.status = ResponseStatus::Completed;
        let number = self.passed.take();
        number.map(|number| whole(number, self.facts.status.event())).into_iter().collect()
    }

    fn quiet(&mut self, data: &Value) {
        if self.facts.turn.is_some() && self.facts.turn == data["turn"].as_u64() {
            let names = data["survivors"].as_array().into_iter().flatten();
            let names = names.filter_map(|name| Some(name.as_str()?.to_owned()));
            self.facts.survivors = Some(names.collect());
        }
    }

    fn turn_ended(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        if !matches!(self.stage, FoldStage::Within | FoldStage::Asked) {
            return Vec::new();
        }
        let outcome = event.data["outcome"].as_str().unwrap_or_default();
        self.facts.outcome = Some(outcome.to_owned());
        self.facts.receipt = Some(event.data["receipt"].clone());
        self.end(ResponseStatus::of_outcome(outcome));
        let number = event.position.map(place).unwrap_or_default();
        if outcome == "suspended" {
            self.stage = FoldStage::Asked;
            if self.passes {
                self.facts.status = ResponseStatus::InProgress;
                self.passed = Some(number);
                return Vec::new();
            }
        }
        vec![whole(number, self.facts.status.event())]
    }

    fn call_started(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let id = event.data["call_id"].as_str().unwrap_or_default().to_owned();
        let approval = self.asked.get(&id).and_then(|call| call.approval.clone());
        let call = CallItem::started(&event.data, &self.agent).behind(approval);
        let (base, index) = (event.position.map(place).unwrap_or_default(), self.output.len());
        let item = call.item("in_progress", None);
        let (item_id, arguments) = (item["id"].clone(), item["arguments"].clone());
        self.output.push(item.clone());
        self.calls.insert(id, (index, call));
        vec![
            numbered(
                base,
                json!({"type": "response.output_item.added", "output_index": index, "item": item}),
            ),
            numbered(
                base + 1,
                json!({"type": "response.mcp_call.in_progress", "output_index": index, "item_id": item_id}),
            ),
            numbered(
                base + 2,
                json!({"type": "response.mcp_call_arguments.done", "output_index": index, "item_id": item_id,
                       "arguments": arguments}),
            ),
        ]
    }

    fn call_ended(&mut self, event: &ShownEvent) -> Vec<Numbered> {
        let id = event.data["call_id"].as_str().unwrap_or_default();
        let base = event.position.map(place).unwrap_or_default();
        let status = if event.data["status"] == "completed" { "completed" } else { "failed" };
        let Some((index, call)) = self.calls.remove(id) else {
            // It never began.
            let call = self.asked.get(id).cloned();
            let call = call.unwrap_or_else(|| CallItem::started(&event.data, &self.agent));
            let item = call.item(status, Some(&event.data));
            return self.both(base, item);
        };
        let item = call.item(status, Some(&event.data));
        self.output[index] = item.clone();
        let kind = format!("response.mcp_call.{status}");
        vec![
            numbered(base, json!({"type": kind, "output_index": index, "item_id": item["id"]})),
            numbered(
                base + 1,
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            ),
        ]
    }
}
