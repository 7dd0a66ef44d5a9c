//! What it says on the Gemini wire.

use std::time::Duration;

use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::{ModelServer, ServedWire},
};
use serde_json::{Value, json};

use super::peer::{Peer, Response, Whole, ask};

fn rich() -> Reply {
    Reply::text("héllo wörld")
        .reasoning("hm, well")
        .redacted("b3BhcXVl")
        .paced(4, Duration::ZERO)
        .and_call("pay", json!({"euros": 5}))
        .and_call_as("id_1", "pay", json!({"euros": 6}))
        .usage(7, 30)
}

async fn says(reply: Reply, body: &Value) -> Response {
    let server = ModelServer::start(Script::of([reply])).await.unwrap();
    Peer::to(server.address()).await.exchange(ServedWire::Gemini, body).await
}

fn parts(events: &[Value]) -> Vec<&Value> {
    events.iter().flat_map(|event| event["candidates"][0]["content"]["parts"].as_array().unwrap()).collect()
}

fn texts(parts: &[&Value], thought: bool) -> String {
    let of = |part: &&&Value| part["thought"].as_bool().unwrap_or(false) == thought;
    parts.iter().filter(of).filter_map(|part| part["text"].as_str()).collect()
}

/// S2.2, S3.9: chunks that are responses of their own; the first call is signed; the figures only grow.
#[tokio::test]
async fn gemini_streams() {
    let response = says(rich(), &ask("hi")).await;
    assert_eq!(response.whole, Whole::Complete);
    assert!(!response.text().contains("[DONE]") && !response.text().contains("event:"));
    let events = response.events();
    let parts = parts(&events);
    assert_eq!((texts(&parts, false).as_str(), texts(&parts, true).as_str()), ("héllo wörld", "hm, well"));
    let calls: Vec<&&Value> = parts.iter().filter(|part| part["functionCall"].is_object()).collect();
    assert_eq!(calls[0]["functionCall"], json!({"name": "pay", "args": {"euros": 5}}));
    assert_eq!(calls[1]["functionCall"]["id"], "id_1");
    assert!(calls[0]["thoughtSignature"].is_string() && calls[1]["thoughtSignature"].is_null());
    let figures: Vec<u64> =
        events.iter().map(|event| event["usageMetadata"]["candidatesTokenCount"].as_u64().unwrap()).collect();
    assert!(figures.is_sorted() && figures[0] < 30 && figures.last() == Some(&30), "{figures:?}");
    let reasons: Vec<&Value> = events.iter().map(|event| &event["candidates"][0]["finishReason"]).collect();
    assert!(reasons[..reasons.len() - 1].iter().all(|reason| reason.is_null()));
    assert_eq!(reasons[reasons.len() - 1], "STOP");
}

/// S2.2: the same reply without a stream; the path says which is wanted.
#[tokio::test]
async fn whole_contents_hold_the_same() {
    let mut body = ask("hi");
    body["stream"] = json!(false);
    let whole = says(rich().finish("MAX_TOKENS"), &body).await.json();
    let parts = parts(std::slice::from_ref(&whole)).into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(texts(&parts.iter().collect::<Vec<_>>(), false), "héllo wörld");
    assert_eq!(whole["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(whole["usageMetadata"]["totalTokenCount"], 37);
    assert_eq!(whole["modelVersion"], "m");
}

/// S2.2: statuses and errors in the stream, as the provider writes them.
#[tokio::test]
async fn gemini_fails_in_its_own_words() {
    for (status, name) in [(401, "UNAUTHENTICATED"), (429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL")] {
        let fault = ReplyFault::Status { status, body: String::new(), headers: Vec::new() };
        let refused = says(Reply::text("x").fault(fault), &ask("hi")).await;
        assert_eq!((refused.status, &refused.json()["error"]["status"]), (status, &json!(name)));
    }
    let broken = says(Reply::text("x").fault(ReplyFault::ErrorAfter(1)), &ask("hi")).await.events();
    assert_eq!((broken.len(), &broken[1]["error"]["status"]), (2, &json!("UNAVAILABLE")));
}
