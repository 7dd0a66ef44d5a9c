//! Lists of tasks: the caller's, newest first, page by page.

use std::sync::Arc;

use safepoint::{
    ids::SessionId,
    raw::store::NewSession,
    store::{MemoryStore, Store as _},
};
use safepoint_server::{AccessScope, Principal, Surface};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
};
use serde_json::{Value, json};

use super::{id, message, refused, world};
use crate::world::{World, says};

/// S13.10, S13.19: a list has the caller's tasks alone, the one that changed last first, and each once over its pages.
#[tokio::test]
async fn a_list_has_each_task_once() {
    let world = world(says((1..=5).map(|number| Reply::text(format!("Answer {number}."))))).await;
    let mut made = Vec::new();
    for number in 1..=5 {
        made.push(id(&world.client.completed(message(&format!("m-{number}"), "go")).await));
    }
    made.reverse();
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = world.client.result("ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
        assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(2), &json!(5)), "{page}");
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.iter().all(|task| task.get("artifacts").is_none()), "{page}");
        seen.extend(tasks.iter().map(id));
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, made);
    let other = world.client_of(Principal::new("other", AccessScope::ALL));
    assert_eq!(other.result("ListTasks", json!({})).await["tasks"], json!([]));
    world.end().await;
}

/// S13.19: a list is of one context, of one state, and of what has changed since.
#[tokio::test]
async fn a_list_is_of_what_is_asked_for() {
    let world = world(says([Reply::text("One."), refused()])).await;
    let done = world.client.completed(message("m-1", "go")).await;
    let failed = world.client.completed(message("m-2", "go")).await;
    let ids = async |params: Value| {
        let page = world.client.result("ListTasks", params).await;
        page["tasks"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(json!({"contextId": done["contextId"]})).await, [id(&done)]);
    assert_eq!(ids(json!({"contextId": "nothing"})).await, Vec::<String>::new());
    assert_eq!(ids(json!({"status": "TASK_STATE_FAILED"})).await, [id(&failed)]);
    assert_eq!(ids(json!({"statusTimestampAfter": "2100-01-01T00:00:00Z"})).await, Vec::<String>::new());
    let with = world.client.result("ListTasks", json!({"includeArtifacts": true, "historyLength": 0})).await;
    for task in with["tasks"].as_array().unwrap() {
        assert!(task["artifacts"].is_array() && task.get("history").is_none(), "{task}");
    }
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"status": "DONE"}),
        json!({"pageToken": "x"}),
        json!({"historyLength": -1}),
        json!({"statusTimestampAfter": "soon"}),
    ] {
        assert_eq!(world.client.refusal("ListTasks", wrong.clone()).await.0, -32602, "{wrong}");
    }
    world.end().await;
}

/// S13.19: a page has the caller's tasks however many newer sessions others have, and reads each session once.
#[tokio::test]
async fn a_page_is_of_the_callers_sessions_alone() {
    const TASKS: usize = 12;
    const OTHERS: usize = 501;
    let store = FaultStore::unarmed(Arc::new(MemoryStore::default()), OperationFault::Refused);
    let store = Arc::new(store);
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let agent = says((0..TASKS).map(|_| Reply::text("Done."))).build();
    let world = World::offered(agent, Arc::clone(&store) as _, folder, &[Surface::A2a]).await;
    for number in 0..TASKS {
        let mut message = message(&format!("m-{number}"), "go");
        message["contextId"] = "one".into();
        world.client.completed(message).await;
    }
    for _ in 0..OTHERS {
        drop(store.create(NewSession::of(SessionId::fresh())).await.unwrap());
    }
    for params in [json!({}), json!({"contextId": "one"})] {
        let before = store.asked();
        let page = world.client.result("ListTasks", params).await;
        assert_eq!((&page["totalSize"], page["tasks"].as_array().unwrap().len()), (&json!(TASKS), TASKS));
        let asked = store.asked() - before;
        assert!(asked < TASKS, "{asked} questions to the store for {TASKS} tasks of one session");
    }
    world.end().await;
}

/// S13.37, S13.19: one request looks at a bounded number of sessions; what it has not looked at is on the pages behind its own, which
/// may be empty, and no task is on two of them.
#[tokio::test]
async fn a_page_looks_at_a_bounded_number_of_sessions() {
    const OTHERS: usize = 20_001;
    /// What one request may ask of the store: ten pieces of sessions, and what there is of the tasks.
    const ASKED: usize = 40;
    let store = FaultStore::unarmed(Arc::new(MemoryStore::default()), OperationFault::Refused);
    let store = Arc::new(store);
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let agent = says((0..4).map(|_| Reply::text("Done."))).build();
    let world = World::offered(agent, Arc::clone(&store) as _, folder, &[Surface::A2a]).await;
    let mut made = Vec::new();
    for number in 0..4 {
        if number == 2 {
            for _ in 0..OTHERS {
                drop(store.create(NewSession::of(SessionId::fresh())).await.unwrap());
            }
        }
        made.push(id(&world.client.completed(message(&format!("m-{number}"), "go")).await));
    }
    made.reverse();
    let (mut pages, mut token) = (Vec::new(), String::new());
    loop {
        let before = store.asked();
        let page = world.client.result("ListTasks", json!({"pageSize": 1, "pageToken": token})).await;
        let asked = store.asked() - before;
        assert!(asked < ASKED, "{asked} questions to the store for a page");
        pages.push(page["tasks"].as_array().unwrap().iter().map(id).collect::<Vec<_>>());
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(pages.concat(), made, "{pages:?}");
    world.end().await;
}
