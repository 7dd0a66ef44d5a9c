//! Responses over HTTP: the wire as the clients of OpenAI read it.

use safepoint_testkit::script::Reply;
use serde_json::{Value, json};

use super::{
    client::Sent,
    world::{World, says},
};

const RESPONSES: &str = "/openai/v1/responses";

/// S13.15: a response is one item of one session.
#[tokio::test]
async fn a_response_is_an_item_of_a_session() {
    let world = World::of(says([Reply::text("Lisbon.")]).build()).await;
    let made =
        world.client.post(RESPONSES, &json!({"model": "helper", "input": "Capital of Portugal?"})).await;
    let s = made.body["metadata"]["safepoint_session"].as_str().unwrap().to_owned();
    let t = world.client.get(&format!("/v1/sessions/{s}/timeline")).await;
    for e in t.body["data"].as_array().unwrap() {
        println!("{e}");
    }
    let id = made.body["id"].as_str().unwrap();
    let mut stream = world.client.stream("GET", &format!("{RESPONSES}/{id}?stream=true"), &[], None).await;
    for e in stream.rest().await {
        println!("{} {}", e.event, e.data);
    }
    world.end().await;
}
