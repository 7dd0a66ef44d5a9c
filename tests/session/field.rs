//! What others were reported to get wrong where a person talks to an agent that works: each as a scenario of
//! a session.

use safepoint::{
    SessionHandle, StopRequest,
    event::Fact,
    ids::CallId,
    receipt::CallStatus,
    session::{Delivery, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, SessionEvent, SessionStop},
};
use safepoint_testkit::{ledger::Mark, script::Reply};

use super::{
    desk::{Desk, accounted, is_fact, one_after_the_other, pays, said, turn},
    world::seen,
};

/// The call that is running.
async fn running(session: &SessionHandle<String>) -> CallId {
    let event = seen(session, |event| is_fact(event, |fact| matches!(fact, Fact::CallStarted { .. }))).await;
    let SessionEvent::Run { event, .. } = event else { panic!("{event:?}") };
    match &event.kind {
        safepoint::event::EventKind::Fact(fact) => match &**fact {
            Fact::CallStarted { call_id, .. } => call_id.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// S6.3, S2.7: a message that is to be sent now, during a call that never ends: the call is stopped, and the
/// message is answered by the next turn; what waits in the queue comes after it.
/// openai/codex#17095: to send a message now does nothing while a tool runs; zed-industries/zed#57761: a tool
/// call blocks what is queued for an hour.
#[tokio::test]
async fn a_message_that_is_sent_now_ends_the_call_and_is_answered() {
    let desk = Desk::new([pays(), Reply::text("in euros"), Reply::text("yours")]);
    let session = desk.chat().start();
    let first = session.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let queued = session.push("and the bill?".to_owned()).unwrap();
    let now = session.push(Push::new("no: in euros".to_owned()).policy(Preempt::now())).unwrap();
    assert_eq!(now.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    assert_eq!(
        (first.outcome().await, now.outcome().await, queued.outcome().await),
        (ItemOutcome::Preempted(turn(1)), ItemOutcome::Completed(turn(2)), ItemOutcome::Completed(turn(3)))
    );
    assert_eq!(desk.tools.ledger().count(Mark::Commit), 0, "the call did not end by itself");
    assert_eq!(said(&desk.model.requests()[1]), ["pay", "no: in euros"]);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, queued, now]).await;
    assert_eq!(one_after_the_other(&session).await, 3);
}

/// S6.5, S2.10: a steer waits for all results of the round. A person may stop one of the calls alone. Then
/// the steer goes out with the next request of the same turn.
/// pingdotgg/t3code PR#12541: a steer waits behind a long tool, and nothing can be done about it.
#[tokio::test]
async fn a_steer_behind_a_long_call_is_let_through_by_a_stop_of_that_call_alone() {
    let desk = Desk::new([pays(), Reply::text("in euros")]);
    let session = desk.chat().start();
    let first = session.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let call = running(&session).await;
    let steer = session.push(Push::new("in euros".to_owned()).policy(Policy::steer())).unwrap();
    steer.recorded().await;
    let run = session.current_turn().unwrap().run;
    run.stop_call(&call, StopRequest::now()).unwrap();
    assert_eq!(steer.delivered().await, Some(Delivery { turn: turn(1), round: 2 }));
    let outcome = run.done().await;
    let receipt = outcome.receipt();
    assert_eq!((outcome.answer(), receipt.calls[0].status), (Some("in euros"), CallStatus::Stopped));
    assert!(receipt.stop.is_none(), "the turn was not stopped");
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, steer]).await;
}

/// S2.14, S3.5, S6.11: a tool that talks on after its stop, and then reports success, delays nothing: the
/// turn is a stopped one, and the next message is answered.
/// livekit/agents#4413: speech that a tool begins after an interrupt locks the agent for the rest of the
/// call.
#[tokio::test]
async fn a_tool_that_talks_after_its_stop_locks_no_caller_out() {
    let desk = Desk::new([Reply::default().and_call("talks", serde_json::json!({})), Reply::text("here")]);
    let talks = desk.tools.swallowing("talks");
    let agent = safepoint::Agent::builder(desk.model.clone())
        .approvals(safepoint::approval::ApprovalMode::Auto)
        .tool(talks)
        .build();
    let session = safepoint::Session::builder(safepoint::session::ChatPlanner::new(agent)).start();
    let first = session.push("talk".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    assert_eq!(
        session.stop_turn(None, StopRequest::now()).asked().await,
        safepoint::session::TurnStopAck::Stopping(turn(1))
    );
    desk.tools.gate().open_for_all();
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    let next = session.push("are you there?".to_owned()).unwrap();
    assert_eq!(next.outcome().await, ItemOutcome::Completed(turn(2)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, next]).await;
}
