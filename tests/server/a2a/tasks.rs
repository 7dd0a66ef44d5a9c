//! A task from its message to its end, and messages to it.

use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::json;

use super::{id, message, ours, over, refused, state, to_task, world};
use crate::world::{says, served};

/// S13.19: a message begins a task, which is one item of the session that its context is.
#[tokio::test]
async fn a_task_is_one_item_of_a_session() {
    let world = world(says([Reply::text("Lisbon."), Reply::text("Oslo.")])).await;
    let task = world.client.completed(message("m-1", "What is the capital of Portugal?")).await;
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(task["artifacts"], json!([{"artifactId": "answer", "parts": [{"text": "Lisbon."}]}]));
    let session = task["contextId"].as_str().unwrap();
    let at = ours(&task);
    assert_eq!((at["session"].as_str(), &at["item"]), (Some(session), &json!("item-1")), "{task}");
    let item = world.client.get(&format!("/v1/sessions/{session}/items/item-1")).await.body;
    assert_eq!((&item["outcome"], &item["answer"]), (&json!("completed"), &json!("Lisbon.")));
    let turn = world.client.get(at["receipt"].as_str().unwrap()).await.body;
    assert_eq!(turn["receipt"]["ending"], "done", "{turn}");
    assert_eq!(task["history"][0]["parts"][0]["text"], "What is the capital of Portugal?", "{task}");
    assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'), "{task}");

    let mut second = message("m-2", "And of Norway?");
    second["contextId"] = session.into();
    let second = world.client.completed(second).await;
    assert_eq!((&second["contextId"], &ours(&second)["item"]), (&task["contextId"], &json!("item-2")));
    assert_ne!(second["id"], task["id"]);
    assert_eq!(world.client.task(&id(&second)).await["artifacts"], second["artifacts"]);
    world.end().await;
}

/// S13.4, S13.19: the same message is the same task, also where it names no context; another one with its id is refused.
#[tokio::test]
async fn one_message_is_one_task() {
    let (model, agent) = served([Reply::text("One.")]).await;
    let world = over(agent).await;
    let first = world.client.completed(message("m-1", "first")).await;
    let again = world.client.completed(message("m-1", "first")).await;
    assert_eq!(first, again);
    assert_eq!(model.requests().len(), 1, "one run");
    let params = json!({"message": message("m-1", "second")});
    let refused = world.client.rpc("SendMessage", params).await.body;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["data"][0]["metadata"]["code"], "other_content", "{refused}");
    world.end().await;
}

/// S13.19: a context that a client names is kept under that name, and is that client's.
#[tokio::test]
async fn a_context_of_the_client_keeps_its_name() {
    let world = world(says([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")])).await;
    let in_trip = |id: &str| {
        let mut message = message(id, "go");
        message["contextId"] = "trip".into();
        message
    };
    let one = world.client.completed(in_trip("m-1")).await;
    let two = world.client.completed(in_trip("m-2")).await;
    assert_eq!((&one["contextId"], &two["contextId"]), (&json!("trip"), &json!("trip")));
    assert_eq!(ours(&one)["session"], ours(&two)["session"]);
    let other = world.client_of(Principal::new("other", AccessScope::ALL));
    let theirs = other.completed(in_trip("m-1")).await;
    assert_eq!(theirs["contextId"], "trip");
    assert_ne!(ours(&theirs)["session"], ours(&one)["session"], "a name leads to no one else's session");
    world.end().await;
}

/// S13.10, S13.19: what is not the caller's is not found, and neither is what is no task.
#[tokio::test]
async fn a_task_of_another_token_is_not_found() {
    let world = world(says([Reply::text("Lisbon.")])).await;
    let task = id(&world.client.completed(message("m-1", "Portugal?")).await);
    let other = world.client_of(Principal::new("other", AccessScope::ALL));
    let not_found = (-32001, "TASK_NOT_FOUND".to_owned());
    let session = task.rsplit_once('.').unwrap().0.to_owned();
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(other.refusal(method, json!({"id": task})).await, not_found, "{method}");
        for id in ["nothing", "", "ses_1.1", &format!("{session}.9"), &format!("{session}.x")] {
            let refused = world.client.refusal(method, json!({"id": id})).await;
            let expected = if id.is_empty() { -32602 } else { -32001 };
            assert_eq!(refused.0, expected, "{method} {id}");
        }
    }
    let sent = json!({"message": to_task(&task, "m-2", "more")});
    assert_eq!(other.refusal("SendMessage", sent).await, not_found);
    world.end().await;
}

/// S13.19: a message to a task that runs steers its turn, and one to a task that is over begins nothing.
#[tokio::test]
async fn a_message_to_a_task_that_runs_steers_it() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let task = id(&world.client.begun("m-1", "Write a report.").await);
    drop(gate.request().await);
    let params = json!({"message": to_task(&task, "m-2", "Only the summary."), "configuration": {"returnImmediately": true}});
    let steered = world.client.result("SendMessage", params).await;
    assert_eq!(
        (steered["task"]["id"].as_str(), state(&steered["task"])),
        (Some(task.as_str()), "TASK_STATE_WORKING")
    );
    let mut next = model.gate();
    gate.script(&Reply::text("A draft."));
    gate.headers();
    gate.finish();
    let second = next.request().in_time("the round of the steer").await;
    assert!(second.body.to_string().contains("Only the summary."), "{}", second.body);
    next.script(&Reply::text("The summary."));
    next.headers();
    next.finish();
    let session = task.rsplit_once('.').unwrap().0;
    assert_eq!(world.rest(session, 1).await["outcome"], "completed");
    let over = world.client.task(&task).await;
    assert_eq!(
        (state(&over), &over["artifacts"][0]["parts"][0]["text"]),
        ("TASK_STATE_COMPLETED", &json!("The summary."))
    );
    let history = over["history"].to_string();
    assert!(history.contains("Write a report.") && history.contains("Only the summary."), "{over}");
    let late = json!({"message": to_task(&task, "m-3", "Shorter.")});
    assert_eq!(world.client.refusal("SendMessage", late).await, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    let tasks = world.client.result("ListTasks", json!({})).await;
    assert_eq!(tasks["totalSize"], 1, "a steer is no task: {tasks}");
    world.end().await;
}

/// S13.19: a task and a context that do not belong together are refused, and so is a message without what it needs.
#[tokio::test]
async fn a_message_that_is_none_is_refused() {
    let world = world(says([Reply::text("One."), Reply::text("Two.")])).await;
    let task = id(&world.client.completed(message("m-1", "go")).await);
    let mut mismatched = to_task(&task, "m-2", "more");
    mismatched["contextId"] = "other".into();
    let no_id = json!({"role": "ROLE_USER", "parts": [{"text": "x"}]});
    let no_parts = json!({"messageId": "m", "role": "ROLE_USER", "parts": []});
    let agents = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]});
    let blank = message("m-3", "  ");
    for message in [mismatched, no_id, no_parts, agents, blank, json!(null)] {
        let refused = world.client.refusal("SendMessage", json!({"message": message})).await;
        assert_eq!(refused.0, -32602, "{message}");
    }
    let file = json!({"messageId": "m-4", "role": "ROLE_USER", "parts": [{"raw": "AAAA", "mediaType": "image/png"}]});
    let refused = world.client.refusal("SendMessage", json!({"message": file})).await;
    assert_eq!(refused, (-32005, "CONTENT_TYPE_NOT_SUPPORTED".to_owned()));
    for (modes, is_taken) in [(json!(["image/png"]), false), (json!(["image/png", "text/plain"]), true)] {
        let id = format!("m-5-{is_taken}");
        let params = json!({"message": message(&id, "go"), "configuration": {"acceptedOutputModes": modes}});
        let code = if is_taken { 0 } else { -32005 };
        assert_eq!(world.client.refusal("SendMessage", params).await.0, code, "the agent answers with text");
    }
    world.end().await;
}

/// S13.19: a task whose turn fails says why.
#[tokio::test]
async fn a_task_that_failed_says_why() {
    let (_model, agent) = served([refused()]).await;
    let world = over(agent).await;
    let task = world.client.completed(message("m-1", "go")).await;
    assert_eq!((state(&task), &ours(&task)["outcome"]), ("TASK_STATE_FAILED", &json!("failed")), "{task}");
    assert!(
        task["status"]["message"]["parts"][0]["text"].as_str().unwrap().contains("no such model"),
        "{task}"
    );
    world.end().await;
}
