//! What the server bears, and how it ends.

use std::time::Duration;

use safepoint::ids::SessionId;
use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::json;

use super::world::{World, served};

/// S13.11: a token that asks too much is refused, and its stop is not.
#[tokio::test]
async fn load_refuses_no_stop() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let client = world.client_of(Principal::new("busy", AccessScope::ALL));
    let made = client.post("/v1/sessions", &json!({"item": {"text": "go"}})).await;
    let session = made.body["id"].as_str().unwrap().to_owned();
    let request = gate.request().await;
    let mut refused = None;
    for _ in 0..1_000 {
        let reply = client.get("/v1/agents").await;
        if reply.status != 200 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("1,000 requests at once are too many");
    assert_eq!((refused.status, refused.code()), (429, "rate"));
    assert!(refused.head.contains("retry-after"), "{}", refused.head);
    let stopped =
        client.post(&format!("/v1/sessions/{session}/stop?wait=settled"), &json!({"mode": "now"})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    request.peer_closed().in_time("the end of the model's connection").await;
    let decided = client
        .post(
            &format!("/v1/sessions/{session}/approvals/apr_1/decision"),
            &json!({"digest": "", "decision": "approve"}),
        )
        .await;
    assert_eq!((decided.status, decided.code()), (404, "no_such_approval"), "it was not refused for load");
    world.end().await;
}

/// S13.12: a drain begins nothing, stops what runs with the reason `shutdown`, gives every session back, ends its streams, and
/// what it stopped can be resumed.
#[tokio::test]
async fn what_a_drain_stopped_can_be_resumed() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let mut world = World::of(agent.clone()).await;
    let session = world.session("go").await;
    let request = gate.request().await;
    let idle = world.empty().await;
    let mut events = world.client.events(&session, "").await;
    events.until("model_started").await;
    world.begin_end();
    request.peer_closed().in_time("the end of the model's connection").await;
    let ended = events.until("turn_ended").await;
    assert_eq!(ended.data["outcome"], "interrupted");
    assert!(ended.data["receipt"]["stop"]["reason"].to_string().contains("shutdown"), "{}", ended.data);
    assert_eq!(events.rest().await.last().map(|sent| sent.event.clone()).as_deref(), Some("bye"));
    let (store, folder) = world.end().await;
    for id in [&session, &idle] {
        let row = store.open(&SessionId::from(id.as_str())).await.unwrap();
        assert!(row.holder.is_none(), "{row:?}");
    }
    drop(model);
    let (model, again) = served([Reply::text("Done.")]).await;
    let world = World::over(again, store, folder).await;
    let resumed = world.client.post(&format!("/v1/sessions/{session}/resume"), &json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
    let mut events = world.client.events(&session, "").await;
    while events.until("turn_ended").await.data["outcome"] != "completed" {}
    drop(model);
    world.end().await;
}

/// S13.12: while it drains, the server is not ready and takes no item; it still answers.
#[tokio::test]
async fn a_server_that_drains_begins_nothing() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("go").await;
    let request = gate.request().await;
    let host = world.host.clone();
    let drains = tokio::spawn(async move { host.drain(Duration::from_secs(30)).await });
    while world.client.get("/readyz").await.status == 200 {}
    let refused = world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "more"})).await;
    assert_eq!((refused.status, refused.code()), (503, "draining"));
    assert_eq!(world.client.get(&format!("/v1/sessions/{session}")).await.status, 200);
    let stopped = world.client.post(&format!("/v1/sessions/{session}/stop"), &json!({"mode": "now"})).await;
    assert_eq!(stopped.status, 202, "{stopped:?}");
    request.peer_closed().in_time("the end of the model's connection").await;
    drains.in_time("the drain").await.unwrap();
    world.end().await;
}
