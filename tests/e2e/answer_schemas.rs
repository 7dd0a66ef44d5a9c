//! Answers of a type by the provider's own schema, on every wire that has one; the tool where it cannot say it.

use std::{collections::BTreeMap, sync::Arc};

use safepoint::{
    Agent, AgentBuilder, History, Limits, Outcome,
    model::{AnswerFormat, ModelSpec, Parameters, ReasoningEffort, ToolDecl},
};
use safepoint_models::{HttpModel, ToolChoice, TypedAnswers, Wire, anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::Reply,
    server::{ModelServer, ServedWire},
};
use serde_json::{Value, json};

use super::world::{Ledger, WIRES, close, continues, server};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
    people: Option<u64>,
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Flags {
    by_name: BTreeMap<String, bool>,
}

const LISBON: &str = r#"{"name": "Lisbon", "people": null}"#;

fn lisbon() -> City {
    City { name: "Lisbon".into(), people: None }
}

pub(crate) fn builder(server: &ModelServer, wire: ServedWire, how: TypedAnswers) -> AgentBuilder {
    fn set<W: Wire>(server: &ModelServer, how: TypedAnswers) -> AgentBuilder {
        Agent::builder(HttpModel::<W>::new("m").base_url(server.url()).typed_answers(how))
    }
    match wire {
        ServedWire::OpenAi => set::<openai::Chat>(server, how),
        ServedWire::Anthropic => set::<anthropic::Messages>(server, how),
        ServedWire::Responses => set::<responses::Stateless>(server, how),
        ServedWire::Gemini => set::<gemini::GenerateContent>(server, how),
    }
}

/// The schema in a request, if it holds one, and whether it holds the answer's tool.
fn asked(wire: ServedWire, body: &Value) -> (Value, bool) {
    let schema = match wire {
        ServedWire::OpenAi => &body["response_format"]["json_schema"]["schema"],
        ServedWire::Anthropic => &body["output_config"]["format"]["schema"],
        ServedWire::Responses => &body["text"]["format"]["schema"],
        ServedWire::Gemini => &body["generationConfig"]["responseJsonSchema"],
    };
    (schema.clone(), body["tools"].to_string().contains("final_answer"))
}

fn body(server: &ModelServer, index: usize) -> Value {
    (*server.requests()[index].body).clone()
}

/// S4.23, S3.1: the request holds the schema and no tool for the answer, the strict server takes it, and the text is the answer.
#[tokio::test]
async fn an_answer_is_asked_for_by_schema_on_every_wire() {
    for wire in WIRES {
        let server = server([Reply::text(LISBON), Reply::text("on")]).await;
        let agent = builder(&server, wire, TypedAnswers::Schema).build();
        let run = agent.run_typed::<City>("which?").start();
        let handle = run.handle();
        let Outcome::Done(said) = run.await else { panic!("{wire:?}") };
        assert_eq!(said.value(), &lisbon(), "{wire:?}");
        let (schema, has_tool) = asked(wire, &body(&server, 0));
        assert_eq!(schema["properties"]["name"]["type"], "string", "{wire:?}: {schema}");
        assert!(!has_tool && body(&server, 0)["tool_choice"].is_null(), "{wire:?}");
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!(receipt.rounds, 1);
        continues(&agent, &outcome).await;
    }
}

/// S4.23: a type that a wire's rules cannot say is asked for by the tool, on that wire alone.
#[tokio::test]
async fn what_a_schema_cannot_say_is_asked_for_by_the_tool() {
    for wire in WIRES {
        let flags = json!({"by_name": {"a": true}});
        let by_schema = wire == ServedWire::Gemini;
        let reply =
            if by_schema { Reply::text(flags.to_string()) } else { Reply::call("final_answer", flags) };
        let server = server([reply]).await;
        let value = builder(&server, wire, TypedAnswers::Schema)
            .build()
            .run_typed::<Flags>("which?")
            .await
            .into_value();
        assert_eq!(value.map(|flags| flags.by_name["a"]), Some(true), "{wire:?}");
        let (schema, has_tool) = asked(wire, &body(&server, 0));
        assert_eq!((schema.is_object(), has_tool), (by_schema, !by_schema), "{wire:?}");
    }
}

/// S4.23, S5.1: a text that does not fit goes back to the model, which corrects it; the request still holds the schema.
#[tokio::test]
async fn a_text_that_does_not_fit_is_corrected() {
    for wire in WIRES {
        let server = server([Reply::text(r#"{"name": 3}"#), Reply::text(LISBON)]).await;
        let run = builder(&server, wire, TypedAnswers::Schema).build().run_typed::<City>("which?").start();
        let handle = run.handle();
        assert_eq!(run.await.into_value(), Some(lisbon()), "{wire:?}");
        assert!(body(&server, 1).to_string().contains("was not taken"), "{wire:?}");
        assert!(asked(wire, &body(&server, 1)).0.is_object(), "{wire:?}");
        drop(close(&server, &handle, &Ledger::default()).await);
    }
}

/// S4.23, S5.3: a run that was asked by the tool, and whose history has its call, continues with the tool.
#[tokio::test]
async fn a_run_keeps_the_way_in_which_it_was_asked() {
    for wire in WIRES {
        let wrong = Reply::call("final_answer", json!({"name": 3}));
        let right = Reply::call("final_answer", json!({"name": "Lisbon", "people": null}));
        let server = server([wrong, right]).await;
        let limits = Limits::default().with_max_rounds(1);
        let by_tool = builder(&server, wire, TypedAnswers::Tool).limits(limits).build();
        let outcome = by_tool.run_typed::<City>("which?").await;
        assert!(matches!(outcome, Outcome::Stopped(_)), "{wire:?}: {outcome:?}");
        let by_schema = builder(&server, wire, TypedAnswers::Schema).build().typed::<City>();
        assert_eq!(by_schema.resume(&outcome).await.into_value(), Some(lisbon()), "{wire:?}");
        let (schema, has_tool) = asked(wire, &body(&server, 1));
        assert!(schema.is_null() && has_tool, "{wire:?}");
    }
}

/// S4.23: at the provider's own address a known model is asked by schema; no other is, nor one whose settings say otherwise.
#[test]
fn only_known_models_are_asked_by_schema_unless_set() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]});
    let tool =
        |name: &str| ToolDecl { name: name.into(), description: "d".into(), parameters: schema.clone() };
    let answer = AnswerFormat { tool: "final_answer".into(), schema: Arc::new(schema.clone()) };
    let alone =
        ModelSpec { tools: Arc::from([tool("final_answer")]), answer: Some(answer), ..ModelSpec::default() };
    let beside = ModelSpec { tools: Arc::from([tool("look"), tool("final_answer")]), ..alone.clone() };
    let is_asked = |wire: ServedWire, bytes: Vec<Vec<u8>>| {
        let (schema, has_tool) = asked(wire, &serde_json::from_slice(&bytes[0]).unwrap());
        assert_ne!(schema.is_object(), has_tool);
        schema.is_object()
    };
    let history = History::new();
    let chat = |model| is_asked(ServedWire::OpenAi, openai::encoded(&model, &beside, &[&history]));
    for (name, known) in [
        ("gpt-5.2", true),
        ("gpt-4o-mini", true),
        ("gpt-4o-2024-05-13", false),
        ("gpt-4-turbo", false),
        ("o3-mini", true),
        ("o1-mini", false),
        ("llama", false),
    ] {
        assert_eq!(chat(openai::model(name)), known, "{name}");
    }
    assert!(!chat(openai::model("gpt-5.2").base_url("http://127.0.0.1:1/v1")));
    assert!(!chat(openai::model("gpt-5.2").typed_answers(TypedAnswers::Tool)));
    assert!(!chat(openai::model("gpt-5.2").tool_choice(&ToolChoice::Required)));
    assert!(!chat(openai::model("gpt-5.2").extra("response_format", json!({"type": "json_object"}))));
    assert!(chat(openai::model("x").base_url("http://127.0.0.1:1/v1").typed_answers(TypedAnswers::Schema)));
    let talk = |model| is_asked(ServedWire::Anthropic, anthropic::encoded(&model, &beside, &[&history]));
    for (name, known) in [
        ("claude-sonnet-4-5", true),
        ("claude-opus-4-6-20260101", true),
        ("claude-sonnet-5", true),
        ("claude-sonnet-4-20250514", false),
        ("claude-3-5-haiku-latest", false),
    ] {
        assert_eq!(talk(anthropic::model(name)), known, "{name}");
    }
    let effort = anthropic::model("claude-sonnet-4-5").extra("output_config", json!({"effort": "low"}));
    let bytes = anthropic::encoded(&effort, &beside, &[&history]);
    assert!(String::from_utf8_lossy(&bytes[0]).contains(r#""effort":"low""#));
    assert!(is_asked(ServedWire::Anthropic, bytes));
    let low = Parameters::new().reasoning_effort(ReasoningEffort::Low);
    let set = anthropic::model("claude-sonnet-4-5").parameters(low);
    let bytes = anthropic::encoded(&set, &beside, &[&history]);
    assert!(String::from_utf8_lossy(&bytes[0]).contains(r#""effort":"low""#), "it stands beside the schema");
    assert!(is_asked(ServedWire::Anthropic, bytes));
    let items = |model| is_asked(ServedWire::Responses, responses::encoded(&model, &beside, &[&history]));
    assert!(items(responses::model("gpt-5.2").extra("text", json!({"verbosity": "low"}))));
    assert!(!items(responses::model("gpt-5.2").extra("text", json!({"format": {"type": "text"}}))));
    let contents = |name: &str, spec| {
        is_asked(ServedWire::Gemini, gemini::encoded(&gemini::model(name), spec, &[&history]))
    };
    assert!(contents("gemini-2.5-pro", &alone) && contents("gemini-3-pro-preview", &beside));
    assert!(!contents("gemini-2.5-pro", &beside) && !contents("gemini-2.0-flash", &alone));
}
