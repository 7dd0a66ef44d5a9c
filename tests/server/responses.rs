//! Responses over HTTP: the wire as the clients of OpenAI read it.

use std::time::Duration;

use futures_util::future::join_all;
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    wait::InTime as _,
};
use serde_json::{Value, json};

use super::{
    client::{Client, Sent},
    world::{World, of, says, served},
};

#[path = "responses/ended.rs"]
mod ended;
#[path = "responses/questions.rs"]
mod questions;
#[path = "responses/streams.rs"]
mod streams;

const RESPONSES: &str = "/openai/v1/responses";

/// A response in the background.
async fn begun(client: &Client, text: &str) -> Value {
    let made = client.post(RESPONSES, &json!({"model": "helper", "input": text, "background": true})).await;
    assert_eq!(made.status, 200, "{made:?}");
    made.body
}

async fn retrieved(client: &Client, id: &Value) -> Value {
    let found = client.get(&format!("{RESPONSES}/{}", id.as_str().unwrap())).await;
    assert_eq!(found.status, 200, "{found:?}");
    found.body
}

/// The response once it is over.
async fn over(world: &World, response: &Value) -> Value {
    let metadata = &response["metadata"];
    let session = metadata["safepoint_session"].as_str().unwrap();
    let number = metadata["safepoint_item"].as_str().unwrap().strip_prefix("item-").unwrap();
    drop(world.rest(session, number.parse().unwrap()).await);
    retrieved(&world.client, &response["id"]).await
}

/// The events of a response behind this number.
async fn events(client: &Client, id: &Value, after: Option<u64>) -> Vec<Sent> {
    let after = after.map(|after| format!("&starting_after={after}")).unwrap_or_default();
    let path = format!("{RESPONSES}/{}?stream=true{after}", id.as_str().unwrap());
    client.stream("GET", &path, &[], None).await.rest().await
}

fn number(sent: &Sent) -> u64 {
    sent.data["sequence_number"].as_u64().unwrap()
}

fn text(response: &Value) -> String {
    let content = response["output"].as_array().unwrap().iter().filter_map(|item| item["content"].as_array());
    content.flatten().filter_map(|part| part["text"].as_str()).collect()
}

/// S13.15: a response is one item of one session, which the own API has too, and its id finds it after a restart.
#[tokio::test]
async fn a_response_is_an_item_and_its_id_finds_it_after_a_restart() {
    let world = World::of(says([Reply::text("Lisbon.")]).build()).await;
    let made = begun(&world.client, "What is the capital of Portugal?").await;
    assert!(["queued", "in_progress"].contains(&made["status"].as_str().unwrap()), "{made}");
    let found = over(&world, &made).await;
    assert_eq!(
        (&found["id"], &found["status"], &*text(&found)),
        (&made["id"], &json!("completed"), "Lisbon.")
    );
    assert_eq!(found["usage"]["total_tokens"], 3, "{found}");
    let receipt = world.client.get(found["metadata"]["safepoint_receipt"].as_str().unwrap()).await;
    assert_eq!((receipt.status, &receipt.body["answer"]), (200, &json!("Lisbon.")));
    let stranger = safepoint_server::Principal::new("stranger", [safepoint_server::AccessScope::Read]);
    let path = format!("{RESPONSES}/{}", made["id"].as_str().unwrap());
    let hidden = world.client_of(stranger).get(&path).await;
    assert_eq!((hidden.status, &hidden.body["error"]["code"]), (404, &json!("no_such_response")));
    let (store, folder) = world.end().await;
    let world = World::over(says([]).build(), store, folder).await;
    let again = retrieved(&world.client, &made["id"]).await;
    for same in ["id", "status", "output", "usage", "created_at", "metadata", "previous_response_id"] {
        assert_eq!(again[same], found[same], "{same}");
    }
    world.end().await;
}

/// S13.15: a response continues the conversation of the one before it, or that of its conversation; what is not the newest has no
/// other branch.
#[tokio::test]
async fn a_response_continues_the_one_before_it() {
    let model = ScriptedModel::new(Script::of(["One.", "Two.", "Three."].map(Reply::text)));
    let world = World::of(of(model.clone()).build()).await;
    let ask = |more: Value| {
        let mut body = json!({"model": "helper", "input": "next"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let one = world.client.post(RESPONSES, &ask(json!({}))).await.body;
    let two = world.client.post(RESPONSES, &ask(json!({"previous_response_id": one["id"]}))).await.body;
    assert_eq!((&*text(&two), &two["previous_response_id"]), ("Two.", &one["id"]), "{two}");
    let branch = world.client.post(RESPONSES, &ask(json!({"previous_response_id": one["id"]}))).await;
    assert_eq!((branch.status, &branch.body["error"]["code"]), (409, &json!("not_latest")), "{branch:?}");
    let conversation = json!({"conversation": {"id": two["conversation"]["id"]}});
    let three = world.client.post(RESPONSES, &ask(conversation)).await.body;
    assert_eq!((&*text(&three), &three["conversation"]), ("Three.", &one["conversation"]), "{three}");
    assert_eq!(model.requests().last().unwrap().entries().iter().count(), 5);
    world.end().await;
}

/// S13.15: a conversation is a session; it is made without a response, and its first one begins it.
#[tokio::test]
async fn a_conversation_is_a_session() {
    let world = World::of(says([Reply::text("One.")]).build()).await;
    let made = world.client.post("/openai/v1/conversations", &json!({"metadata": {"model": "helper"}})).await;
    assert_eq!((made.status, &made.body["object"]), (200, &json!("conversation")), "{made:?}");
    let path = format!("/openai/v1/conversations/{}", made.body["id"].as_str().unwrap());
    assert_eq!(world.client.get(&path).await.body, made.body);
    let body = json!({"input": "go", "conversation": made.body["id"]});
    let one = world.client.post(RESPONSES, &body).await;
    assert_eq!((one.status, &*text(&one.body)), (200, "One."), "{one:?}");
    world.end().await;
}

/// S13.15: messages before the last one are the conversation with which the session begins, also if the server ends before it opens it.
#[tokio::test]
async fn earlier_messages_begin_the_session() {
    let model = ScriptedModel::new(Script::of([Reply::text("Four.")]));
    let world = World::of(of(model.clone()).build()).await;
    let input = json!([
        {"role": "user", "content": "Two and two?"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Three."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Really?"}]},
    ]);
    let made = world.client.post(RESPONSES, &json!({"model": "helper", "input": input})).await;
    assert_eq!((made.status, &*text(&made.body)), (200, "Four."), "{made:?}");
    let requests = model.requests();
    let asked = serde_json::to_value(requests[0].entries().iter().collect::<Vec<_>>()).unwrap();
    let said = [&asked[0]["text"], &asked[1]["blocks"][0]["text"], &asked[2]["text"]];
    assert_eq!(said, [&json!("Two and two?"), &json!("Three."), &json!("Really?")], "{asked}");
    let ends_otherwise = json!({"model": "helper", "input": [input[0], input[1]]});
    assert_eq!(world.client.post(RESPONSES, &ends_otherwise).await.status, 400);
    world.end().await;
}

/// S13.15, S13.4: fifty creates with one key are one response, at the same time and after a restart.
#[tokio::test]
async fn fifty_creates_with_one_key_are_one_response() {
    let model = ScriptedModel::new(Script::of([Reply::text("Once."), Reply::text("Next.")]));
    let world = World::of(of(model.clone()).build()).await;
    let key = [("idempotency-key", "k1")];
    let body = json!({"model": "helper", "input": "go"});
    let all =
        join_all((0..50).map(async |_| world.client.send("POST", RESPONSES, &key, Some(&body)).await)).await;
    assert!(all.iter().all(|reply| reply.status == 200 && reply.body["id"] == all[0].body["id"]), "{all:?}");
    assert!(all.iter().all(|reply| text(&reply.body) == "Once."), "{all:?}");
    let next = json!({"model": "helper", "input": "more", "previous_response_id": all[0].body["id"]});
    let key = [("idempotency-key", "k2")];
    let two =
        join_all((0..20).map(async |_| world.client.send("POST", RESPONSES, &key, Some(&next)).await)).await;
    assert!(two.iter().all(|reply| reply.status == 200 && text(&reply.body) == "Next."), "{two:?}");
    assert_eq!(model.requests().len(), 2);
    let other = json!({"model": "helper", "input": "other"});
    let refused = world.client.send("POST", RESPONSES, &[("idempotency-key", "k1")], Some(&other)).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("other_content")));
    world.end().await;
}

/// S13.15: what the server does not do is refused by its name, and what asks for nothing is not.
#[tokio::test]
async fn what_is_not_supported_is_refused_by_its_name() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    for (more, status, code, param) in [
        (json!({"tools": [{"type": "function", "name": "f"}]}), 400, "unsupported_parameter", "tools"),
        (json!({"instructions": "Be brief."}), 400, "unsupported_parameter", "instructions"),
        (json!({"temperature": 0.2}), 400, "unsupported_parameter", "temperature"),
        (json!({"metadata": {"a": "b"}}), 400, "unsupported_parameter", "metadata"),
        (
            json!({"input": [{"role": "system", "content": "x"}]}),
            400,
            "unsupported_parameter",
            "input[0].role",
        ),
        (json!({"input": [{"type": "reasoning"}]}), 400, "unsupported_parameter", "input[0].type"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
            400,
            "unsupported_parameter",
            "input[0].content[0].type",
        ),
        (json!({"input": []}), 400, "bad_request", "input"),
        (json!({"background": true, "store": false}), 400, "bad_request", "background"),
        (json!({"conversation": "c", "previous_response_id": "r"}), 400, "bad_request", "conversation"),
        (json!({"model": "nothing"}), 404, "no_such_agent", "model"),
        (json!({"previous_response_id": "resp_x_1"}), 404, "no_such_response", "previous_response_id"),
    ] {
        let mut body = json!({"model": "helper", "input": "go"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = world.client.post(RESPONSES, &body).await;
        let error = &refused.body["error"];
        assert_eq!(
            (refused.status, &error["code"], &error["param"]),
            (status, &json!(code), &json!(param)),
            "{more}"
        );
        assert!(error["message"].is_string() && error["type"].is_string(), "{refused:?}");
    }
    let unkept = json!({"model": "helper", "input": "go", "store": false});
    let keyed = world.client.send("POST", RESPONSES, &[("idempotency-key", "k")], Some(&unkept)).await;
    assert_eq!((keyed.status, &keyed.body["error"]["param"]), (400, &json!("Idempotency-Key")), "{keyed:?}");
    let idle = json!({"model": "helper", "input": "go", "background": true, "tools": [], "temperature": null,
                      "user": "u", "text": {"format": {"type": "text"}}, "truncation": "disabled"});
    let made = world.client.post(RESPONSES, &idle).await;
    assert_eq!(made.status, 200, "{made:?}");
    drop(gate.request().await);
    let busy = json!({"model": "helper", "input": "more", "previous_response_id": made.body["id"]});
    let refused = world.client.post(RESPONSES, &busy).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("turn_active")), "{refused:?}");
    let models = world.client.get("/openai/v1/models").await.body;
    assert_eq!((&models["data"][0]["id"], &models["object"]), (&json!("helper"), &json!("list")));
    world.end().await;
}

/// S13.3: what is not kept is stopped when its client is gone, with the reason `disconnect`; else it is answered as what is kept.
#[tokio::test]
async fn what_is_not_kept_stops_with_its_client() {
    let (model, agent) =
        served([Reply::text("Lisbon."), Reply::text("Lisbon.").paced(2, Duration::ZERO)]).await;
    let world = World::of(agent).await;
    let mut body = json!({"model": "helper", "input": "go", "store": false});
    let made = world.client.post(RESPONSES, &body).await;
    assert_eq!(
        (made.status, &*text(&made.body), &made.body["store"]),
        (200, "Lisbon.", &json!(false)),
        "{made:?}"
    );
    let path = format!("{RESPONSES}/{}", made.body["id"].as_str().unwrap());
    assert_eq!(world.client.get(&path).await.status, 404);
    body["stream"] = json!(true);
    let streamed = world.client.stream("POST", RESPONSES, &[], Some(&body)).await.rest().await;
    assert_eq!(streamed.last().unwrap().event, "response.completed", "{streamed:?}");
    assert!(streamed.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{streamed:?}");
    for streams in [true, false] {
        body["stream"] = json!(streams);
        let mut gate = model.gate();
        let client = world.client.sent("POST", RESPONSES, &[], Some(&body)).await;
        let exchange = gate.request().await;
        gate.headers();
        drop(client);
        exchange.peer_closed().in_time("the end of the model's stream").await;
    }
    assert_eq!(world.client.get("/v1/sessions").await.body["data"], json!([]));
    world.end().await;
}
