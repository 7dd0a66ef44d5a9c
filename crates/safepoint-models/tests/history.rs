//! What is sent after anything: judged by the testkit's oracles, a second implementation of the providers' rules.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    cell::Cell,
    sync::{Arc, Mutex},
};

use futures_util::StreamExt as _;
use proptest::{prelude::*, test_runner::TestRunner};
use safepoint::{
    Agent, History, Model,
    history::Message,
    message::{AssistantMessage, Block, CallResult, Part, Reasoning, ResultStatus, ToolCall},
    model::{Delta, ModelSpec},
    window::Window,
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    oracle::{self, Violation},
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ModelServer,
};
use serde_json::{Value, json};

fn spec() -> ModelSpec {
    ModelSpec { system: Some("be brief".into()), ..ModelSpec::default() }
}

/// A wire: how it encodes, who judges it, and where it is served.
struct Wire {
    path: &'static str,
    encode: fn(&[&History]) -> Vec<Vec<u8>>,
    judge: fn(&Value) -> Result<(), Violation>,
    model: fn(&str) -> Box<dyn Model>,
    /// A request of one user message.
    ask: fn() -> Value,
}

const WIRES: [Wire; 4] = [
    Wire {
        path: "/chat/completions",
        encode: |histories| openai::encoded(&openai::model("m"), &spec(), histories),
        judge: oracle::openai,
        model: |url| Box::new(openai::model("m").base_url(url)),
        ask: || json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "go"}]}),
    },
    Wire {
        path: "/messages",
        encode: |histories| anthropic::encoded(&anthropic::model("m").cache(), &spec(), histories),
        judge: oracle::anthropic,
        model: |url| Box::new(anthropic::model("m").base_url(url)),
        ask: || json!({"model": "m", "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}),
    },
    Wire {
        path: "/responses",
        encode: |histories| responses::encoded(&responses::model("m"), &spec(), histories),
        judge: oracle::responses,
        model: |url| Box::new(responses::model("m").base_url(url)),
        ask: || json!({"model": "m", "stream": true, "input": "go"}),
    },
    Wire {
        path: "/models/gemini-3-pro:streamGenerateContent?alt=sse",
        encode: |histories| gemini::encoded(&gemini::model("gemini-3-pro"), &spec(), histories),
        judge: oracle::gemini,
        model: |url| Box::new(gemini::model("gemini-3-pro").base_url(url)),
        ask: || json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}]}),
    },
];

impl Wire {
    /// The bodies for a series of histories in one conversation.
    fn bodies(&self, histories: &[&History]) -> Vec<Value> {
        (self.encode)(histories).iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
    }
}

/// Every provider takes it.
fn accepted(history: &History) -> Result<(), TestCaseError> {
    for wire in WIRES {
        let body = &wire.bodies(&[history])[0];
        prop_assert_eq!((wire.judge)(body), Ok(()), "{}: {}", wire.path, body);
    }
    Ok(())
}

fn block() -> impl Strategy<Value = Block> {
    let text =
        prop_oneof![Just(String::new()), Just("  ".to_owned()), "[a-z ]{1,9}", Just("ends \n".to_owned())];
    // Of any wire: a conversation may continue with another model.
    let seal = proptest::option::of(prop_oneof![
        Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        Just(json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})),
        Just(json!({"type": "thought_signature", "of": "call", "signature": "s"})),
        Just(json!({"type": "thought_signature", "of": "text", "signature": "s"})),
        Just(json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}})),
        Just(json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})),
        Just(json!({"type": "citations", "of_bytes": 3, "citations": [{"cited_text": "t"}]})),
        Just(json!({"type": "responses_item", "item": {"type": "web_search_call", "id": "ws"}})),
        Just(json!({"type": "responses_annotations", "of_bytes": 2, "annotations": [{"url": "u"}]})),
        Just(json!({"type": "gemini_part", "part": {"executableCode": {"code": "1"}}})),
    ]);
    let part = prop_oneof![
        Just(json!({"use": {"id": "s1", "tool": "web_search", "input": "q", "result": null}})),
        Just(json!({"result": {"id": "s1", "tool": "web_search", "status": "good", "text": "found"}})),
        Just(json!({"citations": [{"url": "u"}]})),
        Just(json!({"citations": []})),
    ];
    let wire = prop_oneof![Just("anthropic"), Just("openai"), Just("responses"), Just("gemini")];
    let raw = seal.clone().prop_map(|raw| raw.unwrap_or_default());
    let provider = (wire, part, raw).prop_map(|(wire, part, raw)| {
        let block = json!({"type": "provider", "wire": wire, "part": part, "raw": raw});
        serde_json::from_value::<Block>(block).unwrap()
    });
    let args = prop_oneof![Just("{}"), Just("{\"a\":1}"), Just("not json"), Just("[1]"), Just("")];
    prop_oneof![
        text.prop_map(|text| Block::Text { text }),
        provider,
        ("[a-z]{0,5}", seal).prop_map(|(text, seal)| Block::Reasoning(Reasoning { text, seal })),
        ("[abc]?", args).prop_map(|(id, args)| {
            Block::Call(ToolCall { id: id.as_str().into(), name: "f".into(), args: args.into() })
        }),
    ]
}

/// What a tool may give back beside its text, known to every provider or to none.
fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::image("image/png", b"p").unwrap()),
        Just(Part::image("image/gif", b"g").unwrap()),
        Just(Part::image("image/tiff", b"t").unwrap()),
        Just(Part::image_at("https://example.com/a.png")),
        Just(Part::file("a.pdf", "application/pdf", b"d").unwrap()),
        Just(Part::file("a.csv", "text/csv", b"c").unwrap()),
        Just(Part::file_at("https://example.com/a.pdf")),
    ]
}

/// Any entry in any order: what a foreign or damaged store may hold.
fn entry() -> impl Strategy<Value = Message> {
    let parts = proptest::collection::vec(part(), 0..3);
    let result = ("[abc]?", "[a-z]{0,4}", any::<bool>(), parts).prop_map(|(id, text, good, parts)| {
        let verdict = if good { ResultStatus::Ok } else { ResultStatus::Error };
        CallResult { parts, ..CallResult::of_text(id.as_str(), "f", text, verdict) }
    });
    prop_oneof![
        "[a-z ]{0,6}".prop_map(|text| Message::User(text.into())),
        proptest::collection::vec(block(), 0..5)
            .prop_map(|blocks| Message::Assistant(AssistantMessage { blocks }.into())),
        proptest::collection::vec(result, 0..4).prop_map(|results| Message::Results { results }),
    ]
}

proptest! {
    /// S5.1: any stored history at all is repaired so that every provider accepts it; the second repair finds nothing.
    /// langchain-ai/langgraph#4289, microsoft/agent-framework#5814: an invalid history stays invalid until somebody
    /// repairs it by hand.
    #[test]
    fn any_history_is_repaired_and_accepted(entries in proptest::collection::vec(entry(), 0..8)) {
        let mut history = History::new();
        history.push(Message::User("first".into()));
        entries.into_iter().for_each(|entry| history.push(entry));
        let _reported = history.repair();
        prop_assert_eq!(history.clone().repair(), Vec::new());
        history.push(Message::User("and now?".into()));
        accepted(&history)?;
    }

    /// S5.1: a history that grows is encoded once: the same bytes as encoding it all anew.
    #[test]
    fn growing_gives_the_bytes_of_encoding_anew(entries in proptest::collection::vec(entry(), 1..8)) {
        let mut whole = History::new();
        whole.push(Message::User("first".into()));
        entries.into_iter().for_each(|entry| whole.push(entry));
        let _reported = whole.repair();
        let mut steps = vec![History::new()];
        for entry in whole.entries().iter() {
            // The same shared entries, as a run's own history has them.
            let mut next = steps.last().unwrap().clone();
            next.push((**entry).clone());
            steps.push(next);
        }
        let steps: Vec<&History> = steps.iter().collect();
        for wire in WIRES {
            let grown = (wire.encode)(&steps);
            let anew = (wire.encode)(&steps[steps.len() - 1..]);
            prop_assert_eq!(grown.last(), anew.last(), "{}", wire.path);
        }
    }
}

/// What a run sends under a window of this many tokens, request by request, and the history that it leaves.
async fn sent_under(window: Window, history: History, rounds: usize) -> (Vec<History>, History) {
    let replies = (0..rounds).map(|_| Reply::text("hm").and_call("f", json!({"a": 1})).usage(0, 0));
    let model = ScriptedModel::new(Script::of(replies.chain([Reply::text("done")])));
    let agent = Agent::builder(model.clone()).window(window).build();
    let outcome = agent.run_on(history, "and now?").await;
    (model.requests(), outcome.history().clone())
}

/// S5.1, S12.2: whatever is left out of whatever conversation, every provider takes what is sent; what was just asked is
/// in it; nothing of the conversation is lost; and a body that grew has the bytes of one that is encoded anew.
#[test]
fn what_is_left_out_leaves_a_valid_history() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shortened = Cell::new(0);
    let inputs = (proptest::collection::vec(entry(), 0..14), 90_u64..260, 0_usize..4, any::<bool>());
    let checked = TestRunner::default().run(&inputs, |(entries, tokens, rounds, drops)| {
        let mut history = History::new();
        history.push(Message::User("first".into()));
        entries.into_iter().for_each(|entry| history.push(entry));
        let _reported = history.repair();
        let window = Window::of(tokens).keep_for_answer(10);
        let in_short = Script { repeat: true, ..Script::of([Reply::text("in short")]) };
        let window = match drops {
            true => window.drop_oldest(),
            false => window.summarise_with(ScriptedModel::new(in_short)),
        };
        let (sent, left) = runtime.block_on(sent_under(window, history.clone(), rounds));
        prop_assert!(left.entries().range(..history.entries().len()).eq(history.entries().iter()));
        shortened.set(shortened.get() + u32::from(left.omitted().is_some() && !sent.is_empty()));
        for history in &sent {
            accepted(history)?;
            prop_assert!(history.entries().iter().any(|entry| **entry == Message::User("and now?".into())));
        }
        let sent: Vec<&History> = sent.iter().collect();
        for wire in WIRES.iter().filter(|_| !sent.is_empty()) {
            let anew = (wire.encode)(&sent[sent.len() - 1..]);
            let grown = (wire.encode)(&sent);
            prop_assert_eq!(grown.last(), anew.last(), "{}", wire.path);
        }
        Ok(())
    });
    checked.unwrap();
    assert!(shortened.get() > 20, "hardly anything was left out: {}", shortened.get());
}

/// S12.2: what was shortened can have its last entry where it had it before, and is encoded anew all the same.
#[tokio::test]
async fn a_shortened_history_of_the_same_length_is_encoded_anew() {
    let mut before = History::new();
    before.push(Message::User("an old question ".repeat(20).as_str().into()));
    before.push(Message::Assistant(AssistantMessage::of_text("an old answer").into()));
    let (sent, _) = sent_under(Window::of(150).keep_for_answer(10).drop_oldest(), before.clone(), 0).await;
    let after = sent[0].clone();
    let mut whole = before;
    whole.push(Message::User("and now?".into()));
    assert_eq!(whole.entries().len(), after.entries().len());
    for wire in WIRES {
        assert_eq!((wire.encode)(&[&whole, &after])[1], (wire.encode)(&[&after])[0], "{}", wire.path);
    }
}

/// A reply that has everything in it.
fn rich() -> Reply {
    Reply::text("I will look it up, né?")
        .reasoning("first I think")
        .and_call("look", json!({"in": "the attic", "deep": [1, 2, {"é": null}]}))
        .and_call("look", json!({}))
}

/// Records a streamed reply of the scripted server, byte for byte.
async fn recorded(path: &str, body: Value) -> Vec<u8> {
    let server = ModelServer::start(Script::of([rich()])).await.unwrap();
    let url = format!("{}{path}", server.url());
    let url = url::Url::parse(&url).unwrap();
    let response = safepoint_http::shared().unwrap().post(&url).body(body.to_string()).send().await.unwrap();
    response.bytes().await.unwrap().to_vec()
}

/// What the model makes of what it is served.
async fn deltas(model: &dyn Model, history: &History) -> Vec<Delta> {
    let mut stream = model.open(spec()).stream(history);
    let mut deltas = Vec::new();
    while let Some(Ok(delta)) = stream.next().await {
        deltas.push(delta);
    }
    deltas
}

/// The message as the engine builds it from what arrived.
fn message(deltas: &[Delta]) -> AssistantMessage {
    let mut blocks: Vec<Block> = Vec::new();
    for delta in deltas {
        match (delta, blocks.last_mut()) {
            (Delta::Text(more), Some(Block::Text { text })) => text.push_str(more),
            (Delta::Text(text), _) => blocks.push(Block::Text { text: text.clone() }),
            (Delta::Reasoning(more), Some(Block::Reasoning(Reasoning { text, seal: None }))) => {
                text.push_str(more)
            }
            (Delta::Reasoning(text), _) => {
                blocks.push(Block::Reasoning(Reasoning { text: text.clone(), seal: None }));
            }
            (Delta::ReasoningSeal(seal), Some(Block::Reasoning(Reasoning { seal: open @ None, .. }))) => {
                *open = Some(seal.clone());
            }
            (Delta::Provider(block), _) => blocks.push(Block::Provider(block.clone())),
            (Delta::CallReady(call), _) => blocks.push(Block::Call(call.clone())),
            _ => {}
        }
    }
    AssistantMessage { blocks }
}

fn cut_history(message: AssistantMessage) -> History {
    let stored =
        json!({"entries": [{"role": "user", "text": "go"}], "tail": {"tail": "cut", "message": message}});
    let mut history: History = serde_json::from_value(stored).unwrap();
    history.close();
    history.push(Message::User("and now?".into()));
    history
}

/// S5.1, S5.4, S5.2: a stream cut at every byte, on each wire: what arrived is kept, closed, and accepted by every
/// provider.
/// livekit/agents#5092 and #995: a cut message leaves calls apart from their results; vercel/ai#10638: a message that
/// was cut while it reasoned is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_at_every_byte_leaves_a_history_that_every_provider_accepts() {
    let mut start = History::new();
    start.push(Message::User("go".into()));
    for wire in WIRES {
        let bytes = Arc::new(recorded(wire.path, (wire.ask)()).await);
        let at = Arc::new(Mutex::new(0));
        let url = cut_server(Arc::clone(&bytes), Arc::clone(&at)).await;
        let model = (wire.model)(&url);
        let (mut longest, mut calls) = (0, 0);
        for cut in 0..=bytes.len() {
            *at.lock().unwrap() = cut;
            let message = message(&deltas(&*model, &start).await);
            assert!(message.text().len() >= longest, "{}: text got lost at {cut}", wire.path);
            longest = message.text().len();
            calls = message.calls().count();
            let history = cut_history(message);
            if let Err(refused) = accepted(&history) {
                panic!("{}, cut at {cut}: {refused}", wire.path);
            }
        }
        assert_eq!((longest, calls), ("I will look it up, né?".len(), 2), "{}", wire.path);
    }
}

/// A server that answers with the first bytes of a recording and closes.
async fn cut_server(bytes: Arc<Vec<u8>>, at: Arc<Mutex<usize>>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let mut read = 0;
            while !request[..read].windows(2).any(|end| end == b"]}") {
                read += socket.read(&mut request[read..]).await.unwrap();
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            let cut = *at.lock().unwrap();
            socket.write_all(&bytes[..cut]).await.unwrap();
        }
    });
    url
}
