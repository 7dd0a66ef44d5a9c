//! After a stop both ways stay open: resume the run, or continue with a new message (S5.3, S5.4).

use std::sync::Arc;

use safepoint::{
    StopRequest,
    approval::{ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    receipt::{CallStatus, Ending, SideEffect},
    secs,
    tool::EffectClass,
};
use safepoint_testkit::script::Reply;
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{Ledger, WIRES, builder, close, first_text, gated, server, started};

/// S5.3: resumed after a safe point, the calls that never started run, and the finished one is not run again.
/// livekit/agents#3702: finished results are lost by a stop, and the work is done twice.
#[tokio::test]
async fn a_resume_runs_what_never_started_and_repeats_nothing() {
    for wire in WIRES {
        let calls = Reply::default().and_call("pay", json!({})).and_call("pay", json!({}));
        let server = server([calls, Reply::text("both paid")]).await;
        let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
        let agent = builder(&server, wire).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
        let handle = agent.run("pay").detach();
        started(&handle, 1).await;
        handle.stop(StopRequest::graceful(secs(60)));
        gate.add_permits(2);
        let (stopped, _) = close(&server, &handle, &ledger).await;
        assert_eq!(ledger.count("commit"), 1);
        let resumed = agent.resume(&stopped).detach();
        let (outcome, receipt) = close(&server, &resumed, &ledger).await;
        assert_eq!((outcome.answer(), ledger.count("commit"), receipt.attempt), (Some("both paid"), 2, 2));
    }
}

/// S5.3, S7.3: an unsafe call that a stop cut is not run again by a resume; the model learns that it is
/// unknown.
/// GEMISIS/leviath#96: a whole batch in flight is run again; google/adk-python#3971: an open call bricks the
/// session.
#[tokio::test]
async fn a_resume_does_not_repeat_an_unsafe_call() {
    let server = server([Reply::call("pay", json!({})), Reply::text("I will check")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::now());
    let (stopped, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!(receipt.calls[0].effect, SideEffect::Unknown);
    gate.add_permits(9);
    let outcome = agent.resume(&stopped).await;
    assert_eq!((outcome.answer(), ledger.count("commit")), (Some("I will check"), 0));
    assert!(server.requests()[1].body.to_string().contains("effects are unknown"));
}

/// S5.3, S4.4: a read-only call that a stop cut runs again.
#[tokio::test]
async fn a_resume_runs_a_harmless_call_again() {
    let server = server([Reply::call("look", json!({})), Reply::text("seen")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[1]).tool(gated("look", EffectClass::ReadOnly, &ledger, &gate)).build();
    let handle = agent.run("look").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::now());
    let (stopped, _) = close(&server, &handle, &ledger).await;
    gate.add_permits(9);
    let outcome = agent.resume(&stopped).await;
    assert_eq!((outcome.answer(), ledger.count("commit")), (Some("seen"), 1));
}

/// S5.4: resumed after a cut stream, the model call is repeated on its original input.
#[tokio::test]
async fn a_resume_repeats_a_cut_model_call_on_its_input() {
    for wire in WIRES {
        let server = server([Reply::text("the whole story")]).await;
        let mut gate = server.gate();
        let agent = builder(&server, wire).build();
        let handle = agent.run("tell").detach();
        gate.request().await;
        gate.headers();
        let chunks = gate.script(&Reply::text("once upon").paced(4, std::time::Duration::ZERO));
        for _ in 0..chunks / 2 {
            gate.send_next();
        }
        first_text(&handle).await;
        handle.stop(StopRequest::now());
        let (stopped, _) = close(&server, &handle, &Ledger::default()).await;
        assert!(!stopped.partial_text().is_empty());
        let outcome = agent.resume(&stopped).await;
        assert_eq!(outcome.answer(), Some("the whole story"));
        let requests = server.requests();
        assert_eq!(requests[0].body, requests[1].body);
    }
}

/// S5.2: the same history closes to the same bytes.
#[tokio::test]
async fn closing_is_deterministic() {
    let server = server([Reply::call("pay", json!({})), Reply::text("a"), Reply::text("b")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(0)));
    let agent = builder(&server, WIRES[0]).tool(gated("pay", EffectClass::Unsafe, &ledger, &gate)).build();
    let handle = agent.run("pay").detach();
    started(&handle, 1).await;
    handle.stop(StopRequest::now());
    let (stopped, _) = close(&server, &handle, &ledger).await;
    for _ in 0..2 {
        assert_eq!(agent.run_on(stopped.history().clone(), "next").await.ending(), Ending::Done);
    }
    let requests = server.requests();
    assert_eq!(requests[1].body, requests[2].body);
}

/// S8.1, S8.2, S8.3, S8.5: a call that needs a person suspends the run, others go ahead, and a decision
/// resumes it.
/// google/adk-python#5064: a resume after an approval returns without calling the model.
#[tokio::test]
async fn an_approval_suspends_and_a_decision_resumes() {
    let calls = Reply::default().and_call("pay", json!({})).and_call("look", json!({}));
    let server = server([calls, Reply::text("paid")]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
    let agent = builder(&server, WIRES[0])
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .rule(Rule::on("pay", RuleAction::Ask))
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .tool(gated("look", EffectClass::ReadOnly, &ledger, &gate))
        .build();
    let outcome = agent.run("pay").await;
    let safepoint::Outcome::Suspended(waiting) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((waiting.approvals().len(), ledger.count("commit")), (1, 1));
    let id = waiting.approvals()[0].id.clone();
    let resumed = agent.resume_with(&outcome, vec![(id.clone(), Decision::Approve)]).await;
    assert_eq!((resumed.answer(), ledger.count("commit")), (Some("paid"), 2));
}

/// S8.3, S8.2: a stop takes the question back: not started, withdrawn, and nothing is revived by a late
/// answer.
/// cline/cline PR#13892: a stop answers one question with a denial, and asks the next;
/// hackerai-tech/hackerai PR#826: a stop does not reach a task that waits six hours for an answer.
#[tokio::test]
async fn a_stop_withdraws_the_question() {
    struct Never;
    impl safepoint::approval::Approver for Never {
        fn ask(
            &self,
            _: safepoint::approval::ApprovalRequest,
        ) -> futures_util::future::BoxFuture<'static, Decision> {
            Box::pin(std::future::pending())
        }
    }
    let server = server([Reply::call("pay", json!({}))]).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(9)));
    let agent = builder(&server, WIRES[0])
        .approvals(ApprovalMode::Ask(Some(Arc::new(Never)), WithoutApprover::Deny))
        .rule(Rule::on("*", RuleAction::Ask))
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .build();
    let handle = agent.run("pay").detach();
    let mut events = handle.events();
    let id = loop {
        let event = events.next().await.unwrap();
        if let safepoint::event::EventKind::Fact(fact) = &event.kind
            && let safepoint::event::Fact::ApprovalRequested(request) = &**fact
        {
            break request.id.clone();
        }
    };
    handle.stop(StopRequest::at(safepoint::SafePoints::AFTER_MODEL));
    let (_, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!(receipt.approvals_cancelled, std::slice::from_ref(&id));
    assert_eq!(
        (receipt.calls[0].status, receipt.calls[0].effect),
        (CallStatus::NotStarted, SideEffect::None)
    );
    assert!(handle.decide(&id, Decision::Approve).await.is_err());
    assert_eq!(ledger.count("entry"), 0);
}
