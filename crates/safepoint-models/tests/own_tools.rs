//! What a provider did itself in a message, such as a search, and where its text is from: kept, and sent back as it came.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::sync::Arc;

use futures_util::StreamExt as _;
use safepoint::{
    Agent, History, Model, Usage,
    history::Message,
    message::{AssistantMessage, Block, Reasoning, ToolCall},
    model::{Delta, ModelSpec, ToolDecl},
    usage::{Price, UsageSource},
};
use safepoint_models::{HttpModel, Wire, anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::ModelServer,
};
use serde_json::{Value, json};

fn raw(events: &Value) -> Reply {
    let events = events.as_array().unwrap().iter();
    let body: String = events.map(|event| format!("data: {event}\n\n")).collect();
    Reply::default().fault(ReplyFault::Raw(body.into_bytes()))
}

/// What a second request holds of the model's first message, which were these events.
async fn sent_back<W: Wire>(model: HttpModel<W>, events: Value, messages: &str) -> Value {
    let server = ModelServer::start(Script::of([raw(&events), Reply::text("more")])).await.unwrap();
    let agent = Agent::builder(model.base_url(server.url())).build();
    let first = agent.run("look it up").await;
    assert_eq!(first.answer(), Some("It is so. As found."), "{first:?}");
    let second = agent.run_on(first.history().clone(), "and?").await;
    assert_eq!(second.answer(), Some("more"), "{second:?}");
    server.requests()[1].body[messages].clone()
}

/// S5.1: Anthropic's server tools go back with their results, and a cited text with its citations.
#[tokio::test]
async fn server_tools_and_citations_go_back_to_anthropic() {
    let begin = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let more = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let end = || json!({"type": "content_block_stop", "index": 0});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]});
    let citation =
        json!({"type": "web_search_result_location", "cited_text": "found", "encrypted_index": "e"});
    let events = json!([
        begin(json!({"type": "text", "text": ""})), more(json!({"type": "text_delta", "text": "It is so. "})), end(),
        begin(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
        more(json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
        more(json!({"type": "input_json_delta", "partial_json": "\"q\"}"})), end(),
        begin(found.clone()), end(),
        begin(json!({"type": "text", "text": "", "citations": []})),
        more(json!({"type": "citations_delta", "citation": citation})),
        more(json!({"type": "text_delta", "text": "As found."})), end(),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]);
    let messages = sent_back(anthropic::model("m"), events, "messages").await;
    let expected = json!([
        {"type": "text", "text": "It is so."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        found,
        {"type": "text", "text": "As found.", "citations": [citation]},
    ]);
    assert_eq!(messages[1]["content"], expected);
}

/// S5.1: the items of the provider's own tools go back to Responses, and a text with its annotations.
#[tokio::test]
async fn own_items_and_annotations_go_back_to_responses() {
    let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let said = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
    let search =
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}});
    let note = json!({"type": "url_citation", "url": "u", "start_index": 0, "end_index": 9});
    let part = |text: &str, notes: Value| json!({"type": "output_text", "text": text, "annotations": notes});
    let events = json!([
        done(search.clone()),
        said("It is so. "),
        done(json!({"type": "message", "role": "assistant", "content": [part("It is so. ", json!([]))]})),
        said("As found."),
        done(json!({"type": "message", "role": "assistant", "content": [part("As found.", json!([note]))]})),
        {"type": "response.completed", "response": {"status": "completed"}},
    ]);
    let input = sent_back(responses::model("m"), events, "input").await;
    assert_eq!(input[1], search);
    assert_eq!(input[2], json!({"type": "message", "role": "assistant", "content": "It is so. "}));
    assert_eq!(input[3]["content"], json!([part("As found.", json!([note]))]));
}

/// S5.1: code that Gemini ran, and what came of it, goes back as the parts that they were.
#[tokio::test]
async fn own_parts_go_back_to_gemini() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1+1"}, "thoughtSignature": "s"});
    let result = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}});
    let events = json!([
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is so. "}, code, result]}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "As found."}]}, "finishReason": "STOP",
            "groundingMetadata": {"webSearchQueries": ["q"]}}], "usageMetadata": {"promptTokenCount": 1}},
    ]);
    let contents = sent_back(gemini::model("m"), events, "contents").await;
    assert_eq!(contents[1]["parts"], json!([{"text": "It is so. "}, code, result, {"text": "As found."}]));
}

/// S5.1: chat completions take no annotations back, but the conversation keeps where a text is from.
#[tokio::test]
async fn annotations_of_a_chat_are_kept() {
    let note = json!({"type": "url_citation", "url_citation": {"url": "u"}});
    let events = json!([
        {"choices": [{"delta": {"content": "It is so. As found."}}]},
        {"choices": [{"delta": {"annotations": [note]}, "finish_reason": "stop"}]},
    ]);
    let server = ModelServer::start(Script::of([raw(&events)])).await.unwrap();
    let outcome = Agent::builder(openai::model("m").base_url(server.url())).build().run("look it up").await;
    let kept = serde_json::to_value(outcome.history()).unwrap().to_string();
    assert!(kept.contains("url_citation"), "{kept}");
}

/// S5.1, S5.4: the use of a server tool that a cut left without its result is not sent: the provider would refuse it.
#[test]
fn a_server_tool_without_its_result_is_not_sent() {
    let seal = |seal: Value| Block::Reasoning(Reasoning { text: String::new(), seal: Some(seal) });
    let used = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let mut history = History::new();
    history.push(Message::User("go".into()));
    let blocks = vec![seal(used), Block::Text { text: "so".into() }];
    history.push(Message::Assistant(AssistantMessage { blocks }.into()));
    history.push(Message::User("on".into()));
    let sent = anthropic::encoded(&anthropic::model("m"), &ModelSpec::default(), &[&history]);
    let body: Value = serde_json::from_slice(&sent[0]).unwrap();
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "so"}]));
}

fn body(bytes: &[Vec<u8>]) -> Value {
    serde_json::from_slice(&bytes[0]).unwrap()
}

/// S5.1: a tool of the provider's that is set as an extra field stands behind the agent's own tools, on every wire.
#[test]
fn extra_tools_do_not_replace_the_agents_own() {
    fn with<W: Wire>(extra: Value) -> HttpModel<W> {
        HttpModel::new("m").extra("tools", extra)
    }
    let own =
        ToolDecl { name: "pay".into(), description: "pays".into(), parameters: json!({"type": "object"}) };
    let spec = ModelSpec { tools: Arc::from([own]), ..ModelSpec::default() };
    let history = History::new();
    let one = [&history];
    let search = json!({"type": "web_search"});
    for body in [
        body(&openai::encoded(&with(json!([search])), &spec, &one)),
        body(&anthropic::encoded(&with(json!([search])), &spec, &one)),
        body(&responses::encoded(&with(search.clone()), &spec, &one)),
        body(&gemini::encoded(&with(json!([search])), &spec, &one)),
    ] {
        let tools = body["tools"].as_array().unwrap();
        assert_eq!((tools.len(), &tools[1]), (2, &search), "{body}");
        assert!(tools[0].to_string().contains("pay"), "{body}");
    }
}

/// S12.1: what is written to a provider's cache is kept apart from other input, and priced as what it is.
#[tokio::test]
async fn cache_writes_are_priced() {
    let chat = json!([{"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1000,
        "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 300}}}]);
    let messages = json!([
        {"type": "message_start", "message": {"usage": {"input_tokens": 500, "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 300, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]);
    let stateless = json!([{"type": "response.completed", "response": {"status": "completed", "usage": {
        "input_tokens": 1000, "output_tokens": 10,
        "input_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 300}}}}]);
    let price = Price::new(1.0, 0.1, 0.0).with_cache_write(2.0);
    type Made = fn(&str) -> Box<dyn Model>;
    let models: [(Made, Value); 3] = [
        (|url| Box::new(openai::model("m").base_url(url)), chat),
        (|url| Box::new(anthropic::model("m").base_url(url)), messages),
        (|url| Box::new(responses::model("m").base_url(url)), stateless),
    ];
    for (model, events) in models {
        let server = ModelServer::start(Script::of([raw(&events)])).await.unwrap();
        let mut history = History::new();
        history.push(Message::User("go".into()));
        let mut stream = model(&server.url()).open(ModelSpec::default()).stream(&history);
        let mut last = Usage::default();
        while let Some(delta) = stream.next().await {
            if let Delta::Usage(usage) = delta.unwrap() {
                last = usage;
            }
        }
        assert_eq!(last.source, UsageSource::Exact);
        assert_eq!((last.input, last.cached_input, last.cache_write, last.output), (1000, 200, 300, 10));
        let cost = price.of(&last) * 1_000_000.0;
        assert!((cost - (500.0 + 20.0 + 600.0)).abs() < 1e-6, "{cost}");
    }
}

/// S12.1: Anthropic's marks stand where the provider takes them, of the time that is set; what is read from Gemini's cache is
/// named and priced.
#[tokio::test]
async fn cache_marks_and_reads_are_those_of_the_provider() {
    let look = || safepoint::tool::from_fn("look", "looks", |_cx, (): ()| async { Ok("seen") });
    for (model, mark) in [
        (anthropic::model("m").cache(), json!({"type": "ephemeral"})),
        (anthropic::model("m").cache_for_an_hour(), json!({"type": "ephemeral", "ttl": "1h"})),
    ] {
        let server = ModelServer::start(Script::of([Reply::text("ok")])).await.unwrap();
        let agent = Agent::builder(model.base_url(server.url())).system("be brief").tool(look()).build();
        assert_eq!(agent.run("go").await.answer(), Some("ok"));
        let body = &server.requests()[0].body;
        let newest = &body["messages"][0]["content"][0];
        for marked in [&body["system"][0], &body["tools"][0], newest] {
            assert_eq!(marked["cache_control"], mark, "{body}");
        }
    }
    let events = json!([{"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 400, "candidatesTokenCount": 10}}]);
    let server = ModelServer::start(Script::of([raw(&events)])).await.unwrap();
    let outcome = Agent::builder(gemini::model("m").base_url(server.url())).build().run("go").await;
    let usage = outcome.receipt().usage.clone();
    assert_eq!((usage.input, usage.cached_input, usage.output), (1000, 400, 10));
    let cost = Price::new(1.0, 0.1, 2.0).of(&usage) * 1_000_000.0;
    assert!((cost - (600.0 + 40.0 + 20.0)).abs() < 1e-6, "{cost}");
}

/// S5.1: pieces of a call that was complete when the next one began change nothing; calls keep their order.
#[tokio::test]
async fn pieces_of_calls_belong_together_by_their_number() {
    let piece = |index: u64, function: Value| json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": format!("c{index}"), "function": function}]}}]});
    let events = json!([
        piece(0, json!({"name": "f", "arguments": "{\"a\""})),
        piece(0, json!({"arguments": ":1}"})),
        piece(1, json!({"name": "g", "arguments": "{}"})),
        piece(0, json!({"arguments": "late"})),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]);
    let server = ModelServer::start(Script::of([raw(&events)])).await.unwrap();
    let mut history = History::new();
    history.push(Message::User("go".into()));
    let mut stream = openai::model("m").base_url(server.url()).open(ModelSpec::default()).stream(&history);
    let mut calls = Vec::new();
    while let Some(delta) = stream.next().await {
        if let Delta::CallReady(ToolCall { id, name, args }) = delta.unwrap() {
            calls.push((id.to_string(), name, args));
        }
    }
    let call = |id: &str, name: &str, args: &str| (id.to_owned(), name.to_owned(), args.to_owned());
    assert_eq!(calls, [call("c0", "f", "{\"a\":1}"), call("c1", "g", "{}")]);
}
