//! Steering an active run: delivered with its next model request, or back with the sender; never lost, never
//! twice.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Limits, SafePoints, Steer, StopRequest,
    message::UserMessage,
    receipt::{Ending, ModelState},
    steer::{SteerError, SteerOutcome},
    tool::EffectClass,
};
use safepoint_testkit::script::Reply;
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, continues, first_text, gated, server, started};

fn steer(text: &str) -> Steer {
    Steer::new(text).unwrap()
}

/// S6.5: steered while calls run: the next request holds all results of the round, and after them the steer.
/// zed-industries/zed#49601: not delivered at the boundary that is documented.
#[tokio::test]
async fn a_steer_follows_all_results_of_the_round() {
    for wire in WIRES {
        let calls = Reply::default().and_call("pay", json!({})).and_call("pay", json!({}));
        let server = server([calls, Reply::text("in euros then")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::ReadOnly, &ledger, &gate)).build();
        let handle = agent.run("pay twice").detach();
        started(&handle, 2).await;
        let steering = handle.steer(steer("in euros, please"));
        gate.add_permits(2);
        assert_eq!(steering.outcome().await, SteerOutcome::Delivered { round: 2 });
        let (outcome, _) = close(&server, &handle, &ledger).await;
        assert_eq!(outcome.ending(), Ending::Done);
        let sent = server.requests()[1].body.to_string();
        let (result, steered) = (sent.rfind("paid").unwrap(), sent.find("in euros, please").unwrap());
        assert!(result < steered, "{sent}");
        assert_eq!(sent.matches("in euros, please").count(), 1);
        continues(&agent, &outcome).await;
    }
}

/// S6.5: steered while the final answer streams: the run makes one more request, with the answer and the
/// steer.
#[tokio::test]
async fn a_steer_during_the_last_answer_is_answered_too() {
    for wire in WIRES {
        let server = server([Reply::text("in euros")]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).build();
        let handle = agent.run("how much?").detach();
        gate.request().await;
        gate.headers();
        gate.script(&Reply::text("ten dollars"));
        gate.send_next();
        let steering = handle.steer(steer("in euros?"));
        drop(steering);
        gate.finish();
        let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Done, "in euros"));
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("ten dollars") && sent.contains("in euros?"), "{sent}");
    }
}

/// S6.5, S5.4: an interrupting steer closes the socket; what was shown stays, and the next request holds
/// both.
/// openai/openai-agents-python#798: asked for: to interrupt an active run and change what it is about.
#[tokio::test]
async fn an_interrupting_steer_cuts_the_stream_and_keeps_what_was_shown() {
    for wire in WIRES {
        let server = server([Reply::text("briefly")]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).build();
        let handle = agent.run("tell").detach();
        let exchange = gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("once upon a time").paced(5, Duration::ZERO));
        for _ in 0..chunks / 2 {
            gate.send_next();
        }
        first_text(&handle).await;
        let steering = handle.steer(steer("shorter!").at_once());
        assert_eq!(steering.outcome().await, SteerOutcome::Delivered { round: 2 });
        exchange.peer_closed().await;
        let (outcome, receipt) = close(&server, &handle, &Ledger::default()).await;
        assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Done, "briefly"));
        assert_eq!(receipt.model.as_ref().unwrap().state, ModelState::Completed);
        assert!(receipt.stop.is_none(), "a steer is no stop");
        let sent = server.requests()[1].body.to_string();
        assert!(
            sent.contains("once") && sent.contains("[interrupted") && sent.contains("shorter!"),
            "{sent}"
        );
        continues(&agent, &outcome).await;
    }
}

/// S6.5, S2.4: under a pending stop no further request is made, so the steer comes back.
#[tokio::test]
async fn a_steer_under_a_pending_stop_comes_back() {
    let server = server([]).await;
    let mut gate = server.gate();
    let agent = builder(&server, WIRES[0]).build();
    let handle = agent.run("hi").detach();
    gate.request().await;
    gate.headers();
    gate.script(&Reply::text("bye"));
    gate.send_next();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    let steering = handle.steer(steer("wait"));
    gate.finish();
    assert_eq!(steering.outcome().await, SteerOutcome::Returned(UserMessage::from("wait")));
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!((outcome.ending(), server.requests().len()), (Ending::Done, 1));
}

/// S6.5, S12.1: a run at its last permitted round cannot use a steer; it is done, not stopped, and gives it
/// back.
#[tokio::test]
async fn a_steer_beyond_the_last_round_comes_back() {
    let server = server([]).await;
    let mut gate = server.gate();
    let limits = Limits::default().with_max_rounds(1);
    let agent = builder(&server, WIRES[0]).limits(limits).build();
    let handle = agent.run("hi").detach();
    gate.request().await;
    gate.headers();
    gate.script(&Reply::text("bye"));
    let steering = handle.steer(steer("more"));
    gate.finish();
    assert_eq!(steering.outcome().await, SteerOutcome::Returned(UserMessage::from("more")));
    let (outcome, _) = close(&server, &handle, &Ledger::default()).await;
    assert_eq!(outcome.ending(), Ending::Done);
}

/// S6.5: nothing runs: not delivered; blank: refused.
#[tokio::test]
async fn a_steer_of_an_ended_run_comes_back_and_a_blank_one_cannot_be_made() {
    let server = server([Reply::text("done")]).await;
    let agent = builder(&server, WIRES[0]).build();
    let handle = agent.run("hi").detach();
    let _closed = close(&server, &handle, &Ledger::default()).await;
    let late = handle.steer(steer("too late")).outcome().await;
    assert_eq!(late, SteerOutcome::Returned(UserMessage::from("too late")));
    assert_eq!(Steer::new(" \n").unwrap_err(), SteerError::Blank);
}
