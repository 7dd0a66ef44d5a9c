//! What the server bears, and how it ends.

use std::{sync::Arc, time::Duration};

use safepoint::{
    ids::SessionId,
    store::{MemoryStore, Store},
};
use safepoint_server::{AccessScope, Host, Principal};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    tool_gate::ToolGate,
    wait::InTime as _,
};
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

/// S13.12, S13.27: an item that no turn had when the server gave its session back has not ended: it waits for the next owner, and so it is
/// shown, in the stream too.
#[tokio::test]
async fn what_no_turn_had_when_its_session_ended_is_shown_as_waiting() {
    let released = ToolGate::shut();
    let kept: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let faulty = Arc::new(FaultStore::unarmed(kept, OperationFault::Late(released.clone())));
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let host = Host::builder(Arc::clone(&store)).agent("helper", agent).start().await.unwrap();
    let world = World::of_host(host, store).await;
    let session = world.session("go").await;
    let request = gate.request().await;
    let mut events = world.client.events(&session, "").await;
    let items = format!("/v1/sessions/{session}/items");
    assert_eq!(world.client.post(&items, &json!({"text": "behind"})).await.status, 202);
    let accepted = events.until("item").await;
    assert_eq!((&accepted.data["id"], &accepted.data["state"]), (&json!("item-2"), &json!("accepted")));
    faulty.arm_named("release", 0);
    let host = world.host.clone();
    let drains = tokio::spawn(async move { host.drain(Duration::ZERO).await });
    request.peer_closed().in_time("the end of the model's connection").await;
    released.came(1).in_time("the session is given back").await;
    let shown = world.client.get(&format!("{items}/item-2")).await;
    assert_eq!(
        (&shown.body["state"], &shown.body["outcome"]),
        (&json!("accepted"), &json!(null)),
        "{shown:?}"
    );
    released.open_for_all();
    let rest = events.rest().await;
    assert_eq!(rest.last().map(|sent| sent.event.as_str()), Some("bye"), "{rest:?}");
    assert!(!rest.iter().any(|sent| sent.event == "item" && sent.data["id"] == "item-2"), "{rest:?}");
    drains.in_time("the drain").await.unwrap();
    let shown = world.client.get(&format!("{items}/item-2")).await;
    assert_eq!(shown.body["state"], "accepted", "{shown:?}");
    world.end().await;
}

/// S6.23, S13.46: a bounded number of turns runs at once, and the others wait. A stop of whatever turn there is, which finds the next one waiting
/// for its place, keeps it from beginning and says that it holds what waits; the session shows that, and a resume releases it.
#[tokio::test]
async fn a_stop_of_a_turn_that_waits_for_its_place_holds_it_until_it_is_resumed() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let host = Host::builder(Arc::clone(&store)).agent("helper", agent).running(1).start().await.unwrap();
    let world = World::of_host(host, store).await;
    let first = world.session("go").await;
    one.request().await;
    let second = world.session("wait").await;
    let (path, stop) = (format!("/v1/sessions/{second}"), json!({"what": {"turn": null}, "mode": "now"}));
    let held = world.client.post(&format!("{path}/stop?wait=quiet"), &stop).await;
    assert_eq!((held.status, &held.body["held"], &held.body["state"]), (200, &json!(true), &json!("quiet")));
    assert_eq!((&held.body["turn"], &held.body["recorded"]), (&json!(null), &json!(false)), "{held:?}");
    let again = world.client.post(&format!("{path}/stop"), &stop).await;
    assert_eq!((again.status, again.code()), (409, "no_active_turn"), "it is held already: {again:?}");
    one.script(&Reply::text("Done."));
    one.headers();
    one.finish();
    assert_eq!(world.rest(&first, 1).await["outcome"], "completed");
    let shown = world.client.get(&path).await.body;
    assert_eq!((&shown["held"], &shown["resumable"]), (&json!(true), &json!(null)), "{shown}");
    assert_eq!((&shown["state"], &shown["waiting"]), (&json!("queued"), &json!(["item-1"])), "{shown}");
    let resumed = world.client.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
    two.request().await;
    assert_eq!(world.client.get(&path).await.body["held"], false);
    two.script(&Reply::text("Done."));
    two.headers();
    two.finish();
    assert_eq!(world.rest(&second, 1).await["outcome"], "completed");
    let over = world.client.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!((over.status, over.code()), (409, "nothing_to_resume"), "{over:?}");
    world.end().await;
}
