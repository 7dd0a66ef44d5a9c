//! Who may come in by `/mcp`: the server's own checks come first, and a session is its token's.

use std::sync::Arc;

use safepoint::store::{MemoryStore, Store};
use safepoint_server::{AccessScope, Host, Principal, Surface};
use safepoint_testkit::{script::Reply, tools::GateTools, wait::InTime as _};
use serde_json::{Value, json};

use super::{TASKS, call, ours, over, peer::Peer, rpc, text, world};
use crate::{
    client::Client,
    world::{World, says},
};

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

/// S13.53: over two streams too. The refusal has no id, since that would be taken for the answer of the first one.
#[tokio::test]
async fn over_two_streams_an_id_is_that_of_one_request_at_a_time() {
    let tools = GateTools::new();
    let waits = || Reply::call("wait", json!({}));
    let world = world(says([waits(), Reply::text("Done."), waits()]).tool(tools.gated("wait"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let first = peer.send("tools/call", call("Go.")).await;
    tools.gate().came(1).in_time("the call").await;
    for method in ["tools/call", "ping"] {
        let params = if method == "ping" { json!({}) } else { call("Again.") };
        peer.send_as(first, method, params).await;
        let refused = peer.said().await;
        let error = &refused["error"];
        assert_eq!(
            (&error["code"], &error["data"], refused.get("id")),
            (&json!(-32600), &json!({"code": "id_in_use", "id": first}), None),
            "{refused}"
        );
    }
    tools.gate().let_pass(1);
    let answered = peer.said().await;
    assert_eq!((&answered["id"], text(&answered["result"])), (&json!(first), "Done."), "{answered}");
    peer.send_as(first, "ping", json!({})).await;
    assert_eq!(peer.said().await["id"], first, "it was answered, and its id is free");
    let second = peer.send("tools/call", call("Go.")).await;
    tools.gate().came(2).in_time("the second call").await;
    peer.cancel(second).await;
    peer.send_as(second, "ping", json!({})).await;
    assert_eq!(peer.said().await["error"]["data"]["id"], second, "it was cancelled");
    assert!(peer.end().await.is_empty());
    world.end().await;
}

/// S13.53: a second request with the id of one that waits is refused, and the first one is answered as if it had not come; so is one with
/// the id of a request that was cancelled. An id is said again as it came.
#[tokio::test]
async fn an_id_is_that_of_one_request_at_a_time() {
    let tools = GateTools::new();
    let waits = || Reply::call("wait", json!({}));
    let world = world(says([waits(), Reply::text("Done."), waits()]).tool(tools.gated("wait"))).await;
    let client = &world.client;
    let session = client.mcp_session(json!({})).await;
    let large = i64::MAX.unsigned_abs();
    let mut first = client.streamed_in(&session, &rpc::request(large, "tools/call", call("Go."))).await;
    tools.gate().came(1).in_time("the call").await;
    let in_use = async |id: u64| {
        for again in [rpc::request(id, "tools/call", call("Again.")), rpc::request(id, "ping", json!({}))] {
            let refused = client.in_session(&session, &again).await;
            let error = &refused.body["error"];
            assert_eq!(
                (refused.status, &error["code"], &error["data"]["code"], &refused.body["id"]),
                (400, &json!(-32600), &json!("id_in_use"), &json!(id)),
                "{refused:?}"
            );
        }
    };
    in_use(large).await;
    let not_accepted = [("accept", "application/json"), ("mcp-session-id", &*session)];
    let ping = rpc::request(2, "ping", json!({}));
    assert_eq!(client.send("POST", rpc::DOOR, &not_accepted, Some(&ping)).await.status, 406);
    for ping in [&ping, &ping] {
        assert_eq!(client.in_session(&session, ping).await.status, 200, "nothing waits under its id");
    }
    tools.gate().let_pass(1);
    let answered = loop {
        let said = first.data().await.unwrap();
        if said["method"].is_null() {
            break said;
        }
    };
    assert_eq!((&answered["id"], text(&answered["result"])), (&json!(large), "Done."), "{answered}");
    let second = client.streamed_in(&session, &rpc::request(large, "tools/call", call("Go."))).await;
    tools.gate().came(2).in_time("the second call").await;
    let params = json!({"requestId": large});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(client.in_session(&session, &cancel).await.status, 202);
    in_use(large).await;
    drop(second);
    for near in ["1e3", "1.5", "9223372036854775808", "18446744073709551617"] {
        let body =
            rpc::request(1, "ping", json!({})).to_string().replace("\"id\":1", &format!("\"id\":{near}"));
        for headers in [&[rpc::ACCEPT, ("mcp-session-id", &*session)][..], &[rpc::ACCEPT]] {
            let refused = client.send_text("POST", rpc::DOOR, headers, Some(&body)).await;
            let (status, code, id) = (refused.status, &refused.body["error"]["code"], &refused.body["id"]);
            assert_eq!((status, code, id), (400, &json!(-32600), &Value::Null), "{near}: {refused:?}");
        }
    }
    let all = client.get("/v1/sessions").await.body;
    assert_eq!(all["data"].as_array().unwrap().len(), 2, "no other call was begun: {all}");
    world.end().await;
}

/// S13.54: a path of an agent that there is not is not found, whatever the method, by each protocol.
#[tokio::test]
async fn an_agent_that_there_is_not_is_not_found_by_any_method() {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let world = World::offered(says([]).build(), store, folder, &[Surface::Mcp, Surface::A2a]).await;
    let other = world.client_of(Principal::new("other", AccessScope::ALL).only_agents(["another"]));
    for path in ["/mcp/AGENT", "/mcp/AGENT/", "/a2a/AGENT", "/a2a/AGENT/message:send", "/a2a/AGENT/tasks/x"] {
        for method in ["PUT", "PATCH", "TRACE"] {
            let send = async |client: &Client, agent: &str| {
                client.send(method, &path.replace("AGENT", agent), &[rpc::ACCEPT], None).await
            };
            for refused in [send(&world.client, "none").await, send(&other, "helper").await] {
                assert_eq!(refused.status, 404, "{method} {path}: {refused:?}");
                assert!(refused.body.to_string().contains("no_such_agent"), "{method} {path}: {refused:?}");
            }
            let known = send(&world.client, "helper").await;
            assert_eq!(known.status, 405, "{method} {path}: {known:?}");
            assert!(known.head.contains("allow:"), "{method} {path}: {known:?}");
        }
    }
    let none = world.client.send("PUT", "/mcp/none", &[("authorization", "")], None).await;
    assert_eq!(none.status, 401, "{none:?}");
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
