//! A typed answer while it arrives: on every wire, as far as it is certain.

use std::time::Duration;

use safepoint::{
    Agent, Outcome,
    message::ToolCall,
    model::{Delta, Finish},
};
use safepoint_models::TypedAnswers;
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ServedWire,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    answer_schemas::builder,
    world::{WIRES, server},
};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
    people: u64,
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
struct Draft {
    name: Option<String>,
    people: Option<u64>,
}

/// A bound on a wait that never comes to an end by itself.
const SOON: Duration = Duration::from_secs(10);

fn draft(name: &str, people: Option<u64>) -> Draft {
    Draft { name: (!name.is_empty()).then(|| name.to_owned()), people }
}

/// S4.25: what is certain of a text grows with its pieces, on every wire, up to the answer.
#[tokio::test]
async fn an_answer_is_read_while_it_arrives() {
    for wire in WIRES {
        let server = server([]).await;
        let mut gate = server.gate();
        let run = builder(&server, wire, TypedAnswers::Schema).build().run_typed::<City>("which?").start();
        let mut partials = run.partials::<Draft>();
        gate.request().await;
        gate.script(&Reply::pieces(["{\"na", "me\": \"Lis", "bon\", \"people\": 55", "0}"]));
        gate.headers();
        for (marker, expected) in
            [(r#"{\"na"#, draft("", None)), ("Lis", draft("Lis", None)), ("bon", draft("Lisbon", None))]
        {
            while !gate.send_next_until(marker.as_bytes()) {}
            let next = timeout(SOON, partials.next()).await;
            assert_eq!(next, Ok(Some(expected)), "{wire:?}");
        }
        gate.finish();
        let next = timeout(SOON, partials.next()).await;
        assert_eq!(next, Ok(Some(draft("Lisbon", Some(550)))), "{wire:?}");
        assert_eq!(partials.next().await, None, "{wire:?}");
        assert_eq!(run.await.into_value(), Some(City { name: "Lisbon".into(), people: 550 }), "{wire:?}");
    }
}

/// S4.25: after an answer that does not fit the next one begins anew, and a text that is no JSON gives nothing.
#[tokio::test]
async fn a_correction_begins_anew() {
    let wrong = Reply::text(r#"{"name": "Porto", "people": "many"}"#);
    let right = Reply::text(r#"{"name": "Lisbon", "people": 550}"#);
    let server = server([Reply::text("Let me see."), wrong, right]).await;
    let run =
        builder(&server, ServedWire::OpenAi, TypedAnswers::Schema).build().run_typed::<City>("?").start();
    let mut partials = run.partials::<Value>();
    let mut last = Vec::new();
    while let Some(step) = partials.next().await {
        last.push(step["name"].clone());
    }
    last.dedup();
    assert_eq!(last.last(), Some(&json!("Lisbon")), "{last:?}");
    assert!(!last.contains(&Value::Null) || last[0].is_null(), "{last:?}");
    assert!(matches!(run.await, Outcome::Done(_)));
}

/// S4.25: an answer by the tool grows while its arguments arrive.
#[tokio::test]
async fn an_answer_by_the_tool_grows_too() {
    let server = server([]).await;
    let mut gate = server.gate();
    let run = builder(&server, ServedWire::OpenAi, TypedAnswers::Tool).build().run_typed::<City>("?").start();
    let mut partials = run.partials::<Draft>();
    gate.request().await;
    // The arguments come in two halves.
    gate.script(&Reply::call("final_answer", json!({"name": "Lisbon", "people": 550})));
    gate.headers();
    while !gate.send_next_until(b"Lis") {}
    let next = timeout(SOON, partials.next()).await.unwrap().unwrap();
    assert_eq!(next.people, None);
    assert!(next.name.is_some_and(|name| name.len() > 2 && "Lisbon".starts_with(&name)));
    gate.finish();
    let mut last = None;
    while let Some(next) = timeout(SOON, partials.next()).await.unwrap() {
        last = Some(next);
    }
    assert_eq!(last, Some(draft("Lisbon", Some(550))));
}

/// S4.25: an answer by the tool is given too, also one that is no object and is held in one.
#[tokio::test]
async fn an_answer_by_the_tool_is_read_too() {
    for wire in WIRES {
        let server = server([Reply::call("final_answer", json!({"answer": ["a", "b"]}))]).await;
        let run = builder(&server, wire, TypedAnswers::Tool).build().run_typed::<Vec<String>>("?").start();
        let mut partials = run.partials::<Vec<String>>();
        let mut last = Vec::new();
        while let Some(step) = partials.next().await {
            last = step;
        }
        assert_eq!(last, ["a", "b"], "{wire:?}");
    }
}

/// S4.25: two answers that arrive by turns are not mixed: the first is shown until it is known that it is not taken, and the
/// second from then on, as it is. So are two that arrive one after the other, without ids.
#[tokio::test]
async fn two_answers_in_one_message_are_not_mixed() {
    let (wrong, right) = (r#"{"name": "Porto", "people": "many"}"#, r#"{"name": "Lisbon", "people": 550}"#);
    let by_turns: [(&str, &str, Option<Draft>); 5] = [
        ("a", &wrong[..13], Some(draft("Por", None))),
        ("b", &right[..17], None),
        ("a", &wrong[13..27], Some(draft("Porto", None))),
        ("b", &right[17..], None),
        ("a", &wrong[27..], Some(draft("Lisbon", Some(550)))),
    ];
    let one_by_one = [
        ("", &wrong[..13], Some(draft("Por", None))),
        ("", &wrong[13..], None),
        ("", "\n", None),
        ("", &right[..13], Some(draft("Lis", None))),
        ("", &right[13..], Some(draft("Lisbon", Some(550)))),
    ];
    for pieces in [by_turns, one_by_one] {
        let model = ScriptedModel::new(Script::default());
        let mut gate = model.gate();
        let run = Agent::builder(model).build().run_typed::<City>("which?").start();
        let mut partials = run.partials::<Draft>();
        gate.request().await;
        let [first, .., last] = &pieces;
        let ids = [first.0, last.0];
        for (id, text, expected) in pieces {
            let (id, name, text) = (id.into(), "final_answer".into(), text.to_owned());
            gate.send(Delta::CallArguments { id, name, text });
            if let Some(expected) = expected {
                assert_eq!(timeout(SOON, partials.next()).await, Ok(Some(expected)));
            }
        }
        for (id, args) in ids.into_iter().zip([wrong, right]) {
            let (id, name, args) = (id.into(), "final_answer".into(), args.to_owned());
            gate.send(Delta::CallReady(ToolCall { id, name, args }));
        }
        gate.send(Delta::Ended(Finish::Natural));
        assert_eq!(timeout(SOON, partials.next()).await, Ok(None), "nothing else is given");
        assert_eq!(run.await.into_value(), Some(City { name: "Lisbon".into(), people: 550 }));
    }
}
