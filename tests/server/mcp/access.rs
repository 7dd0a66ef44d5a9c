//! Who may come in by `/mcp`: the server's own checks come first, and a session is its token's.

use std::sync::Arc;

use safepoint::store::{MemoryStore, Store};
use safepoint_server::{AccessScope, Host, Principal, Surface};
use safepoint_testkit::script::Reply;
use serde_json::{Value, json};

use super::{TASKS, call, ours, over, rpc, text, world};
use crate::world::{World, says};

/// S13.10: host, origin, token and scope are checked before a message is read.
#[tokio::test]
async fn a_message_is_read_once_its_sender_is_known() {
    let world = world(says([Reply::text("Hi.")])).await;
    let begin = rpc::request(
        0,
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    );
    for (header, status, code) in [
        (("authorization", "Bearer spt_none_none"), 401, "no_token"),
        (("origin", "https://evil.example.com"), 403, "origin"),
        (("host", "evil.example.com"), 421, "host"),
        (("content-type", "text/plain"), 415, "media_type"),
    ] {
        let refused = world.client.send("POST", rpc::DOOR, &[rpc::ACCEPT, header], Some(&begin)).await;
        let said = &refused.body["error"]["data"]["code"];
        assert_eq!((refused.status, said), (status, &json!(code)), "{refused:?}");
    }
    let reads = world.client_of(Principal::new("reads", [AccessScope::Read]));
    let mut stream = reads.alone("tools/call", call("Hi."), json!({})).await;
    let refused = stream.data().await.unwrap();
    assert_eq!(refused["error"]["data"]["code"], "scope_missing", "{refused}");
    assert_eq!(world.client.get("/v1/sessions").await.body["data"], json!([]), "nothing was begun");
    let talks = world.client_of(Principal::new("talks", [AccessScope::Talk]));
    let result = talks.alone_result("tools/call", call("Hi."), json!({})).await;
    assert_eq!(text(&result), "Hi.", "{result}");
    world.end().await;
}

/// S13.42: what the transport refuses is an error of the protocol with a code, too.
#[tokio::test]
async fn a_refusal_of_the_transport_is_an_error_of_the_protocol() {
    let world = world(says([])).await;
    let session = world.client.mcp_session(json!({})).await;
    let ping = rpc::request(1, "ping", json!({}));
    let [json, events, any] =
        ["application/json", "text/event-stream", "text/html"].map(|kind| ("accept", kind));
    let gone = ("mcp-session-id", "none");
    let of = ("mcp-session-id", &*session);
    for (method, headers, status, code) in [
        ("POST", [json, of], 406, "not_acceptable"),
        ("POST", [events, of], 406, "not_acceptable"),
        ("GET", [any, of], 406, "not_acceptable"),
        ("POST", [rpc::ACCEPT, ("mcp-protocol-version", "1")], 400, "bad_request"),
        ("GET", [events, gone], 404, "no_such_session"),
    ] {
        let body = (method == "POST").then_some(&ping);
        let refused = world.client.send(method, rpc::DOOR, &headers, body).await;
        let error = &refused.body["error"];
        assert_eq!((refused.status, &error["data"]["code"]), (status, &json!(code)), "{refused:?}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{refused:?}");
        let head = refused.head.to_ascii_lowercase();
        assert!(head.contains("content-type: application/json"), "{head}");
    }
    world.end().await;
}

/// S13.48: what is no message of the protocol is refused with what is wrong, in a session and alone; nothing is begun.
#[tokio::test]
async fn what_is_no_message_is_an_error_of_the_protocol() {
    let world = world(says([])).await;
    let session = world.client.mcp_session(json!({})).await;
    let of = ("mcp-session-id", &*session);
    let call = rpc::request(7, "tools/call", call("Hi."));
    let with = |field: &str, value: Value| {
        let mut message = call.clone();
        message[field] = value;
        message.to_string()
    };
    for (body, code, id, about) in [
        ("{\"jsonrpc\"".to_owned(), -32700, Value::Null, "JSON"),
        (with("id", Value::Null), -32600, Value::Null, "`id`"),
        (with("params", json!([1])), -32600, json!(7), "`params`"),
        (with("jsonrpc", json!("1.0")), -32600, json!(7), "`jsonrpc`"),
    ] {
        for headers in [&[rpc::ACCEPT, of][..], &[rpc::ACCEPT]] {
            let refused = world.client.send_text("POST", rpc::DOOR, headers, Some(&body)).await;
            let error = &refused.body["error"];
            assert_eq!((refused.status, &error["code"]), (400, &json!(code)), "{refused:?}");
            assert!(error["message"].as_str().unwrap().contains(about), "{refused:?}");
            assert_eq!(refused.body["id"], id, "{refused:?}");
        }
    }
    assert_eq!(world.client.get("/v1/sessions").await.body["data"], json!([]), "nothing was begun");
    world.end().await;
}

/// S13.48: a method of HTTP that is not served is refused in the form of the protocol, with those that are.
#[tokio::test]
async fn a_method_that_is_not_served_names_those_that_are() {
    let world = world(says([])).await;
    let session = world.client.mcp_session(json!({})).await;
    for method in ["HEAD", "PUT", "PATCH", "OPTIONS", "TRACE"] {
        for headers in [&[rpc::ACCEPT, ("mcp-session-id", &*session)][..], &[]] {
            let refused = world.client.send(method, rpc::DOOR, headers, None).await;
            let allowed = refused.head.lines().find_map(|line| line.strip_prefix("allow: "));
            let mut allowed: Vec<_> = allowed.unwrap().split(", ").collect();
            allowed.sort_unstable();
            assert_eq!((refused.status, &*allowed), (405, &["delete", "get", "post"][..]), "{refused:?}");
            assert!(refused.head.contains("content-type: application/json"), "{refused:?}");
            let said = &refused.body["error"]["data"]["code"];
            assert!(method == "HEAD" || said == "method", "{refused:?}");
        }
    }
    world.end().await;
}

/// S13.48: parameters that a method does not take are refused as such, and the method is not said to be unknown.
#[tokio::test]
async fn parameters_that_are_not_valid_are_not_an_unknown_method() {
    let world = world(says([])).await;
    let tasks = json!({"extensions": {TASKS: {}}});
    for (method, params, about) in [
        ("tasks/update", json!({"taskId": "x.1", "inputResponses": []}), "map"),
        ("tasks/get", json!({"taskId": 1}), "string"),
        ("tools/call", json!({"name": "helper", "arguments": []}), "map"),
    ] {
        let mut stream = world.client.alone(method, params, tasks.clone()).await;
        let refused = stream.data().await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains(method) && said.contains(about), "{said}");
    }
    world.end().await;
}

/// S13.10: a session of the protocol, and one of ours, exists for its token alone.
#[tokio::test]
async fn a_session_exists_for_its_token_alone() {
    let world = world(says([Reply::text("Hi.")])).await;
    let one = world.client_of(Principal::new("one", [AccessScope::Talk, AccessScope::Read]));
    let two = world.client_of(Principal::new("two", [AccessScope::Talk, AccessScope::Read]));
    let session = one.mcp_session(json!({})).await;
    for (method, body) in
        [("POST", Some(rpc::request(1, "ping", json!({})))), ("GET", None), ("DELETE", None)]
    {
        let headers = [rpc::ACCEPT, ("mcp-session-id", &*session)];
        let refused = two.send(method, rpc::DOOR, &headers, body.as_ref()).await;
        assert_eq!(refused.status, 404, "{method}: {refused:?}");
    }
    let reply = one.in_session(&session, &rpc::request(1, "tools/call", call("Hi."))).await;
    let result = rpc::messages(&reply).into_iter().find(|said| said["id"] == 1).unwrap()["result"].clone();
    let ours = ours(&result)["session"].as_str().unwrap().to_owned();
    let again = json!({"name": "helper", "arguments": {"text": "x", "session": ours}});
    let refused = two.alone_result("tools/call", again, json!({})).await;
    assert_eq!(refused["structuredContent"]["code"], "no_such_session", "{refused}");
    world.end().await;
}

/// S13.10: an agent that is not offered here does not exist here.
#[tokio::test]
async fn an_agent_that_is_not_offered_is_not_found() {
    let world = World::of(says([]).build()).await;
    let message = rpc::request(1, "ping", json!({}));
    let refused = world.client.send("POST", rpc::DOOR, &[rpc::ACCEPT], Some(&message)).await;
    assert_eq!((refused.status, &refused.body["error"]["data"]["code"]), (404, &json!("no_such_agent")));
    world.end().await;
    let world = over(says([]).build()).await;
    let other = world.client_of(Principal::new("other", AccessScope::ALL).only_agents(["another"]));
    let refused = other.send("POST", rpc::DOOR, &[rpc::ACCEPT], Some(&message)).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    assert!(matches!(refused.body, Value::Object(_)), "{refused:?}");
    world.end().await;
}

/// S13.10: by the door of one agent, the sessions of another do not exist.
#[tokio::test]
async fn a_session_of_another_agent_is_not_found() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let host = Host::builder(Arc::clone(&store)).agent("helper", says([]).build());
    let host = host.agent("other", says([Reply::text("Hi.")]).build());
    let host = host.surfaces("helper", [Surface::Mcp]).start().await.unwrap();
    let world = World::of_host(host, store).await;
    let made = json!({"agent": "other", "item": {"text": "Hi."}});
    let session = world.client.post("/v1/sessions", &made).await.body["id"].as_str().unwrap().to_owned();
    world.rest(&session, 1).await;
    let foreign = json!({"name": "helper", "arguments": {"text": "x", "session": session}});
    let refused = world.client.alone_result("tools/call", foreign, json!({})).await;
    assert_eq!(ours(&refused)["code"], "no_such_session", "{refused}");
    let tasks = json!({"extensions": {TASKS: {}}});
    let mut stream = world.client.alone("tasks/get", json!({"taskId": format!("{session}.1")}), tasks).await;
    let refused = stream.data().await.unwrap();
    assert_eq!(refused["error"]["data"]["code"], "no_such_task", "{refused}");
    world.end().await;
}
