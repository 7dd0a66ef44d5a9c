//! How it breaks.

use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::{ModelServer, ServedWire, ServerOptions, Strictness},
};
use serde_json::{Value, json};

use super::peer::{Peer, Response, WIRES, Whole, ask};

async fn broken(fault: ReplyFault, wire: ServedWire, body: &Value) -> Response {
    let reply = Reply::pieces(["one", "two", "three"]).fault(fault);
    let server = ModelServer::start(Script::of([reply])).await.unwrap();
    Peer::to(server.address()).await.exchange(wire, body).await
}

fn shapes() -> [Value; 2] {
    let mut whole = ask("hi");
    whole["stream"] = json!(false);
    [ask("hi"), whole]
}

/// S2.8: a connection that ends before any byte, by a close or by a reset, streamed or not.
#[tokio::test]
async fn it_ends_before_any_byte() {
    for (wire, body) in WIRES.into_iter().flat_map(|wire| shapes().map(|body| (wire, body))) {
        for (fault, whole) in [(ReplyFault::Close, Whole::Closed), (ReplyFault::Reset, Whole::Reset)] {
            let response = broken(fault, wire, &body).await;
            assert_eq!((response.status, response.whole), (0, whole));
        }
    }
}

/// S2.2: a connection that ends in the middle, streamed or not.
#[tokio::test]
async fn it_ends_in_the_middle() {
    for (wire, body) in WIRES.into_iter().flat_map(|wire| shapes().map(|body| (wire, body))) {
        for (fault, whole) in [
            (ReplyFault::CloseAfter(3), Whole::Closed),
            (ReplyFault::ResetAfter(3), Whole::Reset),
            (ReplyFault::CutAfter(200), Whole::Closed),
        ] {
            let response = broken(fault, wire, &body).await;
            assert_eq!((response.status, response.whole), (200, whole));
        }
    }
}

/// S2.2: the chunks before a close are whole events; a cut may fall anywhere in one.
#[tokio::test]
async fn a_cut_falls_anywhere() {
    for wire in WIRES {
        let closed = broken(ReplyFault::CloseAfter(2), wire, &ask("hi")).await;
        assert_eq!(closed.events().len(), 2);
        let all = broken(ReplyFault::CloseAfter(99), wire, &ask("hi")).await.body;
        for bytes in [1, 100, all.len() - 1] {
            assert_eq!(broken(ReplyFault::CutAfter(bytes), wire, &ask("hi")).await.body, all[..bytes]);
        }
    }
}

/// S2.13: an error in the middle of a stream ends it, in the provider's form.
#[tokio::test]
async fn an_error_in_the_stream_ends_it() {
    let chat = broken(ReplyFault::ErrorAfter(2), ServedWire::OpenAi, &ask("hi")).await.events();
    assert_eq!((chat.len(), &chat[2]["error"]["type"]), (3, &json!("server_error")));
    let talk = broken(ReplyFault::ErrorAfter(2), ServedWire::Anthropic, &ask("hi")).await.events();
    assert_eq!((&talk[2]["type"], &talk[2]["error"]["type"]), (&json!("error"), &json!("overloaded_error")));
}

/// S2.13: a status has the provider's error body, its headers, or whatever was written.
#[tokio::test]
async fn statuses_have_the_providers_body() {
    let status = |status, body: &str, headers| ReplyFault::Status { status, body: body.into(), headers };
    let after = vec![("retry-after".to_owned(), "3600".to_owned())];
    let chat = broken(status(429, "", after), ServedWire::OpenAi, &ask("hi")).await;
    assert!(chat.status == 429 && chat.head.contains("retry-after: 3600"));
    assert_eq!(chat.json()["error"]["code"], "rate_limit_exceeded");
    let talk = broken(status(529, "", Vec::new()), ServedWire::Anthropic, &ask("hi")).await;
    assert_eq!((talk.status, &talk.json()["error"]["type"]), (529, &json!("overloaded_error")));
    assert_eq!(broken(status(500, "oops", Vec::new()), WIRES[0], &ask("hi")).await.text(), "oops");
}

/// S2.13: a success of another type, and bytes that are not a stream, are sent as written.
#[tokio::test]
async fn wrong_answers_are_sent_as_written() {
    let html = ReplyFault::Answer { content_type: "text/html".into(), body: "<html>".into() };
    let response = broken(html, ServedWire::OpenAi, &ask("hi")).await;
    assert!(response.status == 200 && response.head.contains("text/html") && response.text() == "<html>");
    let raw = broken(ReplyFault::Raw(b"data: \xff\n\n".to_vec()), ServedWire::OpenAi, &ask("hi")).await;
    assert_eq!((raw.body.as_slice(), raw.whole), (b"data: \xff\n\n".as_slice(), Whole::Complete));
}

fn open_call() -> Value {
    json!({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "user", "content": "and?"}],
        "input": [{"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"},
            {"role": "user", "content": "and?"}],
        "contents": [{"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"text": "and?"}]}]})
}

/// S5.1: an invalid history is refused with the provider's own 400, uses no reply up, and a lenient server
/// takes it.
#[tokio::test]
async fn invalid_histories_are_refused() {
    for wire in WIRES {
        let server = ModelServer::start(Script::of([Reply::text("fine")])).await.unwrap();
        let mut peer = Peer::to(server.address()).await;
        let refused = peer.exchange(wire, &open_call()).await;
        assert_eq!(refused.status, 400);
        let error = &refused.json()["error"];
        match wire {
            ServedWire::Gemini => assert_eq!(error["status"], "INVALID_ARGUMENT"),
            ServedWire::OpenAi | ServedWire::Anthropic | ServedWire::Responses => {
                assert_eq!(error["type"], "invalid_request_error")
            }
        }
        assert_eq!(server.requests()[0].fate_now().status, 400);
        assert!(peer.exchange(wire, &ask("hi")).await.text().contains("fine"));

        let options = ServerOptions { strictness: Strictness::Lenient, ..ServerOptions::default() };
        let address = ([127, 0, 0, 1], 0).into();
        let lenient = ModelServer::start_with(Script::default(), options, address).await.unwrap();
        assert_eq!(Peer::to(lenient.address()).await.exchange(wire, &open_call()).await.status, 200);
    }
}

/// S2.13: what is not for it, or not JSON, gets an answer that says so, and the connection continues.
#[tokio::test]
async fn nonsense_is_answered() {
    let server = ModelServer::start(Script::of([Reply::text("fine")])).await.unwrap();
    let mut peer = Peer::to(server.address()).await;
    peer.send("/v1/rerank", &json!({})).await;
    assert_eq!(peer.response().await.status, 404);
    peer.send("/v1/messages", &json!("no object")).await;
    assert_eq!(peer.response().await.status, 400);
    assert_eq!(peer.exchange(WIRES[0], &ask("hi")).await.status, 200);
}
