//! The golden file of `--json`: a line of each event, made of the engine's golden facts, and of each outcome.
//!
//! A fact of a new kind is in the engine's file or it does not compile there; `cargo xtask tidy` (rule `golden`) holds
//! that each kind of event is named here.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use safepoint::{
    Agent, Outcome, Receipt, StopRequest, Usage,
    approval::{ApprovalMode, ToolApproval, WithoutApprover},
    event::{Event, EventKind, Fact},
    ids::{Path, SessionId},
    message::ProviderBlock,
    raw::schema::Schema,
    receipt::RuledReport,
    tool::{EffectClass, from_fn},
};
use safepoint_golden::{Golden, section};
use safepoint_testkit::{script::Script, scripted::ScriptedModel};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{output::JsonLine, render::lines::Lines};

/// A golden file of this crate.
pub(crate) fn golden(name: &str) -> Golden {
    Golden::file(env!("CARGO_MANIFEST_DIR"), &format!("tests/golden/{name}.txt"))
}

/// The values of a section of a golden file of the engine.
pub(crate) fn of_the_engine<T: DeserializeOwned>(file: &str, name: &str) -> Vec<T> {
    let path = format!("{}/../safepoint/tests/golden/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    section(&std::fs::read_to_string(path).unwrap(), name)
}

/// What is published of the lines.
pub(crate) fn schema(name: &str) -> Schema {
    let path = format!("{}/../../docs/schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
    Schema::new(&serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).unwrap()
}

pub(crate) fn at(ms: i64) -> Timestamp {
    const START: i64 = 1_767_225_600_000;
    Timestamp::from_millisecond(START + ms).unwrap()
}

/// Each fact, then each other kind of event, then the same from a child run.
fn events() -> Vec<EventKind> {
    let call_id = || "call_1".into();
    let facts: Vec<Fact> = of_the_engine("facts", "fact");
    let receipts: Vec<Receipt> = of_the_engine("receipts", "receipt");
    let ruled: Vec<RuledReport> = of_the_engine("receipts", "ruled");
    let is_later = |fact: &Fact| matches!(fact, Fact::HookActed(_) | Fact::ModelTooLong { .. });
    let (later, facts): (Vec<Fact>, Vec<Fact>) = facts.into_iter().partition(is_later);
    let of_fact = |fact| EventKind::Fact(Arc::new(fact));
    let mut events: Vec<EventKind> = facts.into_iter().map(of_fact).collect();
    events.extend([
        EventKind::Text("hello".into()),
        EventKind::Reasoning("hm".into()),
        EventKind::CallBegun("shell".into()),
        EventKind::Retrying { failed: 1, after: Duration::from_millis(1500), error: "503".into() },
        EventKind::FailedOver { from: "a".into(), to: "b".into(), error: "503".into() },
        EventKind::Progress { call_id: call_id(), text: "10 %".into() },
        EventKind::Notice { call_id: call_id(), text: "look".into() },
        EventKind::Usage(Usage::new(10, 5)),
        EventKind::Lagged { count: 3 },
        EventKind::Late("the result of call_9".into()),
    ]);
    events.extend(receipts.into_iter().take(2).map(|receipt| EventKind::Quiet(Arc::new(receipt))));
    events.extend(
        ruled.into_iter().map(|ruled| EventKind::Ruled { call_id: call_id(), ruled: Box::new(ruled) }),
    );
    let path = Path::default().of(&call_id());
    let of_child = |event| EventKind::Child { path: path.clone(), event: Arc::new(event) };
    let children: Vec<EventKind> = events.iter().cloned().map(of_child).collect();
    events.extend(children);
    // Lines are numbered: what was added later comes last.
    events.extend(later.into_iter().map(of_fact));
    events.push(EventKind::Waiting { what: "the rate limit of openai".into() });
    let searched: Vec<ProviderBlock> = of_the_engine("messages", "provider block");
    events.extend(searched.into_iter().map(|block| EventKind::Provider(Arc::new(block))));
    events
}

/// S11.4: a line of each event, as it is published; events without one are `null`.
#[test]
fn a_line_of_each_event() {
    let (schema, session) = (schema("event"), SessionId::from("ses_1"));
    let mut lines = Lines::new(&session, Some(3));
    lines.turn(2, &"run_1".into());
    let mut line = |(seq, kind): (usize, EventKind)| {
        let event = Event::new(seq as u64, at(seq as i64), kind);
        let line: Option<JsonLine> = lines.event(&event);
        let line = serde_json::to_value(line).unwrap();
        assert!(line.is_null() || schema.check(&line).is_ok(), "{line}: {:?}", schema.check(&line));
        line.to_string()
    };
    golden("events").lines("event", events().into_iter().enumerate().map(&mut line)).check();
}

/// An agent that says what a script says, with a tool that asks and one that does not.
fn agent(script: Value) -> Agent {
    let ok = |_cx: safepoint::ToolContext, _args: Value| async move { Ok("fine".to_owned()) };
    let look = from_fn("look", "looks", ok).with(|spec| spec.effect(EffectClass::ReadOnly));
    let pay = from_fn("pay", "pays", ok).with(|spec| spec.approval(ToolApproval::Required));
    let script: Script = serde_json::from_value(script).unwrap();
    let asks = ApprovalMode::Ask(None, WithoutApprover::Suspend);
    Agent::builder(ScriptedModel::new(script)).tool(look).tool(pay).approvals(asks).build()
}

/// One of each outcome.
async fn outcomes() -> Vec<Outcome> {
    let done = agent(json!({"replies": [{"calls": [{"name": "look", "args": {}}]}, {"text": "hello"}]}));
    let failed = agent(json!({"replies": [{"fault": {"error_after": 0}}], "repeat": true}));
    let waits = agent(json!({"replies": [{"calls": [{"name": "pay", "args": {"amount": 7}}]}]}));
    let stopped = waits.run("go");
    let _asked = stopped.handle().stop(StopRequest::now());
    vec![done.run("go").await, stopped.await, failed.run("go").await, waits.run("go").await]
}

/// The same without what differs from run to run: ids, times and counts of milliseconds.
fn steady(value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_id = ["run_", "call_", "apr_"].iter().any(|kind| text.starts_with(kind));
            if is_id || text.parse::<Timestamp>().is_ok() {
                "…".clone_into(text);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(steady),
        Value::Object(fields) => {
            for (name, field) in fields {
                if name.ends_with("_ms") && field.is_number() {
                    *field = json!(0);
                }
                steady(field);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// S11.4: the last line of a turn, for each outcome, of a session that is kept and of one that is not.
#[tokio::test(start_paused = true)]
async fn a_line_of_each_outcome() {
    let (schema, session) = (schema("event"), SessionId::from("ses_1"));
    let mut written = Vec::new();
    for outcome in outcomes().await {
        for epoch in [Some(3), None] {
            let mut lines = Lines::new(&session, epoch);
            lines.turn(2, &"run_1".into());
            let mut line = serde_json::to_value(lines.outcome(&outcome, outcome.receipt())).unwrap();
            assert_eq!(schema.check(&line), Ok(()), "{line}");
            steady(&mut line);
            written.push(line.to_string());
        }
    }
    golden("outcomes").lines("outcome", written).check();
}

/// The published form of `--json` changes only on purpose.
#[test]
fn the_published_schemas() {
    let digest = |name: &str| {
        let path = format!("{}/../../docs/schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let digest = Sha256::digest(std::fs::read(path).unwrap());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name} sha256:{digest}")
    };
    golden("schemas").lines("schema", ["event", "reply", "trace"].map(digest)).check();
}
