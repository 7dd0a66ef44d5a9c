//! Where a remote agent may stand: alone, as a tool of a local one, and in a session.

use safepoint::{
    Agent, Session, StopRequest,
    receipt::{CallStatus, RemoteStopState, StopSupport},
    remote::RemoteTool,
    session::{ChatPlanner, ItemOutcome, SessionStop},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aWire, OnCancel, WorkStep},
    invariants::Invariants,
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;

use super::world::{peer, server};

/// S10.1, S9.2, S10.3: beside a local tool, one peer that ends its work and one that only says so: one stop, and each row
/// says what is true of it.
#[tokio::test]
async fn in_a_team_each_row_is_true() {
    let (honest, empty) = (
        server(A2aManners::honest(A2aWire::V1)),
        server(A2aManners::honest(A2aWire::V03).on_cancel(OnCancel::Says)),
    );
    let calls = Reply::call("honest", json!({"task": "one"})).and_call("empty", json!({"task": "two"}));
    let script = Script::of([calls]);
    let team = Agent::builder(ScriptedModel::new(script))
        .tool(RemoteTool::new(peer(&honest).named("honest").grade(StopSupport::Hard)))
        .tool(RemoteTool::new(peer(&empty).named("empty")))
        .build();
    let handle = team.run("do both").detach();
    honest.came(1).await;
    empty.came(1).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let of = |name: &str| outcome.receipt().calls.iter().find(|call| call.name == name).unwrap();
    let told = |name: &str| (of(name).status, of(name).remote.as_ref().unwrap().stop.unwrap());
    assert_eq!(told("honest"), (CallStatus::Stopped, RemoteStopState::Confirmed));
    assert_eq!(told("empty"), (CallStatus::LeftRunning, RemoteStopState::Acknowledged));
    assert_eq!((honest.running(), empty.running()), (0, 1));
    drop(Invariants::of(&handle).check().await.unwrap());
}

/// S10.1, S6.1: in a session each message is a task of the same conversation, and a stopped turn leaves it usable.
#[tokio::test]
async fn in_a_session_each_message_is_a_task() {
    let server = server(A2aManners::honest(A2aWire::V1).plan([WorkStep::Wait, WorkStep::Say("yes".into())]));
    let agent = Agent::remote(peer(&server).grade(StopSupport::Hard)).build();
    let session = Session::builder(ChatPlanner::new(agent)).start();
    let first = session.push("one".to_owned()).unwrap();
    server.came(1).await;
    server.let_on();
    assert!(matches!(first.outcome().await, ItemOutcome::Completed(_)));
    let second = session.push("two".to_owned()).unwrap();
    server.came(2).await;
    drop(session.stop_turn(None, StopRequest::now()));
    assert!(matches!(second.outcome().await, ItemOutcome::Interrupted(_)));
    let third = session.push("three".to_owned()).unwrap();
    server.came(3).await;
    server.let_on();
    assert!(matches!(third.outcome().await, ItemOutcome::Completed(_)));
    assert_eq!((server.begun(), server.asked("CancelTask")), (3, 1));
    drop(session.stop(SessionStop::now()));
    drop(session.done().await);
}
