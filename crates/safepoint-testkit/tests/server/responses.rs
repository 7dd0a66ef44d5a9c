//! What it says on the Responses wire, and what it keeps in the background.

use std::time::Duration;

use safepoint_testkit::{
    script::{Reply, ReplyFault, Script},
    server::{Ask, ModelServer, ServedWire, What},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::peer::{Peer, Response, Whole, ask};

fn rich() -> Reply {
    Reply::text("héllo wörld")
        .reasoning("hm, well")
        .redacted("b3BhcXVl")
        .paced(4, Duration::ZERO)
        .and_call_as("id_1", "pay", json!({"euros": 5}))
        .usage(7, 3)
}

async fn says(reply: Reply, body: &Value) -> Response {
    let server = ModelServer::start(Script::of([reply])).await.unwrap();
    Peer::to(server.address()).await.exchange(ServedWire::Responses, body).await
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// S2.2: a response's events: named, numbered without a gap, items one after the other, the whole response
/// last.
#[tokio::test]
async fn responses_stream() {
    let response = says(rich(), &ask("hi")).await;
    assert_eq!(response.whole, Whole::Complete);
    let events = response.events();
    let kinds = kinds(&events);
    let text = response.text();
    let named: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, named);
    assert_eq!((kinds[0], kinds[1]), ("response.created", "response.in_progress"));
    assert_eq!(kinds.last(), Some(&"response.completed"));
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..events.len() as u64), "{numbers:?}");
    let of = |kind: &str| -> String {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .filter_map(|event| event["delta"].as_str())
            .collect()
    };
    assert_eq!(of("response.output_text.delta"), "héllo wörld");
    assert_eq!(of("response.reasoning_summary_text.delta"), "hm, well");
    assert_eq!(of("response.function_call_arguments.delta"), r#"{"euros":5}"#);
    let over = &events.last().unwrap()["response"];
    let items: Vec<&Value> = over["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(items, ["reasoning", "reasoning", "message", "function_call"]);
    assert_eq!((&over["usage"]["input_tokens"], &over["usage"]["output_tokens"]), (&json!(7), &json!(3)));
}

/// S2.2: the same reply without a stream, and one that its length cut.
#[tokio::test]
async fn whole_responses_hold_the_same() {
    let mut body = ask("hi");
    body["stream"] = json!(false);
    let response = says(rich().finish("max_output_tokens"), &body).await.json();
    assert_eq!(response["output"][2]["content"][0]["text"], "héllo wörld");
    assert_eq!(response["output"][3]["call_id"], "id_1");
    assert_eq!(
        (&response["status"], &response["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
}

async fn bare(peer: &mut Peer, method: &str, path: &str) -> Response {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    peer.socket.write_all(head.as_bytes()).await.unwrap();
    peer.response().await
}

/// S2.2: a response in the background is read on from any event after its stream broke; once read, it is
/// over.
#[tokio::test]
async fn a_kept_response_is_read_on() {
    let script = Script::of([Reply::pieces(["one", "two", "three"]).fault(ReplyFault::CloseAfter(5))]);
    let server = ModelServer::start(script).await.unwrap();
    let mut body = ask("hi");
    body["background"] = json!(true);
    let cut = Peer::to(server.address()).await.exchange(ServedWire::Responses, &body).await;
    assert_eq!(cut.whole, Whole::Closed);
    let seen = cut.events();
    let id = seen[0]["response"]["id"].as_str().unwrap();
    let mut peer = Peer::to(server.address()).await;
    let rest =
        bare(&mut peer, "GET", &format!("/v1/responses/{id}?stream=true&starting_after=4")).await.events();
    assert_eq!((rest[0]["sequence_number"].as_u64(), rest[0]["delta"].as_str()), (Some(5), Some("two")));
    assert_eq!(kinds(&rest).last(), Some(&"response.completed"));
    let late = bare(&mut peer, "POST", &format!("/v1/responses/{id}/cancel")).await.json();
    assert_eq!(late["status"], "completed");
    assert_eq!(bare(&mut peer, "GET", "/v1/responses/none").await.status, 404);
    assert_eq!(server.asked_about()[0], Ask { response: id.into(), what: What::Rest { after: Some(4) } });
    assert_eq!(server.requests().len(), 1);
}

/// S2.2: a cancel ends it, the second one changes nothing, and what is read then says so.
#[tokio::test]
async fn a_kept_response_is_called_off() {
    let script = Script::of([Reply::pieces(["one", "two"]).fault(ReplyFault::CloseAfter(5))]);
    let server = ModelServer::start(script).await.unwrap();
    let mut body = ask("hi");
    body["background"] = json!(true);
    let cut = Peer::to(server.address()).await.exchange(ServedWire::Responses, &body).await.events();
    let id = cut[0]["response"]["id"].as_str().unwrap();
    let mut peer = Peer::to(server.address()).await;
    for _ in 0..2 {
        let answer = bare(&mut peer, "POST", &format!("/v1/responses/{id}/cancel")).await.json();
        assert_eq!(answer["status"], "cancelled");
    }
    let rest = bare(&mut peer, "GET", &format!("/v1/responses/{id}?stream=true")).await.events();
    assert_eq!(kinds(&rest), ["response.cancelled"]);
}
