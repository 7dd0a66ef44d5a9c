//! What it says on each wire.

use std::time::Duration;

use safepoint_testkit::{
    script::{Reply, Script},
    server::{ModelServer, ServedWire},
};
use serde_json::{Value, json};

use super::peer::{Peer, WIRES, Whole, ask};

async fn says(reply: Reply, wire: ServedWire, body: &Value) -> super::peer::Response {
    let server = ModelServer::start(Script::of([reply])).await.unwrap();
    Peer::to(server.address()).await.exchange(wire, body).await
}

fn rich() -> Reply {
    Reply::text("héllo wörld")
        .reasoning("hm, well")
        .redacted("b3BhcXVl")
        .paced(4, Duration::ZERO)
        .and_call_as("id_1", "pay", json!({"euros": 5}))
        .usage(7, 3)
}

/// S2.2: a chat-completions stream as OpenAI and its like send it.
#[tokio::test]
async fn openai_streams() {
    let response = says(rich(), ServedWire::OpenAi, &ask("hi")).await;
    assert!(response.head.contains("text/event-stream") && response.whole == Whole::Complete);
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    let events = response.events();
    let deltas = |field: &str| -> String {
        events.iter().filter_map(|event| event["choices"][0]["delta"][field].as_str()).collect()
    };
    assert_eq!(deltas("content"), "héllo wörld");
    assert_eq!(deltas("reasoning_content"), "hm, well");
    let call = |field: &str| -> String {
        let of = |event: &Value| {
            event["choices"][0]["delta"]["tool_calls"][0]["function"][field].as_str().map(ToOwned::to_owned)
        };
        events.iter().filter_map(of).collect()
    };
    assert_eq!((call("name").as_str(), call("arguments").as_str()), ("pay", r#"{"euros":5}"#));
    assert!(events.iter().all(|event| event["object"] == "chat.completion.chunk"));
    let [.., finish, usage] = events.as_slice() else { panic!() };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(10)));
}

/// S3.9: usage is sent only to those who ask for it.
#[tokio::test]
async fn openai_sends_usage_only_when_asked() {
    let mut body = ask("hi");
    body.as_object_mut().unwrap().remove("stream_options");
    let response = says(rich(), ServedWire::OpenAi, &body).await;
    assert!(!response.text().contains("usage"), "{}", response.text());
}

/// S2.2: a messages stream as Anthropic sends it.
#[tokio::test]
async fn anthropic_streams() {
    let response = says(rich(), ServedWire::Anthropic, &ask("hi")).await;
    let events = response.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let named: Vec<String> = response
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("event: ").map(ToOwned::to_owned))
        .collect();
    assert_eq!(kinds, named);
    assert_eq!((kinds[0], kinds[1], kinds[kinds.len() - 1]), ("message_start", "ping", "message_stop"));
    let blocks: Vec<&str> =
        events.iter().filter_map(|event| event["content_block"]["type"].as_str()).collect();
    assert_eq!(blocks, ["thinking", "redacted_thinking", "text", "tool_use"]);
    let joined = |field: &str| -> String {
        events.iter().filter_map(|event| event["delta"][field].as_str()).collect()
    };
    assert_eq!(joined("text"), "héllo wörld");
    assert_eq!((joined("thinking").as_str(), joined("signature").is_empty()), ("hm, well", false));
    assert_eq!(joined("partial_json"), r#"{"euros":5}"#);
    let delta = &events[events.len() - 2];
    assert_eq!(
        (&delta["delta"]["stop_reason"], &delta["usage"]["output_tokens"]),
        (&json!("tool_use"), &json!(3))
    );
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 7);
}

/// S2.2: the same reply without a stream.
#[tokio::test]
async fn whole_messages_hold_the_same() {
    let mut body = ask("hi");
    body["stream"] = json!(false);
    let chat = says(rich(), ServedWire::OpenAi, &body).await.json();
    let message = &chat["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["reasoning_content"]),
        (&json!("héllo wörld"), &json!("hm, well"))
    );
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"euros":5}"#);
    assert_eq!(chat["usage"]["prompt_tokens"], 7);
    let talk = says(rich(), ServedWire::Anthropic, &body).await.json();
    let kinds: Vec<&Value> = talk["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use"]);
    assert_eq!(talk["content"][3]["input"], json!({"euros": 5}));
}

/// S5.1: ids that are missing or the same are sent as they were written.
#[tokio::test]
async fn doubtful_ids_are_sent_as_written() {
    let calls = Reply::default()
        .and_call_as("a", "f", json!({}))
        .and_call_as("a", "f", json!({}))
        .and_call_as("", "f", json!("{no json"));
    let response = says(calls, ServedWire::OpenAi, &ask("hi")).await;
    let text = response.text();
    assert_eq!(text.matches(r#""id":"a""#).count(), 2);
    assert_eq!(text.matches(r#""name":"f""#).count(), 3);
    assert!(text.contains("{no"));
}

/// S2.2: explicit pieces are sent as they are cut.
#[tokio::test]
async fn pieces_are_sent_as_cut() {
    let response = says(Reply::pieces(["a", "bc", "d"]), ServedWire::OpenAi, &ask("hi")).await;
    let contents: Vec<String> = response
        .events()
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(ToOwned::to_owned))
        .collect();
    assert_eq!(contents, ["", "a", "bc", "d"]);
}

/// S13: a script written as JSON: conditions first, then in order, then the fallback; or again from the
/// start.
#[tokio::test]
async fn scripts_choose_by_condition_then_in_order() {
    let script = r#"{"replies": [
        {"text": "one"}, {"when": {"user": "secret"}, "text": "shh"},
        {"when": {"results": 1}, "text": "thanks"}, {"text": "two", "chunk_chars": 1}]}"#;
    let mut script = Script::from_json(script).unwrap();
    for (repeat, last) in [(false, "You said: d"), (true, "one")] {
        script.repeat = repeat;
        let server = ModelServer::start(script.clone()).await.unwrap();
        let mut peer = Peer::to(server.address()).await;
        for (asked, answered) in [("a", "one"), ("a secret", "shh"), ("c", "two"), ("d", last)] {
            let mut body = ask(asked);
            body["stream"] = json!(false);
            let response = peer.exchange(ServedWire::OpenAi, &body).await.json();
            assert_eq!(response["choices"][0]["message"]["content"], answered);
        }
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let body = json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "r"}]});
        assert!(peer.exchange(ServedWire::OpenAi, &body).await.text().contains("thanks"));
    }
    assert!(Script::from_json(r#"{"replys": []}"#).is_err());
}

/// S13: the practice model does what it says, with the tools that it is offered.
#[tokio::test]
async fn the_practice_model_runs_what_it_is_asked_to() {
    let server = ModelServer::start(Script::practice()).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let tools = [tool("shell"), tool("sleep")];
    for (says, called, args) in
        [("please run: ls -l", "shell", r#"{"command":"ls -l"}"#), ("sleep: 3", "sleep", r#"{"seconds":3}"#)]
    {
        let mut body = ask(says);
        body["tools"] = json!(tools);
        body["stream"] = json!(false);
        let message = peer.exchange(ServedWire::OpenAi, &body).await.json()["choices"][0]["message"].clone();
        let function = &message["tool_calls"][0]["function"];
        assert_eq!((&function["name"], &function["arguments"]), (&json!(called), &json!(args)));
        body["messages"].as_array_mut().unwrap().push(message.clone());
        let result =
            json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "42 files"});
        body["messages"].as_array_mut().unwrap().push(result);
        assert!(peer.exchange(ServedWire::OpenAi, &body).await.text().contains("42 files"));
    }
    for says in ["hello", "read: x"] {
        let mut body = ask(says);
        body["tools"] = json!([{"name": "shell", "input_schema": {"type": "object"}}]);
        body["stream"] = json!(false);
        assert!(peer.exchange(WIRES[1], &body).await.text().contains("practice model"));
    }
}
