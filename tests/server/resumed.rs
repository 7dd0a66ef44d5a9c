//! Turns that run again after they were stopped: what each surface says of them, and their stops.

use std::sync::Arc;

use safepoint::{
    Agent,
    ids::SessionId,
    raw::{StoredStop, store_stop},
    session::SessionStop,
    store::Store,
    tool,
};
use safepoint_server::Host;
use safepoint_testkit::{script::Reply, server::ModelServer, wait, wait::InTime as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    crashed::cut,
    world::{World, says, served},
};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay() -> String {
    "paid".to_owned()
}

/// Stops what runs, and waits until all of it is quiet.
async fn stopped(world: &World, session: &str) -> Value {
    let stop = format!("/v1/sessions/{session}/stop?wait=quiet");
    let stopped = world.client.post(&stop, &json!({"mode": "now"})).await;
    assert_eq!((stopped.status, &stopped.body["state"]), (200, &json!("quiet")), "{stopped:?}");
    stopped.body
}

/// Resumes the turn that was stopped.
pub(super) async fn resumed(world: &World, session: &str) {
    let resumed = world.client.post(&format!("/v1/sessions/{session}/resume"), &json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
}

/// A session whose turn was stopped while its model was asked.
async fn stopped_session() -> (World, ModelServer, String) {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.empty().await;
    let pushed = world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "go"})).await;
    assert_eq!(pushed.status, 202, "{pushed:?}");
    gate.request().in_time("the first request").await;
    assert_eq!(stopped(&world, &session).await["number"], 1);
    (world, model, session)
}

/// S7.5, S5.3: a resume that comes after a stop of the session is not refused because the stop ends the owner that was opened for it.
#[tokio::test]
async fn a_resume_after_a_stop_that_no_process_has_seen_resumes() {
    let (world, model, session) = stopped_session().await;
    world.rest(&session, 1).await;
    let id = SessionId::from(session.as_str());
    let stop = StoredStop::Session(SessionStop::at_turn_end());
    store_stop(&*world.store, &id, &stop).await.unwrap();
    let is_closed = async || world.store.open(&id).await.unwrap().holder.is_none();
    wait::asked("the session is closed", is_closed).await;
    let mut gate = model.gate();
    store_stop(&*world.store, &id, &stop).await.unwrap();
    resumed(&world, &session).await;
    gate.request().in_time("the second request").await;
    gate.headers();
    gate.script(&Reply::text("Done."));
    gate.finish();
    assert_eq!(world.rest(&session, 1).await["outcome"], "completed");
    world.end().await;
}

/// S13.31: an item whose turn is resumed runs with it, and ends with it.
#[tokio::test]
async fn the_item_of_a_resumed_turn_is_as_its_turn() {
    let (world, model, session) = stopped_session().await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "interrupted");
    let mut gate = model.gate();
    resumed(&world, &session).await;
    gate.request().in_time("the second request").await;
    let again = world.client.get(&format!("/v1/sessions/{session}/items/item-1")).await.body;
    assert_eq!(
        (&again["state"], &again["turn"], &again["outcome"]),
        (&json!("running"), &json!("turn-1"), &Value::Null),
        "{again}"
    );
    gate.headers();
    gate.script(&Reply::text("Done."));
    gate.finish();
    let done = world.rest(&session, 1).await;
    assert_eq!((&done["outcome"], &done["answer"]), (&json!("completed"), &json!("Done.")), "{done}");
    world.end().await;
}

/// S13.31, S13.5: a stop of a turn that was resumed is stored too, and has another number.
#[tokio::test]
async fn the_stop_of_a_resumed_turn_has_another_number() {
    let (world, model, session) = stopped_session().await;
    let mut gate = model.gate();
    resumed(&world, &session).await;
    gate.request().in_time("the second request").await;
    let second = stopped(&world, &session).await;
    assert_eq!((&second["number"], &second["recorded"]), (&json!(2), &json!(true)), "{second}");
    let kept = world.client.get(&format!("/v1/sessions/{session}/stops/2")).await;
    assert_eq!((kept.status, &kept.body["state"]), (200, &json!("quiet")), "{kept:?}");
    world.end().await;
}

/// A server that opens no session by itself.
async fn unopened(agent: Agent, store: Arc<dyn Store>, folder: Arc<TempDir>) -> World {
    let host = Host::builder(Arc::clone(&store)).agent("helper", agent).only_when_asked();
    World::at(host.start().await.unwrap(), store, folder, |access| access).await
}

/// S13.31: a session names the turn that a resume continues, whether it is open or not.
#[tokio::test]
async fn a_session_that_is_not_open_names_the_turn_that_may_be_resumed() {
    let (world, model, session) = stopped_session().await;
    let path = format!("/v1/sessions/{session}");
    let here = world.client.get(&path).await.body;
    assert_eq!((&here["open"], &here["resumable"]), (&json!("here"), &json!("turn-1")), "{here}");
    let (store, folder) = world.end().await;
    drop(model);
    let world = unopened(says([Reply::text("Done.")]).build(), store, folder).await;
    let left = world.client.get(&path).await.body;
    assert_eq!((&left["open"], &left["resumable"]), (&json!("no"), &json!("turn-1")), "{left}");
    resumed(&world, &session).await;
    let mut events = world.client.events(&session, "").await;
    while events.until("turn_ended").await.data["outcome"] != "completed" {}
    let (store, folder) = world.end().await;
    let world = unopened(says([]).build(), store, folder).await;
    let done = world.client.get(&path).await.body;
    assert_eq!((&done["open"], &done["resumable"]), (&json!("no"), &Value::Null), "{done}");
    world.end().await;
}

/// S13.31: the same of a turn that was cut; its item does not run meanwhile.
#[tokio::test]
async fn a_turn_that_was_cut_may_be_resumed_and_does_not_run() {
    let (session, store, folder, _owner) = cut(0).await;
    let world = World::over(says([Reply::text("Done.")]).build(), store, folder).await;
    let path = format!("/v1/sessions/{session}");
    let left = world.client.get(&path).await.body;
    assert_eq!((&left["state"], &left["resumable"]), (&json!("crashed"), &json!("turn-1")), "{left}");
    let item = format!("{path}/items/item-1");
    assert_eq!(world.client.get(&item).await.body["state"], "accepted");
    let (client, wait) = (world.client.clone(), format!("{item}?wait=rest"));
    let opens = tokio::spawn(async move { client.get(&wait).await });
    wait::asked("a new owner", async || world.client.get(&path).await.body["open"] == "here").await;
    let opened = world.client.get(&item).await.body;
    assert!(opened["state"] == "accepted" || opened["outcome"] == "crashed", "nothing of it runs: {opened}");
    assert_eq!(opens.await.unwrap().body["outcome"], "crashed");
    let open = world.client.get(&path).await.body;
    assert_eq!((&open["open"], &open["resumable"]), (&json!("here"), &json!("turn-1")), "{open}");
    world.end().await;
}

/// S13.31: no turn that waits for a decision may be resumed.
#[tokio::test]
async fn a_turn_that_waits_for_a_decision_is_not_resumable() {
    let agent = says([Reply::call("pay", json!({}))]).tool(pay).build();
    let world = World::of(agent.clone()).await;
    let session = world.session("Pay.").await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "suspended");
    let path = format!("/v1/sessions/{session}");
    let waits = async |world: &World| {
        let shown = world.client.get(&path).await.body;
        assert_eq!((&shown["state"], &shown["resumable"]), (&json!("suspended"), &Value::Null), "{shown}");
    };
    waits(&world).await;
    let resumed = world.client.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!((resumed.status, resumed.code()), (409, "nothing_to_resume"), "{resumed:?}");
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    waits(&world).await;
    world.end().await;
}

/// S13.31, S13.15: a response that was cancelled stays so while its turn runs again, says nothing of it that is not so any more, and a
/// cancel stops that turn.
#[tokio::test]
async fn a_cancel_stops_the_turn_of_a_cancelled_response_that_runs_again() {
    let (model, agent) = served([]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = World::of(agent).await;
    let body = json!({"model": "helper", "input": "go", "background": true});
    let made = world.client.post("/openai/v1/responses", &body).await.body;
    let session = made["metadata"]["safepoint_session"].as_str().unwrap();
    let path = format!("/openai/v1/responses/{}", made["id"].as_str().unwrap());
    one.request().in_time("the first request").await;
    stopped(&world, session).await;
    let said =
        |response: &Value| (response["status"].clone(), response["metadata"]["safepoint_quiet"].clone());
    let first = world.client.get(&path).await.body;
    assert_eq!(said(&first), (json!("cancelled"), json!("true")), "{first}");
    resumed(&world, session).await;
    let request = two.request().in_time("the second request").await;
    let again = world.client.get(&path).await.body;
    assert_eq!(said(&again), (json!("cancelled"), json!("unknown")), "{again}");
    let cancelled = world.client.post(&format!("{path}/cancel"), &json!({})).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelled")), "{cancelled:?}");
    let item = world.client.get(&format!("/v1/sessions/{session}/items/item-1")).await.body;
    assert_eq!((&item["state"], &item["outcome"]), (&json!("rest"), &json!("interrupted")), "{item}");
    world.end().await;
}

/// S13.31: a response whose turn was cut says what continues it.
#[tokio::test]
async fn a_response_of_a_turn_that_was_cut_says_what_continues_it() {
    let (session, store, folder, _owner) = cut(0).await;
    let world = World::over(says([]).build(), store, folder).await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "crashed");
    let id = format!("resp_{}_1", session);
    let cut = world.client.get(&format!("/openai/v1/responses/{id}")).await.body;
    assert_eq!(cut["status"], "failed", "{cut}");
    let message = cut["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("`safepoint resume {session}` continues it")), "{message}");
    world.end().await;
}
