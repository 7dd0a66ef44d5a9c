//! A cancel: one stop, and canceled is said once it has settled.

use safepoint::{approval::ApprovalMode, tool};
use safepoint_server::{AccessScope, Principal, Surface};
use safepoint_testkit::{script::Reply, tools::GateTools, wait::InTime as _};
use serde_json::json;

use super::{id, message, ours, over, state, world};
use crate::{
    resumed::resumed,
    world::{World, says, served},
};

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay() -> String {
    "paid".to_owned()
}

/// S13.5, S13.19: the task of a tool that ignores its stop works until that has settled, on every way to read it.
#[tokio::test]
async fn no_task_is_canceled_before_its_work_has_settled() {
    let tools = GateTools::new();
    let agent = says([Reply::call("deaf", json!({}))]).approvals(ApprovalMode::Auto).tool(tools.deaf("deaf"));
    let world = world(agent).await;
    let mut sent =
        world.client.streamed("SendStreamingMessage", json!({"message": message("m-1", "Go.")})).await;
    let task = id(&sent.piece().await.unwrap()["task"]);
    tools.gate().came(1).in_time("the call").await;
    let client = world.client.clone();
    let (named, mut read) =
        (task.clone(), world.client.streamed("SubscribeToTask", json!({"id": task})).await);
    let canceling = tokio::spawn(async move { client.result("CancelTask", json!({"id": named})).await });
    let first = read.piece().await.unwrap();
    assert_eq!(state(&first["task"]), "TASK_STATE_WORKING", "{first}");
    let requested = read.until_state("TASK_STATE_WORKING").await;
    assert!(ours(&requested)["stop"].is_string(), "it says that a stop is under way: {requested}");
    let seen = world.client.task(&task).await;
    assert_eq!((state(&seen), ours(&seen)["stop"].is_string()), ("TASK_STATE_WORKING", true), "{seen}");
    let listed = world.client.result("ListTasks", json!({})).await;
    assert_eq!(state(&listed["tasks"][0]), "TASK_STATE_WORKING", "{listed}");
    assert!(!canceling.is_finished(), "the cancel waits for the work");
    tools.gate().open_for_all();
    let canceled = canceling.in_time("the cancel").await.unwrap();
    assert_eq!(
        (state(&canceled), &ours(&canceled)["quiet"]),
        ("TASK_STATE_CANCELED", &json!(true)),
        "{canceled}"
    );
    assert_eq!(ours(&canceled)["survivors"], json!([]));
    let receipt = world.client.get(ours(&canceled)["receipt"].as_str().unwrap()).await.body;
    assert_eq!(receipt["receipt"]["ending"], "stopped", "{receipt}");
    for stream in [&mut sent, &mut read] {
        let last = stream.pieces().in_time("the end of a stream").await.pop().unwrap();
        assert_eq!(state(&last["statusUpdate"]), "TASK_STATE_CANCELED", "{last}");
        assert_eq!(ours(&last["statusUpdate"])["quiet"], true, "{last}");
    }
    world.end().await;
}

/// S13.6, S13.19: the socket of the model closes, and a second cancel gets the same task (a2aproject/a2a-js#539).
#[tokio::test]
async fn a_second_cancel_is_the_same_cancel() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let task = id(&world.client.begun("m-1", "Go.").await);
    let request = gate.request().await;
    let first = world.client.result("CancelTask", json!({"id": task})).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(state(&first), "TASK_STATE_CANCELED", "{first}");
    let again = world.client.result("CancelTask", json!({"id": task})).await;
    assert_eq!(first, again);
    assert_eq!(world.client.task(&task).await, first);
    let receipt = world.client.get(ours(&first)["receipt"].as_str().unwrap()).await.body;
    assert!(receipt["receipt"]["stop"]["reason"].to_string().contains("A2A"), "{receipt}");
    world.end().await;
}

/// S13.19
#[tokio::test]
async fn a_task_that_is_over_is_not_canceled() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    let task = id(&world.client.completed(message("m-1", "Portugal?")).await);
    let refused = world.client.refusal("CancelTask", json!({"id": task})).await;
    assert_eq!(refused, (-32002, "TASK_NOT_CANCELABLE".to_owned()));
    world.end().await;
}

/// S13.6: a cancel right behind its message takes effect, and the task behind a canceled one runs.
#[tokio::test]
async fn a_cancel_right_behind_its_message_takes_effect() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let first = world.client.begun("m-1", "First.").await;
    let request = gate.request().await;
    let in_context = |id: &str, text: &str| {
        let mut message = message(id, text);
        message["contextId"] = first["contextId"].clone();
        json!({"message": message, "configuration": {"returnImmediately": true}})
    };
    let waits = world.client.result("SendMessage", in_context("m-2", "Second.")).await;
    assert_eq!(state(&waits["task"]), "TASK_STATE_SUBMITTED", "{waits}");
    let last = world.client.result("SendMessage", in_context("m-3", "Third.")).await;
    let canceled = world.client.result("CancelTask", json!({"id": waits["task"]["id"]})).await;
    assert_eq!(
        (state(&canceled), &ours(&canceled)["quiet"]),
        ("TASK_STATE_CANCELED", &json!(true)),
        "{canceled}"
    );
    assert!(ours(&canceled).get("receipt").is_none(), "no turn had it: {canceled}");
    let mut next = model.gate();
    let stopped = world.client.result("CancelTask", json!({"id": first["id"]})).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(state(&stopped), "TASK_STATE_CANCELED", "{stopped}");
    let request = next.request().in_time("the task behind it").await;
    assert!(request.body.to_string().contains("Third.") && !request.body.to_string().contains("Second."));
    next.script(&Reply::text("Done."));
    next.headers();
    next.finish();
    let session = first["contextId"].as_str().unwrap();
    assert_eq!(world.rest(session, 3).await["outcome"], "completed");
    assert_eq!(state(&world.client.task(&id(&last["task"])).await), "TASK_STATE_COMPLETED");
    world.end().await;
}

/// S13.6, S13.19: a task that waits for a decision is canceled with its question.
#[tokio::test]
async fn a_task_with_a_question_is_canceled() {
    let world = world(says([Reply::call("pay", json!({}))]).tool(pay)).await;
    let task = world.client.completed(message("m-1", "Go.")).await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let canceled = world.client.result("CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED", "{canceled}");
    let late = world
        .client
        .refusal("SendMessage", json!({"message": super::to_task(&id(&task), "m-2", "approve")}))
        .await;
    assert_eq!(late, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    world.end().await;
}

/// S13.19: the same after a restart, where the stop goes through the store: it is canceled once the stop has taken effect.
#[tokio::test]
async fn a_task_with_a_question_is_canceled_after_a_restart() {
    let agent = says([Reply::call("pay", json!({}))]).tool(pay).build();
    let world = over(agent.clone()).await;
    let task = world.client.completed(message("m-1", "Go.")).await;
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let (store, folder) = world.end().await;
    let world = World::offered(agent, store, folder, &[Surface::A2a]).await;
    let canceled = world.client.result("CancelTask", json!({"id": task["id"]})).await;
    assert_eq!(
        (state(&canceled), &ours(&canceled)["quiet"]),
        ("TASK_STATE_CANCELED", &json!(true)),
        "{canceled}"
    );
    assert_eq!(world.client.result("CancelTask", json!({"id": task["id"]})).await, canceled);
    world.end().await;
}

/// S13.11: load refuses no cancel, and a token without the scope none that it may not do.
#[tokio::test]
async fn load_refuses_no_cancel() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let busy = world.client_of(Principal::new("busy", AccessScope::ALL));
    let task = id(&busy.begun("m-1", "Go.").await);
    let request = gate.request().await;
    let reads = world.client_of(Principal::new("reads", [AccessScope::Read]).seeing_all());
    assert_eq!(reads.rpc("CancelTask", json!({"id": task})).await.status, 403);
    let mut refused = None;
    for _ in 0..1_000 {
        let reply = busy.rpc("GetTask", json!({"id": task})).await;
        if reply.status != 200 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("1,000 requests at once are too many");
    assert_eq!(
        (refused.status, &refused.body["error"]["data"][0]["metadata"]["code"]),
        (429, &json!("rate"))
    );
    let canceled = busy.result("CancelTask", json!({"id": task})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED", "{canceled}");
    request.peer_closed().in_time("the end of the model's connection").await;
    world.end().await;
}

/// S13.2, S13.3: a reader that goes away has detached, at its first event too.
#[tokio::test]
async fn a_reader_that_goes_away_stops_nothing() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let mut sent =
        world.client.streamed("SendStreamingMessage", json!({"message": message("m-1", "Go.")})).await;
    let task = id(&sent.piece().await.unwrap()["task"]);
    gate.request().await;
    let mut again = world.client.streamed("SubscribeToTask", json!({"id": task})).await;
    again.piece().await.unwrap();
    world.read_by(2).await;
    drop((sent, again));
    world.read_by(0).await;
    gate.script(&Reply::text("Done."));
    gate.headers();
    gate.finish();
    let session = task.rsplit_once('.').unwrap().0;
    assert_eq!(world.rest(session, 1).await["outcome"], "completed");
    world.end().await;
}

/// S13.31: a task that was canceled stays so while its turn runs again, says nothing of it that is not so any more, and a cancel stops
/// that turn.
#[tokio::test]
async fn a_cancel_stops_the_turn_of_a_canceled_task_that_runs_again() {
    let (model, agent) = served([Reply::text("Done.")]).await;
    let (mut one, mut two) = (model.gate(), model.gate());
    let world = over(agent).await;
    let task = id(&world.client.begun("m-1", "Go.").await);
    one.request().in_time("the first request").await;
    let first = world.client.result("CancelTask", json!({"id": task})).await;
    let session = ours(&first)["session"].as_str().unwrap();
    resumed(&world, session).await;
    let request = two.request().in_time("the second request").await;
    let again = world.client.task(&task).await;
    assert_eq!((state(&again), &ours(&again)["quiet"]), ("TASK_STATE_CANCELED", &json!(null)), "{again}");
    let canceled = world.client.result("CancelTask", json!({"id": task})).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(
        (state(&canceled), &ours(&canceled)["quiet"]),
        ("TASK_STATE_CANCELED", &json!(true)),
        "{canceled}"
    );
    resumed(&world, session).await;
    assert_eq!(world.rest(session, 1).await["outcome"], "completed");
    assert_eq!(state(&world.client.task(&task).await), "TASK_STATE_CANCELED");
    world.end().await;
}
