//! The arguments of a call as they stream, on every wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use futures_util::StreamExt as _;
use safepoint::{
    History, Model,
    history::Message,
    model::{Delta, ModelSpec},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::ModelServer,
};
use serde_json::{Value, json};

/// An id, a name, and a text.
type Named = (String, String, String);

/// The fragments, and the calls that they make.
async fn streamed(model: &dyn Model) -> (Vec<Named>, Vec<Named>) {
    let mut history = History::new();
    history.push(Message::User("go".into()));
    let (mut fragments, mut calls) = (Vec::new(), Vec::new());
    let mut stream = model.open(ModelSpec::default()).stream(&history);
    while let Some(delta) = stream.next().await {
        match delta.unwrap() {
            Delta::CallArguments { id, name, text } => {
                fragments.push((id.to_string(), name.to_string(), text))
            }
            Delta::CallReady(call) => calls.push((call.id.to_string(), call.name, call.args)),
            _ => {}
        }
    }
    (fragments, calls)
}

/// A server whose reply is these events, as they are.
async fn server_of(events: &[Value]) -> ModelServer {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let content_type = "text/event-stream".to_owned();
    let reply = Reply::default().fault(ReplyFault::Answer { content_type, body });
    ModelServer::start(Script::of([reply])).await.unwrap()
}

fn named(id: &str, name: &str, text: &str) -> Named {
    (id.into(), name.into(), text.into())
}

/// S11.8: on every wire the fragments of a call's arguments are its arguments, under its id and its name.
#[tokio::test]
async fn the_fragments_of_arguments_are_the_arguments() {
    let args = json!({"to": "the landlord", "amount": 1200, "note": "rent, \"May\""});
    let script = Script { repeat: true, ..Script::of([Reply::call("pay", args.clone())]) };
    let server = ModelServer::start(script).await.unwrap();
    let models: [Box<dyn Model>; 4] = [
        Box::new(openai::model("any").base_url(server.url())),
        Box::new(responses::model("any").base_url(server.url())),
        Box::new(anthropic::model("any").base_url(server.url())),
        Box::new(gemini::model("any").base_url(server.url())),
    ];
    for model in models {
        let (fragments, mut calls) = streamed(&*model).await;
        assert_eq!(calls.len(), 1);
        let (id, name, whole) = calls.remove(0);
        let joined: String = fragments.iter().map(|(_, _, text)| text.as_str()).collect();
        assert!(!fragments.is_empty(), "{}", model.name());
        assert_eq!(joined, whole, "{}", model.name());
        assert_eq!(serde_json::from_str::<Value>(&joined).unwrap(), args);
        assert!(fragments.iter().all(|(of, tool, _)| (of, tool) == (&id, &name)), "{fragments:?}");
    }
}

/// S11.8: two calls of a response whose arguments arrive by turns keep their own, under their own ids.
#[tokio::test]
async fn arguments_that_arrive_by_turns_belong_to_their_calls() {
    let item = |index: u32, args: &str| {
        let (id, call_id) = (format!("fc_{index}"), format!("call_{index}"));
        json!({"type": "function_call", "id": id, "call_id": call_id, "name": "pay", "arguments": args})
    };
    let added = |index: u32| json!({"type": "response.output_item.added", "output_index": index, "item": item(index, "")});
    let delta = |index: u32, text: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": text});
    // The first says its arguments again as a whole, the second does not.
    let done = |index: u32, args: &str| json!({"type": "response.output_item.done", "output_index": index, "item": item(index, args)});
    let server = server_of(&[
        added(0),
        added(1),
        delta(0, "{\"to\":"),
        delta(1, "{\"to\": "),
        delta(0, "\"a\"}"),
        delta(1, "\"b\"}"),
        done(0, "{\"to\":\"a\"}"),
        done(1, ""),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}}),
    ])
    .await;
    let (fragments, calls) = streamed(&responses::model("any").base_url(server.url())).await;
    let expected = [
        named("call_0", "pay", "{\"to\":"),
        named("call_1", "pay", "{\"to\": "),
        named("call_0", "pay", "\"a\"}"),
        named("call_1", "pay", "\"b\"}"),
    ];
    assert_eq!(fragments, expected);
    let whole = [named("call_0", "pay", "{\"to\":\"a\"}"), named("call_1", "pay", "{\"to\": \"b\"}")];
    assert_eq!(calls, whole);
}

/// S11.8: all fragments of one call have one id, also where the server gives it only when some have arrived.
#[tokio::test]
async fn the_fragments_of_one_call_have_one_id() {
    let chunk = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let server = server_of(&[
        chunk(json!({"index": 0, "function": {"name": "pay", "arguments": "{\"to\":"}})),
        chunk(json!({"index": 0, "id": "call_0", "function": {"arguments": "\"a\"}"}})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ])
    .await;
    let (fragments, calls) = streamed(&openai::model("any").base_url(server.url())).await;
    assert_eq!(fragments, [named("", "pay", "{\"to\":"), named("", "pay", "\"a\"}")]);
    assert_eq!(calls, [named("call_0", "pay", "{\"to\":\"a\"}")]);
}
