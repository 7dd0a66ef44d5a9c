//! What a peer asks a person, as approvals.

use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    approval::{ApprovalKind, ApprovalMode, ApprovalRequest, Decision, WithoutApprover},
    event::{EventKind, Fact},
    receipt::{QuietReport, RemoteStopState, StopSupport},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, A2aWire, WorkStep},
    invariants::Invariants,
};

use super::world::{peer, remote, server};

fn asking(wire: A2aWire) -> A2aServer {
    let plan = [WorkStep::Ask("which city?".into()), WorkStep::Say("it rains".into())];
    server(A2aManners::honest(wire).plan(plan))
}

fn run(server: &A2aServer, grade: StopSupport) -> RunHandle {
    let agent =
        Agent::remote(peer(server).grade(grade)).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend));
    agent.build().run("the weather?").detach()
}

async fn asked(handle: &RunHandle) -> ApprovalRequest {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Fact(fact) = &event.kind
            && let Fact::ApprovalRequested(request) = &**fact
        {
            return request.clone();
        }
    }
    panic!("the run ended without a question: {:?}", handle.done().await);
}

/// S8.1, S8.2: what a peer needs from a person is a question like any other, and the answer goes on with the same task.
#[tokio::test]
async fn what_a_peer_needs_is_asked_and_answered() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let server = asking(wire);
        let handle = run(&server, StopSupport::CallerSide);
        let question = asked(&handle).await;
        assert_eq!(
            (question.question, question.tool.as_str()),
            (ApprovalKind::DuringCall, "remote_agent/input")
        );
        assert_eq!(question.args["asks"], "which city?");
        handle.decide(&question.id, Decision::Respond { result: "Bern".into() }).await.unwrap();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("it rains"));
        assert_eq!(server.deeds(), ["began", "got Bern", "said it rains", "ended"]);
        assert_eq!(server.begun(), 1, "one task");
    }
}

/// S8.2: a refusal is an answer too: the peer is told it, and decides what comes of it.
#[tokio::test]
async fn a_denial_is_told_to_the_peer() {
    let server = asking(A2aWire::V1);
    let handle = run(&server, StopSupport::CallerSide);
    let question = asked(&handle).await;
    handle.decide(&question.id, Decision::Deny { message: "none of your business".into() }).await.unwrap();
    assert_eq!(handle.done().await.answer(), Some("it rains"));
    assert!(server.deeds().contains(&"got none of your business".to_owned()), "{:?}", server.deeds());
}

/// S8.3, S10.3: a stop takes the question back with the call, later answers are refused, and the peer is told to stop.
#[tokio::test]
async fn a_stop_takes_the_question_back() {
    let server = asking(A2aWire::V1);
    let handle = run(&server, StopSupport::Hard);
    let question = asked(&handle).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert!(matches!(outcome, Outcome::Stopped(_)));
    assert_eq!(remote(outcome.receipt()).stop, Some(RemoteStopState::Confirmed));
    assert!(handle.decide(&question.id, Decision::Approve).await.is_err());
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(closed.receipt.quiet_at.is_some());
    assert_eq!(server.deeds(), ["began", "torn down"]);
}

/// S8.1: a peer that needs somebody to sign in says so, and waits.
#[tokio::test]
async fn a_peer_that_needs_a_sign_in_says_so() {
    let plan = [WorkStep::SignIn("please sign in at https://id".into()), WorkStep::Say("in".into())];
    let server = server(A2aManners::honest(A2aWire::V1).plan(plan));
    let handle = run(&server, StopSupport::CallerSide);
    let question = asked(&handle).await;
    assert_eq!(question.tool, "remote_agent/sign_in");
    assert_eq!(question.args["asks"], "please sign in at https://id");
    handle.decide(&question.id, Decision::Approve).await.unwrap();
    assert_eq!(handle.done().await.answer(), Some("in"));
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
}
