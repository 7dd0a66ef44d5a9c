//! Tools that the provider runs itself: declared on each wire that has them, refused on the others, and what they did kept,
//! shown, counted, and told to other wires.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::sync::Arc;

use safepoint::{
    Agent, AgentBuilder, Model, Outcome,
    event::EventKind,
    message::{ProviderPart, ResultStatus},
    model::{FileSearch, ProviderTool, WebSearch},
};
use safepoint_models::{Failover, HttpModel, Wire, anthropic, gemini, openai, responses};
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

async fn server(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    ModelServer::start(Script::of(replies)).await.unwrap()
}

fn on<W: Wire>(server: &ModelServer, name: &str) -> AgentBuilder {
    Agent::builder(HttpModel::<W>::new(name).base_url(server.url()))
}

fn search() -> WebSearch {
    WebSearch::new()
}

/// What a request declares, and the value of a header of it.
async fn declared(builder: AgentBuilder, server: &ModelServer) -> Value {
    let outcome = builder.build().run("go").await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    server.requests().last().unwrap().body["tools"].clone()
}

/// S4.24: each wire declares the tools in its own words, and its provider takes them.
#[tokio::test]
async fn tools_are_declared_in_each_wires_words() {
    let server = server((0..3).map(|_| Reply::text("ok"))).await;
    let talk = on::<anthropic::Messages>(&server, "m")
        .provider_tool(search().max_uses(2).block_domains(["example.com"]))
        .provider_tool(ProviderTool::CodeExecution);
    assert_eq!(
        declared(talk, &server).await,
        json!([
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 2, "blocked_domains": ["example.com"]},
            {"type": "code_execution_20250825", "name": "code_execution"},
        ])
    );
    assert_eq!(server.requests()[0].header("anthropic-beta"), Some("code-execution-2025-08-25"));
    let items = on::<responses::Stateless>(&server, "m")
        .provider_tool(search().allow_domains(["docs.rs"]))
        .provider_tool(ProviderTool::CodeExecution)
        .provider_tool(FileSearch::of(["vs_1"]).max_results(3));
    assert_eq!(
        declared(items, &server).await,
        json!([
            {"type": "web_search", "filters": {"allowed_domains": ["docs.rs"]}},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3},
        ])
    );
    let include = &server.requests()[1].body["include"];
    let wanted = ["reasoning.encrypted_content", "code_interpreter_call.outputs", "file_search_call.results"];
    assert_eq!(*include, json!(wanted));
    let contents = on::<gemini::GenerateContent>(&server, "gemini-2.5-pro")
        .provider_tool(search())
        .provider_tool(ProviderTool::CodeExecution)
        .provider_tool(FileSearch::of(["fileSearchStores/a"]));
    assert_eq!(
        declared(contents, &server).await,
        json!([
            {"googleSearch": {}},
            {"codeExecution": {}},
            {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"]}},
        ])
    );
}

/// S4.24: from Gemini 3 on the provider's tools stand beside the program's, as the provider wants it; before, not.
#[tokio::test]
async fn both_kinds_stand_beside_each_other_where_the_provider_takes_it() {
    let server = server([Reply::text("ok"), Reply::text("ok")]).await;
    let look = || safepoint::tool::from_fn("look", "looks", |_cx, (): ()| async { Ok("seen") });
    let newer = on::<gemini::GenerateContent>(&server, "gemini-3-pro").tool(look()).provider_tool(search());
    let tools = declared(newer, &server).await;
    assert_eq!(tools[1], json!({"googleSearch": {}}));
    let config = &server.requests()[0].body["toolConfig"];
    assert_eq!(config["includeServerSideToolInvocations"], true);
    assert_eq!(config["functionCallingConfig"]["mode"], "VALIDATED");
    let talk = on::<anthropic::Messages>(&server, "m").tool(look()).provider_tool(search());
    assert_eq!(declared(talk, &server).await[1]["name"], "web_search");
    let older = on::<gemini::GenerateContent>(&server, "gemini-2.5-pro").tool(look()).provider_tool(search());
    assert!(older.try_build().unwrap_err().to_string().contains("before Gemini 3"));
}

/// S4.24: what a wire does not have, or cannot say, is refused when the agent is built, with what to do instead.
#[test]
fn what_a_wire_cannot_declare_is_refused_when_the_agent_is_built() {
    fn refused(model: impl Model, tools: Vec<ProviderTool>) -> String {
        let builder = tools.into_iter().fold(Agent::builder(model), AgentBuilder::provider_tool);
        builder.try_build().unwrap_err().to_string()
    }
    let chat = || openai::model("m");
    let shared: Arc<dyn Model> = Arc::new(anthropic::model("m"));
    assert!(Agent::builder(shared).provider_tool(search()).try_build().is_ok());
    let boxed: Box<dyn Model> = Box::new(anthropic::model("m"));
    assert!(Agent::builder(boxed).provider_tool(search()).try_build().is_ok());
    let both = Failover::new(anthropic::model("m")).or(chat());
    for (error, words) in [
        (refused(chat(), vec![search().into()]), "openai wire does not take the provider tool web_search"),
        (refused(both, vec![search().into()]), "the Responses wire has them"),
        (refused(anthropic::model("m"), vec![FileSearch::of(["a"]).into()]), "file_search"),
        (refused(responses::model("m"), vec![search().max_uses(1).into()]), "cannot limit the uses"),
        (refused(responses::model("m"), vec![search().block_domains(["a"]).into()]), "leave some out"),
        (refused(gemini::model("m"), vec![search().allow_domains(["a"]).into()]), "domains"),
        (refused(gemini::model("m"), vec![search().max_uses(1).into()]), "uses"),
        (refused(anthropic::model("m"), vec![search().max_uses(0).into()]), "even once"),
        (
            refused(anthropic::model("m"), vec![search().allow_domains(["a"]).block_domains(["b"]).into()]),
            "give one kind",
        ),
        (refused(responses::model("m"), vec![FileSearch::of(Vec::<String>::new()).into()]), "no store"),
        (refused(anthropic::model("m"), vec![search().into(), search().into()]), "two provider tools"),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let hint = refused(chat(), vec![ProviderTool::CodeExecution]);
    assert!(hint.contains("another wire"), "{hint}");
}

/// A search, what it found, and a text that cites it, as Anthropic streams them; all of it or its first events.
fn searched(events: usize) -> Value {
    let begin = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let more = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let end = || json!({"type": "content_block_stop", "index": 0});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content":
        [{"type": "web_search_result", "title": "The book", "url": "https://doc.rust-lang.org/book"}]});
    let citation = json!({"type": "web_search_result_location", "url": "https://doc.rust-lang.org/book",
        "title": "The book", "cited_text": "found", "encrypted_index": "e"});
    let all = [
        begin(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
        more(json!({"type": "input_json_delta", "partial_json": "{\"query\":\"rust\"}"})),
        end(),
        begin(found),
        end(),
        begin(json!({"type": "text", "text": ""})),
        more(json!({"type": "text_delta", "text": "It is so."})),
        more(json!({"type": "citations_delta", "citation": citation})),
        end(),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    all[..events].iter().cloned().collect()
}

const WHOLE: usize = 11;

/// S4.24, S3.7: what the provider did is shown as it happens, kept in the message, and counted in the receipt.
#[tokio::test]
async fn what_a_provider_did_is_shown_kept_and_counted() {
    let server = server([raw(&searched(WHOLE))]).await;
    let agent = on::<anthropic::Messages>(&server, "m").provider_tool(search()).build();
    let run = agent.run("look it up").start();
    let mut events = run.handle().events();
    let outcome = run.await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let mut shown = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Provider(block) = event.kind {
            shown.push(block.part.clone());
        }
    }
    let message = outcome.history().entries().last().unwrap().clone();
    let safepoint::history::Message::Assistant(message) = &*message else { panic!("{message:?}") };
    let kept: Vec<ProviderPart> = message.provider_blocks().map(|block| block.part.clone()).collect();
    assert_eq!(shown, kept);
    let [ProviderPart::Use { tool, input, .. }, ProviderPart::Result { status, text, .. }, _] = &kept[..]
    else {
        panic!("{kept:?}")
    };
    assert_eq!((tool.as_str(), input.as_str(), *status), ("web_search", "rust", ResultStatus::Ok));
    assert_eq!(text, "The book\nhttps://doc.rust-lang.org/book");
    let cited = message.citations().next().unwrap();
    assert_eq!(cited.url.as_deref(), Some("https://doc.rust-lang.org/book"));
    assert_eq!((cited.title.as_deref(), cited.cited.as_deref()), (Some("The book"), Some("found")));
    let [report] = &outcome.receipt().provider_tools[..] else { panic!("{:?}", outcome.receipt()) };
    assert_eq!((report.tool.as_str(), report.uses, report.unfinished), ("web_search", 1, 0));
    assert!(outcome.receipt().to_string().contains("used once by the provider of anthropic"));
}

/// S4.24, S3.8: a use whose message broke before its result has no known end: the receipt says so and warns.
#[tokio::test]
async fn a_use_without_a_result_has_no_known_end() {
    let server = server([raw(&searched(3))]).await;
    let agent = on::<anthropic::Messages>(&server, "m").provider_tool(search()).build();
    let outcome = agent.run("look it up").await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let receipt = outcome.receipt();
    assert_eq!((receipt.provider_tools[0].uses, receipt.provider_tools[0].unfinished), (1, 1));
    assert!(receipt.to_string().contains("warning: the provider's web_search was cut off"), "{receipt}");
}

/// S4.24, S5.1: a use whose message broke before its result is not sent again, which its provider would refuse; the text is.
#[tokio::test]
async fn a_use_without_a_result_is_not_sent_again() {
    let mut broken = searched(7);
    broken.as_array_mut().unwrap().drain(3..5);
    let server = server([raw(&broken), Reply::text("found")]).await;
    let agent = on::<anthropic::Messages>(&server, "m").provider_tool(search()).build();
    let outcome = agent.run("look it up").await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let next = agent.run_on(outcome.history().clone(), "continue").await;
    assert_eq!(next.answer(), Some("found"), "{next:?}");
    let sent = server.requests()[1].body["messages"].to_string();
    assert!(sent.contains("It is so.") && !sent.contains("server_tool_use"), "{sent}");
}

/// S4.24, S5.4: a message that its provider paused is not the answer: the run says so, and continues on what was found.
#[tokio::test]
async fn a_paused_message_is_no_answer_and_can_be_continued() {
    let mut paused = searched(5);
    let events = paused.as_array_mut().unwrap();
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}));
    events.push(json!({"type": "message_stop"}));
    let server = server([raw(&paused), Reply::text("found")]).await;
    let agent = on::<anthropic::Messages>(&server, "m").provider_tool(search()).build();
    let outcome = agent.run("look it up").await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("paused its message"), "{error}");
    assert_eq!(outcome.receipt().provider_tools[0].unfinished, 0);
    let next = agent.run_on(outcome.history().clone(), "continue").await;
    assert_eq!(next.answer(), Some("found"), "{next:?}");
    let sent = &server.requests()[1].body["messages"][1]["content"];
    assert_eq!(
        (&sent[0]["type"], &sent[1]["type"]),
        (&json!("server_tool_use"), &json!("web_search_tool_result"))
    );
}

/// S4.24, S5.1: another wire gets what the provider did in words, and takes the history; the own wire gets it as it came.
#[tokio::test]
async fn another_wire_is_told_in_words() {
    let server = server([
        raw(&searched(WHOLE)),
        Reply::text("1"),
        Reply::text("2"),
        Reply::text("3"),
        Reply::text("4"),
    ])
    .await;
    let agent = on::<anthropic::Messages>(&server, "m").provider_tool(search()).build();
    let first = agent.run("look it up").await;
    let used = "[the provider's tool web_search was used: rust]";
    let found = "[web_search gave: The book\nhttps://doc.rust-lang.org/book]";
    let from = "[from: https://doc.rust-lang.org/book]";
    let next = async |agent: Agent| {
        let outcome = agent.run_on(first.history().clone(), "and?").await;
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        server.requests().last().unwrap().body.clone()
    };
    let body = next(on::<openai::Chat>(&server, "m").build()).await;
    assert_eq!(body["messages"][1]["content"], format!("{used}\n{found}\nIt is so.\n{from}"));
    let body = next(on::<responses::Stateless>(&server, "m").build()).await;
    let said: Vec<&Value> = (1..5).map(|place| &body["input"][place]["content"]).collect();
    assert_eq!(said, [used, found, "It is so.", from]);
    let body = next(on::<gemini::GenerateContent>(&server, "m").build()).await;
    let said: Vec<&Value> = (0..4).map(|place| &body["contents"][1]["parts"][place]["text"]).collect();
    assert_eq!(said, [used, found, "It is so.", from]);
    let body = next(on::<anthropic::Messages>(&server, "m").build()).await;
    let kinds: Vec<&Value> = (0..3).map(|place| &body["messages"][1]["content"][place]["type"]).collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "text"]);
}

/// The parts that a provider's reply leaves in the message.
async fn kept<W: Wire>(events: Value) -> Vec<ProviderPart> {
    let server = server([raw(&events)]).await;
    let outcome = on::<W>(&server, "m").build().run("go").await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let entries = outcome.history().entries();
    let safepoint::history::Message::Assistant(message) = &**entries.last().unwrap() else {
        panic!("{entries:?}")
    };
    message.provider_blocks().map(|block| block.part.clone()).collect()
}

/// S4.24: what OpenAI's and Gemini's tools did is read from their own forms.
#[tokio::test]
async fn each_wires_own_form_is_read() {
    let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let items = json!([
        done(json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "rust"}})),
        done(json!({"type": "code_interpreter_call", "id": "ci", "status": "completed", "code": "print(1)",
            "outputs": [{"type": "logs", "logs": "1"}]})),
        {"type": "response.output_text.delta", "delta": "so"},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]);
    let used = |id: &str, tool: &str, input: &str, result| ProviderPart::Use {
        id: id.into(),
        tool: tool.into(),
        input: input.into(),
        result,
    };
    let gave = |id: &str, tool: &str, text: &str| ProviderPart::Result {
        id: id.into(),
        tool: tool.into(),
        status: ResultStatus::Ok,
        text: text.into(),
    };
    assert_eq!(
        kept::<responses::Stateless>(items).await,
        [
            used("ws", "web_search", "rust", Some(ResultStatus::Ok)),
            used("ci", "code_execution", "print(1)", None),
            gave("ci", "code_execution", "1"),
        ]
    );
    let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let contents = json!([
        part(json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}})),
        part(json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})),
        {"candidates": [{"content": {"parts": [{"text": "so"}]}, "finishReason": "STOP", "groundingMetadata":
            {"webSearchQueries": ["rust"], "groundingChunks": [{"web": {"uri": "u", "title": "t"}}]}}],
            "usageMetadata": {"promptTokenCount": 1}},
    ]);
    let parts = kept::<gemini::GenerateContent>(contents).await;
    assert_eq!(
        parts[..3],
        [
            used("", "code_execution", "print(1)", None),
            gave("", "code_execution", "1"),
            used("", "web_search", "rust", Some(ResultStatus::Ok)),
        ]
    );
    let ProviderPart::Citations(cited) = &parts[3] else { panic!("{parts:?}") };
    assert_eq!((cited[0].url.as_deref(), cited[0].title.as_deref()), (Some("u"), Some("t")));
}

/// S4.24: an annotation of a kind that is not known is kept, and fails nothing.
#[tokio::test]
async fn an_unknown_annotation_is_kept() {
    let annotations =
        json!([{"type": "file", "file": {"hash": "h", "filename": "a.pdf"}}, {"type": "mood", "of": 1}]);
    let chat = json!([{"choices": [{"delta": {"content": "so", "annotations": annotations}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]}]);
    let parts = kept::<openai::Chat>(chat).await;
    let [ProviderPart::Citations(cited)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(cited[0].title.as_deref(), Some("a.pdf"));
    assert_eq!((cited.len(), cited[1].title.as_deref()), (2, None));
}

/// S4.24: a citation that is none fails the message with a clear error, on each wire.
#[tokio::test]
async fn a_malformed_citation_is_a_clear_error() {
    async fn refused<W: Wire>(events: Value) {
        let server = server([raw(&events)]).await;
        let outcome = on::<W>(&server, "m").build().run("go").await;
        let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().contains("a citation is"), "{error}");
    }
    for bad in [json!("here"), json!({"type": "url_citation", "url": 7}), json!([1])] {
        let mut talk = searched(WHOLE);
        talk[7]["delta"]["citation"] = bad.clone();
        refused::<anthropic::Messages>(talk).await;
        let part = json!({"type": "output_text", "text": "so", "annotations": [bad]});
        let item = json!({"type": "message", "content": [part]});
        refused::<responses::Stateless>(json!([{"type": "response.output_item.done", "item": item}])).await;
    }
    let without_page = json!([{"type": "url_citation", "url_citation": {"title": "t"}}]);
    let no_text = json!([{"type": "url_citation", "url_citation": {"url": 7}}]);
    for bad in [json!([7]), json!({"a": 1}), without_page, no_text] {
        refused::<openai::Chat>(json!([{"choices": [{"delta": {"annotations": bad}}]}])).await;
    }
    for bad in [json!([7]), json!([{"web": "u"}]), json!([{"web": {"uri": 7}}])] {
        let grounding = json!({"groundingChunks": bad});
        refused::<gemini::GenerateContent>(json!([{"candidates": [{"groundingMetadata": grounding}]}])).await;
    }
}
