//! Responses that are cancelled, and that fail.

use std::sync::Arc;

use safepoint::{
    approval::ApprovalMode,
    store::{MemoryStore, Store},
};
use safepoint_server::{Host, Surface};
use safepoint_testkit::{script::ReplyFault, tools::GateTools, wait};

use super::{super::resumed::resumed, *};

async fn cancelled(client: &Client, id: &Value) -> super::super::client::Reply {
    client.post(&format!("{RESPONSES}/{}/cancel", id.as_str().unwrap()), &json!({})).await
}

/// S13.6, S13.15: a cancel reaches the response while its model streams; a second one gets the same; the id never becomes completed,
/// also after a restart, and its stream ends as an incomplete one.
#[tokio::test]
async fn a_cancelled_response_stays_cancelled() {
    let (model, agent) = served([Reply::text("Next.")]).await;
    let mut gate = model.gate();
    let world = World::of(agent.clone()).await;
    let made = begun(&world.client, "go").await;
    let exchange = gate.request().await;
    gate.headers();
    let (first, second) = (cancelled(&world.client, &made["id"]), cancelled(&world.client, &made["id"]));
    let (first, second) = tokio::join!(first, second);
    exchange.peer_closed().in_time("the end of the model's stream").await;
    let third = cancelled(&world.client, &made["id"]).await;
    for reply in [&first, &second, &third] {
        assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
        assert_eq!(reply.body["metadata"]["safepoint_outcome"], "interrupted", "{reply:?}");
    }
    let all = events(&world.client, &made["id"], None).await;
    let last = all.last().unwrap();
    assert_eq!(last.event, "response.incomplete");
    assert_eq!(last.data["response"]["status"], "cancelled");
    let next = json!({"model": "helper", "input": "next", "previous_response_id": made["id"]});
    let next = world.client.post(RESPONSES, &next).await;
    assert_eq!((next.status, &*text(&next.body)), (200, "Next."), "{next:?}");
    let late = cancelled(&world.client, &next.body["id"]).await;
    assert_eq!((late.status, &late.body["error"]["code"]), (400, &json!("too_late")), "{late:?}");
    let (store, folder) = world.end().await;
    let world = World::over(agent, store, folder).await;
    assert_eq!(retrieved(&world.client, &made["id"]).await["status"], "cancelled");
    assert_eq!(cancelled(&world.client, &made["id"]).await.body["status"], "cancelled");
    world.end().await;
}

/// S13.15: a cancel does not wait for the answer.
#[tokio::test]
async fn a_cancel_does_not_wait_for_the_answer() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let body = json!({"model": "helper", "input": "go", "stream": true});
    let mut stream = world.client.stream("POST", RESPONSES, &[], Some(&body)).await;
    let id = stream.until("response.created").await.data["response"]["id"].clone();
    let request = gate.request().in_time("the request").await;
    gate.headers();
    gate.script(&Reply::pieces(["The last word ", "never comes."]));
    while !gate.send_next_until(b"word") {}
    let read = number(&stream.until("response.output_text.delta").await);
    let reply = cancelled(&world.client, &id).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
    let behind = events(&world.client, &id, Some(read)).await.pop().unwrap();
    assert_eq!(
        (&*behind.event, number(&behind)),
        ("response.incomplete", number(&stream.rest().await.pop().unwrap()))
    );
    world.end().await;
}

/// S13.6: a cancel right behind its create is a cancel.
#[tokio::test]
async fn a_cancel_right_behind_its_create_is_one() {
    let (model, agent) = served([]).await;
    let _gate = model.gate();
    let world = World::of(agent).await;
    let made = begun(&world.client, "go").await;
    let reply = cancelled(&world.client, &made["id"]).await;
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
    let last = events(&world.client, &made["id"], None).await.pop().unwrap();
    assert_eq!(
        (&*last.event, &last.data["response"]["status"]),
        ("response.incomplete", &json!("cancelled"))
    );
    world.end().await;
}

/// S13.5: no response says that it is cancelled while a tool that ignores its stop runs.
#[tokio::test]
async fn no_response_says_cancelled_before_its_turn_has_settled() {
    let tools = GateTools::new();
    let agent = says([Reply::call("deaf", json!({}))]).approvals(ApprovalMode::Auto).tool(tools.deaf("deaf"));
    let world = World::of(agent.build()).await;
    let body = json!({"model": "helper", "input": "go", "stream": true});
    let mut stream = world.client.stream("POST", RESPONSES, &[], Some(&body)).await;
    let id = stream.until("response.created").await.data["response"]["id"].clone();
    stream.until("response.mcp_call.in_progress").await;
    let asks = {
        let (client, id) = (world.client.clone(), id.clone());
        tokio::spawn(async move { cancelled(&client, &id).await })
    };
    let seen = async {
        loop {
            let seen = retrieved(&world.client, &id).await;
            assert_eq!(seen["status"], "in_progress", "{seen}");
            if seen["metadata"]["safepoint_stop"] == "requested" {
                return;
            }
        }
    };
    seen.in_time("the stop in the response").await;
    tools.gate().open_for_all();
    let reply = asks.in_time("the answer to the cancel").await.unwrap();
    assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
    assert_eq!(stream.rest().await.pop().unwrap().event, "response.incomplete");
    world.end().await;
}

/// S13.15: a response whose turn failed says why.
#[tokio::test]
async fn a_response_that_failed_says_why() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let made = begun(&world.client, "go").await;
    drop(gate.request().await);
    gate.status(400);
    let found = over(&world, &made).await;
    assert_eq!(
        (&found["status"], &found["error"]["code"]),
        (&json!("failed"), &json!("server_error")),
        "{found}"
    );
    assert!(found["error"]["message"].as_str().unwrap().contains(": "), "{found}");
    let last = events(&world.client, &made["id"], None).await.pop().unwrap();
    assert_eq!((&*last.event, &last.data["response"]["error"]), ("response.failed", &found["error"]));
    let late = cancelled(&world.client, &made["id"]).await;
    assert_eq!((late.status, &late.body["error"]["code"]), (400, &json!("too_late")), "{late:?}");
    world.end().await;
}

/// S13.12: a request that waits for a response which waits for its place ends with the server, and says where the response is.
#[tokio::test]
async fn a_wait_for_a_place_ends_with_the_server() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let builder = Host::builder(Arc::clone(&store)).agent("helper", agent).running(1);
    let host = builder.surfaces("helper", [Surface::Responses]).start().await.unwrap();
    let world = World::of_host(host, store).await;
    begun(&world.client, "first").await;
    gate.request().in_time("the first response").await;
    let client = world.client.clone();
    let body = json!({"model": "helper", "input": "second"});
    let waits = tokio::spawn(async move { client.post(RESPONSES, &body).await });
    wait::asked("the second session", async || {
        world.client.get("/v1/sessions").await.body["data"].as_array().is_some_and(|all| all.len() == 2)
    })
    .await;
    world.end().await;
    let said = waits.in_time("the answer").await.unwrap();
    assert_eq!((said.status, &said.body["status"]), (200, &json!("queued")), "{said:?}");
}

/// S13.34, S13.31: a response whose turn failed and runs again is as that turn is, also at the session's next owner. A cancel is one
/// stop of that turn; then the response stays cancelled, whatever becomes of the turn.
#[tokio::test]
async fn a_failed_response_whose_turn_runs_again_is_cancelled() {
    for is_restarted in [false, true] {
        let refusing = ReplyFault::Status { status: 400, body: String::new(), headers: Vec::new() };
        let (model, agent) = served([Reply::default().fault(refusing)]).await;
        let mut world = World::of(agent.clone()).await;
        let made = begun(&world.client, "go").await;
        let session = made["metadata"]["safepoint_session"].as_str().unwrap().to_owned();
        assert_eq!(over(&world, &made).await["status"], "failed");
        let (mut one, mut two) = (model.gate(), model.gate());
        if is_restarted {
            let (store, folder) = world.end().await;
            world = World::over(agent, store, folder).await;
        }
        resumed(&world, &session).await;
        let request = one.request().in_time("the request of the resumed turn").await;
        let again = retrieved(&world.client, &made["id"]).await;
        assert_eq!((&again["status"], &again["error"]), (&json!("in_progress"), &Value::Null), "{again}");
        let path = format!("{RESPONSES}/{}?stream=true", made["id"].as_str().unwrap());
        let mut stream = world.client.stream("GET", &path, &[], None).await;
        stream.until("response.in_progress").await;
        let reply = cancelled(&world.client, &made["id"]).await;
        request.peer_closed().in_time("the end of the model's stream").await;
        assert_eq!((reply.status, &reply.body["status"]), (200, &json!("cancelled")), "{reply:?}");
        let read = stream.rest().await;
        assert_eq!(read.last().unwrap().event, "response.incomplete", "{read:?}");
        assert!(read.iter().all(|sent| sent.event != "response.failed"), "{read:?}");
        let stop = async |number: u64| {
            world.client.get(&format!("/v1/sessions/{session}/stops/{number}")).await.status
        };
        assert_eq!((stop(1).await, stop(2).await), (200, 404));
        resumed(&world, &session).await;
        two.request().in_time("the request of the turn that runs once more").await;
        two.headers();
        two.script(&Reply::text("Late."));
        two.finish();
        assert_eq!(world.rest(&session, 1).await["outcome"], "completed");
        assert_eq!(retrieved(&world.client, &made["id"]).await["status"], "cancelled");
        world.end().await;
    }
}
