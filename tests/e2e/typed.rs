//! Answers of a type, on every wire: taken, corrected, refused, stopped.

use std::sync::Arc;

use safepoint::{
    Agent, Limits, Outcome, StopRequest,
    receipt::{CallStatus, Ending},
    tool::EffectClass,
};
use safepoint_models::{ToolChoice, anthropic, openai};
use safepoint_testkit::{
    script::Reply,
    server::{ModelServer, ServedWire},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, gated, server, started};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
    people: u64,
}

fn lisbon() -> Reply {
    answer(json!({"name": "Lisbon", "people": 550_000}))
}

fn answer(args: Value) -> Reply {
    Reply::call("final_answer", args)
}

fn body(server: &ModelServer, index: usize) -> Value {
    (*server.requests()[index].body).clone()
}

/// What a wire says when a tool must be called: any, or this one.
fn forced(wire: ServedWire, body: &Value) -> (Value, Value) {
    match wire {
        ServedWire::OpenAi => (body["tool_choice"].clone(), body["tool_choice"]["function"]["name"].clone()),
        ServedWire::Responses => (body["tool_choice"].clone(), body["tool_choice"]["name"].clone()),
        ServedWire::Anthropic => (body["tool_choice"]["type"].clone(), body["tool_choice"]["name"].clone()),
        ServedWire::Gemini => {
            let config = &body["toolConfig"]["functionCallingConfig"];
            (config["mode"].clone(), config["allowedFunctionNames"][0].clone())
        }
    }
}

/// S4.11, S3.1: an answer that fits ends the run at once, and the request on each wire demanded it.
#[tokio::test]
async fn a_typed_answer_ends_the_run_on_every_wire() {
    for wire in WIRES {
        let server = server([lisbon(), Reply::text("on")]).await;
        let agent = builder(&server, wire).build();
        let run = agent.run_typed::<City>("which?").start();
        let handle = run.handle();
        let Outcome::Done(said) = run.await else { panic!("{wire:?}") };
        assert_eq!(said.value(), &City { name: "Lisbon".into(), people: 550_000 });
        assert!(said.text().contains("Lisbon"));
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((receipt.rounds, server.requests().len()), (1, 1), "{wire:?}");
        assert_eq!(forced(wire, &body(&server, 0)).1, "final_answer", "{wire:?}");
        continues(&agent, &outcome).await;
    }
}

/// S4.11: beside other tools any tool may be called, and the answer comes when it comes.
#[tokio::test]
async fn other_tools_are_used_before_the_answer() {
    for (wire, any) in WIRES.into_iter().zip(["required", "any", "required", "ANY"]) {
        let server = server([Reply::call("look", json!({})), lisbon()]).await;
        let ledger = Ledger::default();
        let look = gated("look", EffectClass::ReadOnly, &ledger, &Arc::new(Semaphore::new(9)));
        let run = builder(&server, wire).tool(look).build().run_typed::<City>("which?").start();
        let handle = run.handle();
        assert_eq!(run.await.into_value().map(|city| city.people), Some(550_000));
        drop(close(&server, &handle, &ledger).await);
        assert_eq!(ledger.count("commit"), 1);
        assert_eq!(forced(wire, &body(&server, 1)).0, any, "{wire:?}");
    }
}

/// S4.11, S5.1: the model learns what does not fit, arguments or text, and corrects it; each is a round.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_corrected() {
    for wire in WIRES {
        let server =
            server([answer(json!({"name": "Lisbon"})), Reply::text("It is Lisbon."), lisbon()]).await;
        let run = builder(&server, wire).build().run_typed::<City>("which?").start();
        let handle = run.handle();
        assert!(matches!(run.await, Outcome::Done(_)), "{wire:?}");
        let (_, receipt) = close(&server, &handle, &Ledger::default()).await;
        let of = |index| body(&server, index).to_string();
        assert!(of(1).contains("people") && of(1).contains("Correct them"), "{wire:?}: {}", of(1));
        assert!(of(2).contains("It is Lisbon.") && of(2).contains("not JSON"), "{wire:?}: {}", of(2));
        assert_eq!(receipt.rounds, 3);
    }
}

/// S4.11, S1.10: after the allowed repairs the run fails, and its history stays usable.
#[tokio::test]
async fn repairs_are_bounded() {
    for (repairs, rounds) in [(0, 1), (1, 2), (2, 3)] {
        let server = server([Reply::text("no"), answer(json!({})), Reply::text("no")]).await;
        let agent = builder(&server, ServedWire::Anthropic).build();
        let run = agent.typed::<City>().repairs(repairs).run("which?").start();
        let handle = run.handle();
        let Outcome::Failed(error) = run.await else { panic!() };
        assert_eq!(error.code(), "answer");
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(server.requests().len(), rounds, "{repairs}");
        continues(&agent, &outcome).await;
    }
}

/// S4.11: a text is taken where it is JSON that fits, also in a fence: some servers do not force tools.
#[tokio::test]
async fn json_in_the_text_is_taken() {
    for text in [r#"{"name":"Lisbon","people":1}"#, "```json\n{\"name\":\"Lisbon\",\"people\":1}\n```"] {
        let server = server([Reply::text(text)]).await;
        let typed = builder(&server, ServedWire::OpenAi).build().run_typed::<City>("which?").await;
        assert_eq!(typed.into_value(), Some(City { name: "Lisbon".into(), people: 1 }));
    }
}

/// S4.11: types that are no objects are answers too.
#[tokio::test]
async fn an_answer_need_not_be_an_object() {
    #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    #[serde(tag = "kind")]
    enum Shape {
        Circle { r: u32 },
        Dot,
    }
    for wire in WIRES {
        let many = json!({"answer": [{"kind": "Circle", "r": 3}, {"kind": "Dot"}]});
        let server = server([answer(many), answer(json!({"answer": 7}))]).await;
        let agent = builder(&server, wire).build();
        let shapes = agent.run_typed::<Vec<Shape>>("which?").await.into_value();
        assert_eq!(shapes, Some(vec![Shape::Circle { r: 3 }, Shape::Dot]), "{wire:?}");
        assert_eq!(agent.run_typed::<u32>("how many?").await.into_value(), Some(7), "{wire:?}");
    }
}

/// S3.1, S2.1, S2.2: a stop ends a typed run as any, and what was stopped is taken up again with its type.
#[tokio::test]
async fn a_stop_works_and_the_run_is_taken_up() {
    for wire in WIRES {
        let server = server([Reply::call("look", json!({})), lisbon()]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let look = gated("look", EffectClass::ReadOnly, &ledger, &gate);
        let agent = builder(&server, wire).tool(look).build().typed::<City>();
        let run = agent.run("which?").start();
        let handle = run.handle();
        started(&handle, 1).await;
        handle.stop(StopRequest::now());
        let Outcome::Stopped(stopped) = run.await else { panic!("{wire:?}") };
        assert_eq!(stopped.receipt().calls[0].status, CallStatus::Stopped);
        drop(close(&server, &handle, &ledger).await);
        gate.add_permits(9);
        let again = agent.resume(&Outcome::<City>::Stopped(stopped)).start();
        let handle = again.handle();
        assert!(matches!(again.await, Outcome::Done(_)), "{wire:?}");
        drop(close(&server, &handle, &ledger).await);
    }
}

/// S2.1, S12.1: repairs are rounds: a stop between them, and the limit on rounds, end the run as stopped.
#[tokio::test]
async fn repairs_are_rounds() {
    let server = server([Reply::text("no"), Reply::text("no"), lisbon()]).await;
    let limits = Limits::default().with_max_rounds(2);
    let run = builder(&server, ServedWire::Gemini).limits(limits).build().run_typed::<City>("which?").start();
    let handle = run.handle();
    assert!(matches!(run.await, Outcome::Stopped(_)));
    let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), receipt.rounds), (Ending::Stopped, 2));
}

/// S4.11: a model's own settings outrank the choice, and one that thinks is not forced where its provider
/// refuses that.
#[tokio::test]
async fn a_models_own_choice_stands() {
    let server = server([lisbon(), lisbon()]).await;
    let auto = openai::model("m").base_url(server.url()).tool_choice(&ToolChoice::Auto);
    let thinks = anthropic::model("m").base_url(server.url()).thinking(2048);
    assert!(matches!(Agent::builder(auto).build().run_typed::<City>("?").await, Outcome::Done(_)));
    assert!(matches!(Agent::builder(thinks).build().run_typed::<City>("?").await, Outcome::Done(_)));
    assert_eq!(body(&server, 0)["tool_choice"], "auto");
    assert!(body(&server, 1).get("tool_choice").is_none());
}

/// S4.2: where it is asked for, a reply may hold one call only, in each wire's words.
#[tokio::test]
async fn one_call_at_a_time_is_said_in_each_wires_words() {
    let server = server([lisbon(), lisbon(), lisbon()]).await;
    let url = server.url();
    let chat = Agent::builder(openai::model("m").base_url(&url).one_call_at_a_time()).build();
    let other = Agent::builder(anthropic::model("m").base_url(&url).one_call_at_a_time()).build();
    let items =
        Agent::builder(safepoint_models::responses::model("m").base_url(&url).one_call_at_a_time()).build();
    for agent in [chat, other, items] {
        assert!(matches!(agent.run_typed::<City>("?").await, Outcome::Done(_)));
    }
    assert_eq!(body(&server, 0)["parallel_tool_calls"], false);
    assert_eq!(body(&server, 1)["tool_choice"]["disable_parallel_tool_use"], true);
    assert_eq!(body(&server, 2)["parallel_tool_calls"], false);
}
