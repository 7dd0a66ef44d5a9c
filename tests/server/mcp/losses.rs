//! A client that cancels, and one that is lost: which of it stops a call.

use safepoint_testkit::{ledger::Mark, script::Reply, tools::GateTools, wait, wait::InTime as _};
use serde_json::{Value, json};

use super::{call, ours, over, peer::Peer, rpc, text, world};
use crate::world::{World, says, served};

/// The one session's first turn.
async fn turn(world: &World) -> Value {
    let all = world.client.get("/v1/sessions").await.body;
    let id = all["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{all}")).to_owned();
    world.client.get(&format!("/v1/sessions/{id}/turns/turn-1")).await.body
}

/// Waits until the turn has settled, and returns the code of its stop.
async fn stopped_by(world: &World) -> String {
    wait::asked("the end of the turn", || async { turn(world).await["receipt"].is_object() }).await;
    turn(world).await["receipt"]["stop"]["reason"]["code"].as_str().unwrap_or_default().to_owned()
}

/// S13.6, S13.18: a cancel that is written with its call reaches it, the socket of the model closes, and the call behind it runs.
#[tokio::test]
async fn a_cancel_stops_its_call_and_no_other() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = over(agent).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let first = peer.send("tools/call", call("first")).await;
    let request = one.request().in_time("the first request").await;
    peer.cancel(first).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(stopped_by(&world).await, "user");
    let second = peer.send("tools/call", call("second")).await;
    peer.cancel(99).await;
    two.request().in_time("the second request").await;
    two.headers();
    two.script(&Reply::text("here"));
    two.finish();
    let result = peer.answer(second).await["result"].clone();
    assert_eq!(text(&result), "here", "{result}");
    assert!(peer.notices.is_empty(), "a cancelled request has no answer: {:?}", peer.notices);
    assert_eq!(peer.end().await, Vec::<Value>::new());
    world.end().await;
}

/// S13.6: a cancel right behind its call reaches it, wherever the item is by then.
#[tokio::test]
async fn a_cancel_right_behind_its_call_is_heard() {
    let tools = GateTools::new();
    let world = world(says([Reply::call("wait", json!({}))]).tool(tools.gated("wait"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let id = peer.send("tools/call", call("Go.")).await;
    peer.cancel(id).await;
    wait::asked("the end of the item", || async {
        let all = world.client.get("/v1/sessions").await.body;
        let Some(session) = all["data"][0]["id"].as_str() else { return false };
        let item = world.client.get(&format!("/v1/sessions/{session}/items/item-1")).await.body;
        matches!(item["outcome"].as_str(), Some("interrupted" | "withdrawn"))
    })
    .await;
    assert_eq!(tools.ledger().count(Mark::Commit), 0);
    assert_eq!(peer.end().await, Vec::<Value>::new(), "a cancelled request has no answer");
    world.end().await;
}

/// S13.6, S13.18: a call in a session whose turn runs waits for its own, and is withdrawn by a cancel; the turn that runs is no part of it.
#[tokio::test]
async fn a_call_in_a_busy_session_is_an_item_of_its_own() {
    let tools = GateTools::new();
    let wait = || Reply::call("wait", json!({}));
    let replies = [Reply::text("Hi."), wait(), Reply::text("One."), Reply::text("Three.")];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let session = ours(&peer.call(call("Hi.")).await)["session"].clone();
    let path = format!("/v1/sessions/{}", session.as_str().unwrap());
    let again = |text: &str| json!({"name": "helper", "arguments": {"text": text, "session": session}});
    let first = peer.send("tools/call", again("One.")).await;
    tools.gate().came(1).in_time("the first call").await;
    let second = peer.send("tools/call", again("Two.")).await;
    let item = async |number: u64| world.client.get(&format!("{path}/items/item-{number}")).await;
    wait::asked("the second item", || async { item(3).await.status == 200 }).await;
    let third = peer.send("tools/call", again("Three.")).await;
    wait::asked("the third item", || async { item(4).await.status == 200 }).await;
    peer.cancel(second).await;
    wait::asked("the end of the second item", || async { item(3).await.body["outcome"] == "withdrawn" })
        .await;
    tools.gate().let_pass(1);
    assert_eq!(text(&peer.answer(first).await["result"]), "One.");
    let third = peer.answer(third).await["result"].clone();
    assert_eq!((text(&third), &ours(&third)["turn"]), ("Three.", &json!("turn-3")), "{third}");
    assert_eq!(peer.end().await, Vec::<Value>::new());
    world.end().await;
}

/// S13.3: a closed input stops its calls, with the reason `disconnect`, and answers once they have settled.
#[tokio::test]
async fn a_closed_input_stops_its_calls() {
    let tools = GateTools::new();
    let world = world(says([Reply::call("wait", json!({}))]).tool(tools.polite("wait"))).await;
    let mut peer = Peer::of(&world, json!({})).await;
    let id = peer.send("tools/call", call("Go.")).await;
    tools.gate().came(1).in_time("the call").await;
    let said = peer.end().await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!((&said[0]["id"], &ours(&said[0]["result"])["outcome"]), (&json!(id), &json!("interrupted")));
    assert_eq!(stopped_by(&world).await, "disconnect");
    assert_eq!(tools.ledger().count(Mark::Cleanup), 1, "it had its time");
    world.end().await;
}

/// S13.3: the client of a request that stands alone is lost with its response, and that is a stop, with the reason `disconnect`.
#[tokio::test]
async fn a_lost_response_that_stands_alone_is_a_stop() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let call = world.client.sent_alone("tools/call", call("Go."), json!({})).await;
    let request = gate.request().in_time("the request").await;
    drop(call);
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(stopped_by(&world).await, "disconnect");
    world.end().await;
}

/// S13.3: the same behind its head, which comes while the call still runs.
#[tokio::test]
async fn a_response_that_stands_alone_begins_before_its_call_has_ended() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = over(agent).await;
    let lost = world.client.alone("tools/call", call("Go."), json!({})).await;
    let request = one.request().in_time("the request").await;
    drop(lost);
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(stopped_by(&world).await, "disconnect");
    let mut stream = world.client.alone("tools/call", call("Go."), json!({})).await;
    two.request().in_time("the second request").await;
    two.headers();
    two.script(&Reply::text("here"));
    two.finish();
    assert_eq!(text(&rpc::answered(&mut stream).await), "here");
    world.end().await;
}

/// S13.3, S13.2: the client of a session that loses a response has detached; a cancel from it stops the call all the same.
#[tokio::test]
async fn a_lost_response_of_a_session_is_a_detach() {
    let tools = GateTools::new();
    let replies = [Reply::call("wait", json!({})), Reply::text("Done."), Reply::call("wait", json!({}))];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let session = world.client.mcp_session(json!({})).await;
    let stream = world.client.streamed_in(&session, &rpc::request(1, "tools/call", call("Go."))).await;
    tools.gate().came(1).in_time("the call").await;
    drop(stream);
    let pong = world.client.in_session(&session, &rpc::request(2, "ping", json!({}))).await;
    assert_eq!(pong.status, 200, "the session is there: {pong:?}");
    tools.gate().let_pass(1);
    wait::asked("the end of the turn", || async { turn(&world).await["outcome"] == "completed" }).await;
    let again = world.client.streamed_in(&session, &rpc::request(3, "tools/call", call("Again."))).await;
    tools.gate().came(2).in_time("the second call").await;
    drop(again);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    assert_eq!(world.client.in_session(&session, &cancel).await.status, 202);
    assert_eq!(stopped_by(&world).await, "user");
    world.end().await;
}

/// S13.47: a client that lost a response reads on behind its last event: what comes, also the answer that came while it was away, and
/// nothing twice; in another session the event is not known.
#[tokio::test]
async fn a_lost_response_is_read_on_behind_its_last_event() {
    let tools = GateTools::new();
    let replies = [Reply::call("wait", json!({})), Reply::text("Done.")];
    let world = world(says(replies).tool(tools.gated("wait"))).await;
    let client = &world.client;
    let session = client.mcp_session(json!({})).await;
    let mut params = call("Go.");
    params["_meta"] = json!({"progressToken": "p"});
    let mut lost = client.streamed_in(&session, &rpc::request(1, "tools/call", params)).await;
    let (first, _priming) = lost.numbered().await.unwrap();
    let (last, shown) = lost.numbered().await.unwrap();
    assert_eq!(shown["method"], "notifications/progress", "{shown}");
    tools.gate().came(1).in_time("the call").await;
    drop(lost);
    let mut waits = client.streamed_behind(&session, &last).await;
    tools.gate().let_pass(1);
    let behind = rpc::numbered(&mut waits).await;
    assert!(behind.iter().all(|(id, _)| *id != last), "{behind:?}");
    let (answer, said) = behind.last().unwrap();
    assert_eq!((&said["id"], text(&said["result"])), (&json!(1), "Done."), "{behind:?}");
    let away = async |id: &str| rpc::numbered(&mut client.streamed_behind(&session, id).await).await;
    assert_eq!(away(&last).await, behind, "it was away meanwhile");
    assert_eq!(away(&first).await, [vec![(last.clone(), shown)], behind.clone()].concat());
    assert_eq!(away(answer).await, []);
    let other = client.mcp_session(json!({})).await;
    for (session, unknown) in [(&other, &*last), (&session, "9-9"), (&session, "x"), (&session, "")] {
        let headers =
            [("accept", "text/event-stream"), ("mcp-session-id", session), ("last-event-id", unknown)];
        let refused = client.send("GET", rpc::DOOR, &headers, None).await;
        let error = &refused.body["error"];
        assert_eq!(
            (refused.status, &error["code"], &error["data"]["code"]),
            (400, &json!(-32600), &json!("unknown_event")),
            "{unknown}: {refused:?}"
        );
    }
    assert_eq!(away(&last).await, behind, "the session is as it was");
    world.end().await;
}

/// S13.3: a session that its client deletes stops its calls.
#[tokio::test]
async fn a_deleted_session_stops_its_calls() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let session = world.client.mcp_session(json!({})).await;
    let stream = world.client.streamed_in(&session, &rpc::request(1, "tools/call", call("Go."))).await;
    let request = gate.request().in_time("the request").await;
    let deleted = world.client.send("DELETE", rpc::DOOR, &[("mcp-session-id", &session)], None).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(stopped_by(&world).await, "disconnect");
    drop(stream);
    let gone = world.client.in_session(&session, &rpc::request(2, "ping", json!({}))).await;
    assert_eq!(gone.status, 404, "{gone:?}");
    world.end().await;
}

/// S13.12: a drain answers the calls that it stops, and ends the sessions.
#[tokio::test]
async fn a_drain_answers_what_it_stops() {
    let tools = GateTools::new();
    let mut world = world(says([Reply::call("wait", json!({}))]).tool(tools.gated("wait"))).await;
    let session = world.client.mcp_session(json!({})).await;
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", &*session)];
    let mut own = world.client.stream("GET", rpc::DOOR, &headers, None).await;
    let mut stream = world.client.streamed_in(&session, &rpc::request(1, "tools/call", call("Go."))).await;
    tools.gate().came(1).in_time("the call").await;
    world.begin_end();
    let result = rpc::answered(&mut stream).await;
    assert_eq!(ours(&result)["outcome"], "interrupted", "{result}");
    while own.data().await.is_some() {}
    world.end().await;
}
