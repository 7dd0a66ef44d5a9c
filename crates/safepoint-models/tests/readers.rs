//! What Responses and Gemini make of what a provider may send: each row a stream, and the deltas that it becomes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use futures_util::StreamExt as _;
use safepoint::{
    History, Model, Usage,
    history::Message,
    message::ToolCall,
    model::{Delta, Finish, ModelErrorKind, ModelSpec},
    usage::UsageSource,
};
use safepoint_models::{gemini, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::ModelServer,
};
use serde_json::{Value, json};

/// How a stream ended: as the provider said, or with a failure of this kind and these words.
#[derive(Debug, PartialEq)]
enum End {
    Said(Finish),
    Failed(ModelErrorKind, &'static str),
}

/// What a model makes of these events; what only tells how the exchange goes is left out.
async fn read(
    model: fn(&str) -> Box<dyn Model>,
    events: &[Value],
) -> Vec<Result<Delta, (ModelErrorKind, String)>> {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::default().fault(ReplyFault::Raw(body.into_bytes()));
    let server = ModelServer::start(Script::of([reply])).await.unwrap();
    let mut history = History::new();
    history.push(Message::User("go".into()));
    let mut stream = model(&server.url()).open(ModelSpec::default()).stream(&history);
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(Delta::Sent | Delta::Opened | Delta::CallPreview { .. } | Delta::CallArguments { .. }) => {}
            Ok(Delta::Usage(usage)) if usage.source == UsageSource::Estimated => {}
            Ok(delta) => deltas.push(Ok(delta)),
            Err(error) => deltas.push(Err((error.kind(), error.to_string()))),
        }
    }
    deltas
}

async fn becomes(model: fn(&str) -> Box<dyn Model>, events: Value, expected: &[Delta], end: End) {
    let events = events.as_array().unwrap();
    let mut deltas = read(model, events).await;
    match (deltas.pop().unwrap(), end) {
        (Ok(Delta::Ended(finish)), End::Said(said)) => assert_eq!(finish, said, "{events:?}"),
        (Err((kind, words)), End::Failed(expected, says)) => {
            assert_eq!(kind, expected, "{words}");
            assert!(words.contains(says), "{words}");
        }
        (last, end) => panic!("{last:?} is not {end:?}: {events:?}"),
    }
    let deltas: Vec<Delta> = deltas.into_iter().map(Result::unwrap).collect();
    assert_eq!(deltas, expected, "{events:?}");
}

fn call(id: &str, args: &str) -> Delta {
    Delta::CallReady(ToolCall { id: id.into(), name: "f".into(), args: args.into() })
}

fn text(text: &str) -> Delta {
    Delta::Text(text.into())
}

fn used(input: u64, cached_input: u64, output: u64, reasoning: u64) -> Delta {
    Delta::Usage(Usage::new(input, output).with_cached_input(cached_input).with_reasoning(reasoning))
}

fn responses_model(url: &str) -> Box<dyn Model> {
    Box::new(responses::model("m").base_url(url))
}

fn gemini_model(url: &str) -> Box<dyn Model> {
    Box::new(gemini::model("m").base_url(url))
}

fn done(item: Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed"}})
}

const NATURAL: End = End::Said(Finish::Natural);

/// S5.1, S3.9: items become blocks, reasoning is sealed only where it is encrypted, and the last event has the bill.
#[tokio::test]
async fn the_items_of_a_response_become_blocks() {
    let sealed =
        json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e", "status": null});
    let seal = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"});
    let part = |index: u64| json!({"type": "response.reasoning_summary_part.added", "summary_index": index});
    let thought = |text: &str| json!({"type": "response.reasoning_summary_text.delta", "delta": text});
    let bare = json!({"type": "reasoning", "id": "rs", "summary": []});
    let piece = json!({"type": "response.function_call_arguments.delta", "delta": "{\"a\":1}"});
    let asked = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
    let bill = json!({"input_tokens": 9, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 5}});
    for (events, deltas) in [
        (json!([done(sealed), completed()]), vec![Delta::ReasoningSeal(seal)]),
        (json!([done(bare), completed()]), vec![]),
        (
            json!([part(0), thought("one"), part(1), thought("two"), completed()]),
            vec![
                Delta::Reasoning("one".into()),
                Delta::Reasoning("\n\n".into()),
                Delta::Reasoning("two".into()),
            ],
        ),
        (json!([piece, done(asked), completed()]), vec![call("c", "{\"a\":1}")]),
        (json!([{"type": "response.refusal.delta", "delta": "no"}, completed()]), vec![text("no")]),
        (json!([{"type": "response.web_search_call.searching", "item_id": "w"}, completed()]), vec![]),
        (
            json!([{"type": "response.completed", "response": {"status": "completed", "usage": bill}}]),
            vec![used(9, 4, 7, 5)],
        ),
    ] {
        becomes(responses_model, events, &deltas, NATURAL).await;
    }
}

/// S1.10: each end of a response under its own name; a cut, a failure and a cancel from elsewhere are no answers.
#[tokio::test]
async fn the_ends_of_a_response_are_told_apart() {
    use ModelErrorKind::{Broken, Malformed, Provider};
    let over = |kind: &str, response: Value| json!([{"type": kind, "response": response}]);
    let incomplete = |reason: &str| {
        over("response.incomplete", json!({"status": "incomplete", "incomplete_details": {"reason": reason}}))
    };
    for (events, end) in [
        (incomplete("max_output_tokens"), End::Said(Finish::Length)),
        (incomplete("content_filter"), End::Said(Finish::Filtered)),
        (incomplete("else"), End::Said(Finish::Other("else".into()))),
        (
            over("response.failed", json!({"status": "failed", "error": {"message": "out of luck"}})),
            End::Failed(Provider, "out of luck"),
        ),
        (
            over("response.cancelled", json!({"status": "cancelled"})),
            End::Failed(Provider, "cancelled at the provider"),
        ),
        (
            over("response.incomplete", json!({"status": "cancelled", "incomplete_details": null})),
            End::Failed(Provider, "cancelled at the provider"),
        ),
        (json!([{"type": "error", "code": "x", "message": "plain"}]), End::Failed(Provider, "plain")),
        (json!([{"type": "error", "error": {"message": "nested"}}]), End::Failed(Provider, "nested")),
        (json!([{"no": "type"}]), End::Failed(Malformed, "type")),
        (over("response.created", json!({"id": "r"})), End::Failed(Broken, "ended before its end")),
    ] {
        becomes(responses_model, events, &[], end).await;
    }
}

/// S2.2: an event that comes twice, as after a broken stream, is taken once.
#[tokio::test]
async fn an_event_is_taken_once() {
    let piece = |number: u64, text: &str| json!({"type": "response.output_text.delta", "sequence_number": number, "delta": text});
    let events =
        json!([piece(3, "a"), piece(4, "b"), piece(3, "a"), piece(4, "b"), piece(5, "c"), completed()]);
    becomes(responses_model, events, &[text("a"), text("b"), text("c")], NATURAL).await;
}

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "responseId": "r1"})
}

fn finished(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason}], "usageMetadata": {"promptTokenCount": 1}})
}

/// S5.1, S3.9: parts become blocks, a signature seals what it came with, figures are cumulative.
#[tokio::test]
async fn the_parts_of_a_content_become_blocks() {
    let seal =
        |of: &str| Delta::ReasoningSeal(json!({"type": "thought_signature", "of": of, "signature": "s"}));
    let asks = |id: Value| json!({"functionCall": {"id": id, "name": "f", "args": {"b": 1, "a": 2}}});
    let mut signed = asks(Value::Null);
    signed["thoughtSignature"] = json!("s");
    let mut anonymous = chunk(json!([asks(Value::Null)]));
    anonymous["responseId"].take();
    let figures = json!({"promptTokenCount": 9, "toolUsePromptTokenCount": 2, "cachedContentTokenCount": 4,
        "candidatesTokenCount": 7, "thoughtsTokenCount": 5});
    let args = "{\"a\":2,\"b\":1}";
    for (first, deltas) in [
        (
            chunk(json!([{"text": "hm", "thought": true}, {"text": "so"}])),
            vec![Delta::Reasoning("hm".into()), text("so")],
        ),
        (chunk(json!([{"text": "so", "thoughtSignature": "s"}])), vec![text("so"), seal("text")]),
        (chunk(json!([{"text": "", "thoughtSignature": "s"}])), vec![seal("text")]),
        (
            chunk(json!([signed, asks(Value::Null), asks(json!("own"))])),
            vec![seal("call"), call("gemini_r1_0", args), call("gemini_r1_1", args), call("own", args)],
        ),
        (anonymous, vec![call("", args)]),
        (chunk(json!([{"functionCall": {"name": "f"}}])), vec![call("gemini_r1_0", "{}")]),
        (json!({ "usageMetadata": figures }), vec![used(11, 4, 12, 5)]),
    ] {
        let expected: Vec<Delta> = deltas.into_iter().chain([used(1, 0, 0, 0)]).collect();
        becomes(gemini_model, json!([first, finished("STOP")]), &expected, NATURAL).await;
    }
}

/// S1.10: each end of a content under its own name; the bill is waited for also behind the reason to finish.
#[tokio::test]
async fn the_ends_of_a_content_are_told_apart() {
    use ModelErrorKind::{Broken, Provider};
    let late =
        json!([{"candidates": [{"finishReason": "STOP"}]}, {"usageMetadata": {"promptTokenCount": 1}}]);
    becomes(gemini_model, late, &[used(1, 0, 0, 0)], NATURAL).await;
    for (reason, finish) in [
        ("MAX_TOKENS", Finish::Length),
        ("SAFETY", Finish::Filtered),
        ("RECITATION", Finish::Filtered),
        ("NEW_ONE", Finish::Other("NEW_ONE".into())),
    ] {
        becomes(gemini_model, json!([finished(reason)]), &[used(1, 0, 0, 0)], End::Said(finish)).await;
    }
    for (events, end) in [
        (json!([{"promptFeedback": {"blockReason": "SAFETY"}}]), End::Said(Finish::Filtered)),
        (json!([finished("MALFORMED_FUNCTION_CALL")]), End::Failed(Provider, "MALFORMED_FUNCTION_CALL")),
        (json!([{"error": {"code": 503, "message": "overloaded"}}]), End::Failed(Provider, "overloaded")),
        (json!([{"responseId": "r"}]), End::Failed(Broken, "ended before its end")),
    ] {
        becomes(gemini_model, events, &[], end).await;
    }
}
