//! One session over HTTP: made, talked to, stopped and read, as the store has it.

use std::sync::Arc;

use safepoint::{
    StopRequest,
    approval::ApprovalMode,
    ids::SessionId,
    raw::{StoredStop, store::NewSession, store_stop},
    store::{MemoryStore, Store as _},
};
use safepoint_server::{AccessScope, Principal};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    tools::GateTools,
    wait::InTime as _,
};
use serde_json::json;

use super::world::{World, says, served};

/// S13.1
#[tokio::test]
async fn what_is_said_over_http_is_in_the_store_with_its_answer() {
    let world = World::of(says([Reply::text("Lisbon."), Reply::text("Oslo.")]).build()).await;
    let session = world.session("What is the capital of Portugal?").await;
    let first = world.rest(&session, 1).await;
    assert_eq!((first["outcome"].as_str(), first["answer"].as_str()), (Some("completed"), Some("Lisbon.")));
    let row = world.store.open(&SessionId::from(session.as_str())).await.unwrap();
    assert!(row.head > 0 && row.title.contains("Portugal"), "{row:?}");
    let second =
        world.client.post(&format!("/v1/sessions/{session}/items"), &json!({"text": "And of Norway?"})).await;
    assert_eq!((second.status, second.body["id"].as_str()), (202, Some("item-2")), "{second:?}");
    assert_eq!(world.rest(&session, 2).await["answer"], "Oslo.");
    let shown = world.client.get(&format!("/v1/sessions/{session}")).await.body;
    assert_eq!((shown["state"].as_str(), shown["open"].as_str()), (Some("open"), Some("here")), "{shown}");
    let turn = world.client.get(&format!("/v1/sessions/{session}/turns/turn-2")).await.body;
    assert_eq!(turn["receipt"]["ending"], "done", "{turn}");
    world.end().await;
}

/// S13.1: a stop through the store reaches the session that the server has.
#[tokio::test]
async fn a_stop_through_the_store_reaches_a_session_of_the_server() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("Go.").await;
    let request = gate.request().await;
    let stop = StoredStop::Turn(None, StopRequest::now());
    store_stop(&*world.store, &SessionId::from(session.as_str()), &stop).await.unwrap();
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!(world.rest(&session, 1).await["outcome"], "interrupted");
    world.end().await;
}

/// S13.5: the socket of the model closes, the answer has the receipt, and says nothing of it before the turn has settled.
#[tokio::test]
async fn a_stop_over_http_closes_the_socket_of_the_model() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("Go.").await;
    let request = gate.request().await;
    let path = format!("/v1/sessions/{session}/stop?wait=quiet");
    let stopped = world.client.post(&path, &json!({"mode": "now", "reason": "wrong branch"})).await;
    request.peer_closed().in_time("the end of the model's connection").await;
    assert_eq!((stopped.status, stopped.body["state"].as_str()), (200, Some("quiet")), "{stopped:?}");
    assert_eq!(stopped.body["quiet"], true);
    let receipt = &stopped.body["receipt"];
    assert_eq!(receipt["ending"], "stopped", "{receipt}");
    assert!(receipt["quiet_at"].is_string() && receipt["survivors"] == json!([]), "{receipt}");
    assert!(receipt["stop"]["reason"].to_string().contains("wrong branch"), "{receipt}");
    assert!(receipt["stop"]["reason"].to_string().contains("ci"), "{receipt}");
    let number = stopped.body["number"].as_u64().unwrap();
    let seen = world.client.get(&format!("/v1/sessions/{session}/stops/{number}")).await.body;
    assert_eq!((seen["state"].as_str(), &seen["receipt"]), (Some("quiet"), receipt));
    let again = world.client.post(&path, &json!({"what": {"turn": "turn-1"}})).await;
    assert_eq!(
        (again.status, again.code(), again.body["outcome"].as_str()),
        (409, "too_late", Some("interrupted"))
    );
    let none = world.client.post(&path, &json!({})).await;
    assert_eq!((none.status, none.code()), (409, "no_active_turn"));
    world.end().await;
}

/// S13.5: no answer says that a turn is stopped while a tool that ignores its stop still runs, and each says what is waited for.
#[tokio::test]
async fn no_answer_says_stopped_before_the_turn_has_settled() {
    let tools = GateTools::new();
    let agent = says([Reply::call("deaf", json!({}))]).approvals(ApprovalMode::Auto).tool(tools.deaf("deaf"));
    let world = World::of(agent.build()).await;
    let session = world.session("Go.").await;
    let mut events = world.client.events(&session, "").await;
    events.until("call_started").await;
    let path = format!("/v1/sessions/{session}/stop?wait=settled&timeout_ms=50");
    let asked = world.client.post(&path, &json!({"mode": "now"})).await;
    assert_eq!((asked.status, asked.body["receipt"].is_null()), (202, true), "{asked:?}");
    assert!(["requested", "observed"].contains(&asked.body["state"].as_str().unwrap()), "{asked:?}");
    assert!(asked.body["waits_for"].to_string().contains("deaf"), "{asked:?}");
    let number = asked.body["number"].as_u64().unwrap();
    let seen = world.client.get(&format!("/v1/sessions/{session}/stops/{number}")).await.body;
    assert!(seen["receipt"].is_null() && seen["quiet"].is_null(), "{seen}");
    assert_eq!(
        world.client.get(&format!("/v1/sessions/{session}/turns/turn-1")).await.body["outcome"],
        json!(null)
    );
    tools.gate().open_for_all();
    let path = format!("/v1/sessions/{session}/stop?wait=quiet");
    let over = world.client.post(&path, &json!({"mode": "now"})).await;
    assert!([200, 409].contains(&over.status), "{over:?}");
    assert_eq!(world.rest(&session, 1).await["outcome"], "interrupted");
    world.end().await;
}

/// S13.37: one request looks at a bounded number of sessions; what it has not looked at is on the pages behind its own, which may be
/// short or empty.
#[tokio::test]
async fn a_list_looks_at_a_bounded_number_of_sessions() {
    const OTHERS: usize = 5_001;
    /// What one request may ask of the store: some pieces of sessions, and what is said of those that are seen.
    const ASKED: usize = 40;
    let store = FaultStore::unarmed(Arc::new(MemoryStore::default()), OperationFault::Refused);
    let store = Arc::new(store);
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let world = World::over(says([]).build(), Arc::clone(&store) as _, folder).await;
    let one = world.client_of(Principal::new("one", AccessScope::ALL));
    let make = async || one.post("/v1/sessions", &json!({})).await.body["id"].as_str().unwrap().to_owned();
    let mut made = vec![make().await, make().await];
    for _ in 0..OTHERS {
        drop(store.create(NewSession::of(SessionId::fresh())).await.unwrap());
    }
    made.push(make().await);
    made.reverse();
    for (limit, filter) in [(1, ""), (2, "&state=idle"), (500, "&agent=helper")] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let before = store.asked();
            let list = one.get(&format!("/v1/sessions?limit={limit}{filter}{after}")).await;
            assert_eq!(list.status, 200, "{list:?}");
            let asked = store.asked() - before;
            assert!(asked < ASKED, "{asked} questions to the store for a page of {limit}");
            let ids = list.body["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
            found.extend(ids.map(str::to_owned));
            let Some(next) = list.body["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(found, made, "{limit}{filter}");
    }
    world.end().await;
}

/// S13.37: a list of a state that there is not, or of a size that no page has, is refused with what there is.
#[tokio::test]
async fn a_list_that_cannot_be_is_refused() {
    let world = World::of(says([]).build()).await;
    let session = world.empty().await;
    let timeline = format!("/v1/sessions/{session}/timeline?");
    for (path, what, says) in [
        (
            "/v1/sessions?",
            "state=bogus",
            "`bogus` is no state of a session; the states are running, queued, open, idle",
        ),
        ("/v1/sessions?", "state=Idle", "the states are"),
        ("/v1/sessions?", "limit=0", "0 is not in 1 to 500"),
        ("/v1/sessions?", "limit=501", "501 is not in 1 to 500"),
        (&*timeline, "limit=0", "0 is not in 1 to 500"),
    ] {
        let refused = world.client.get(&format!("{path}{what}")).await;
        assert_eq!((refused.status, refused.code()), (400, "bad_request"), "{what}: {refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains(says), "{what}: {refused:?}");
    }
    for (what, found) in [("state=idle&limit=500", 1), ("state=crashed&limit=1", 0)] {
        let list = world.client.get(&format!("/v1/sessions?{what}")).await;
        assert_eq!(
            (list.status, list.body["data"].as_array().unwrap().len()),
            (200, found),
            "{what}: {list:?}"
        );
    }
    world.end().await;
}
