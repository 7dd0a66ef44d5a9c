//! Turns that run again after they were stopped: what each surface says of them, and their stops.

use safepoint_testkit::{script::Reply, server::ModelServer, wait::InTime as _};
use serde_json::{Value, json};

use super::{
    world::{World, served},
};

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

/// S13.31, S13.5: a stop of a turn that was resumed is a stop of its own, with its own number.
#[tokio::test]
async fn the_stop_of_a_resumed_turn_has_a_number_of_its_own() {
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
