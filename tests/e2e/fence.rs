//! What arrives after an attempt has settled changes nothing (S3.5).

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    approval::{ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    event::EventKind,
    model::OnModelStop,
    receipt::{CallStatus, Ending, SideEffect},
    tool::EffectClass,
};
use safepoint_testkit::{invariants::Invariants, ledger::Mark, script::Reply, tools::GateTools};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    approvals::Desk,
    world::{Ledger, WIRES, builder, close, continues, first_text, gated, server},
};

/// Everything of an outcome that a late arrival could change.
fn all_of(outcome: &Outcome) -> String {
    format!("{:?} {:?} {:?}", outcome.history(), outcome.receipt(), outcome.partial_text())
}

/// S3.5, S2.2, S2.14: chunks that come after the stop, a whole tool call among them, change nothing and start
/// nothing, whether the exchange was closed or is read on for its bill.
/// pipecat-ai/pipecat#4997: a call of a discarded message runs; aaif-goose/goose#9938 and
/// google-gemini/gemini-cli#28091: a call that arrives after the interrupt is executed, and its result
/// posted.
#[tokio::test]
async fn a_late_chunk_changes_nothing_and_starts_nothing() {
    for wire in WIRES {
        for on_cut in [OnModelStop::Disconnect, OnModelStop::Drain] {
            let server = server([]).await;
            let mut gate = server.gate();
            let (ledger, open) = (Ledger::default(), Arc::new(Semaphore::new(9)));
            let pay = gated("pay", EffectClass::Unsafe, &ledger, &open);
            let agent = builder(&server, wire).on_cut(on_cut).tool(pay).build();
            let handle = agent.run("tell").detach();
            gate.request().await;
            gate.headers();
            let reply = Reply::text("once upon a time").and_call("pay", json!({}));
            let chunks = gate.script(&reply.paced(5, Duration::ZERO).usage(70, 30));
            for _ in 0..chunks / 2 {
                gate.send_next();
            }
            first_text(&handle).await;
            handle.stop(StopRequest::now());
            let outcome = handle.done().await;
            let then = all_of(&outcome);
            gate.finish();
            let (after, receipt) = close(&server, &handle, &ledger).await;
            assert_eq!(all_of(&after), then, "{wire:?} {on_cut:?}");
            assert!(receipt.calls.is_empty() && ledger.count("entry") == 0);
            assert_eq!((after.ending(), server.requests().len()), (Ending::Stopped, 1));
            continues(&agent, &outcome).await;
        }
    }
}

async fn until_late(handle: &RunHandle) -> String {
    let mut audit = handle.audit();
    while let Some(event) = audit.next().await {
        if let EventKind::Late(what) = event.kind {
            return what;
        }
    }
    panic!("nothing late was reported");
}

/// S3.5, S4.3, S5.2: the result of a call that was left running comes during the next attempt. The first
/// attempt's audit reports it, and neither attempt's history, receipt or totals know of it.
/// openclaw/openclaw#118880: a person reads "timed out", then the real answer arrives; livekit/agents#3702:
/// finished work is repeated by the model.
#[tokio::test]
async fn a_late_result_reaches_no_later_attempt() {
    for wire in WIRES {
        let server = server([Reply::call("pay", json!({}))]).await;
        let tools = GateTools::new();
        let agent = builder(&server, wire).tool(tools.late("pay")).build();
        let first = agent.run("pay").detach();
        tools.gate().came(1).await;
        first.stop(StopRequest::now());
        let stopped = first.done().await;
        let then = all_of(&stopped);
        assert_eq!(stopped.receipt().calls[0].status, CallStatus::LeftRunning);

        let mut gate = server.gate();
        let second = agent.resume(&stopped).detach();
        gate.request().await;
        tools.gate().let_pass(1);
        assert!(until_late(&first).await.contains("returned 4 bytes"));
        gate.headers();
        gate.script(&Reply::text("I will look"));
        gate.finish();
        let resumed = Invariants::of(&second).server(&server).first_request(1).ledger(tools.ledger());
        let resumed = resumed.check().await.unwrap();
        let closed = Invariants::of(&first).server(&server).ledger(tools.ledger()).check().await.unwrap();
        assert_eq!(all_of(&closed.outcome), then);
        assert!(closed.receipt.late[0].contains("returned 4 bytes"), "{:?}", closed.receipt.late);
        assert_eq!((resumed.outcome.answer(), tools.ledger().count(Mark::Commit)), (Some("I will look"), 1));
        assert!(resumed.receipt.late.is_empty());
        assert_eq!(resumed.receipt.calls[0].effect, SideEffect::Unknown, "{}", resumed.receipt);
        let sent = server.requests()[1].body.to_string();
        assert!(sent.contains("[still running") && !sent.contains("\"done\""), "{sent}");
    }
}

fn asking(server: &safepoint_testkit::server::ModelServer, desk: &Desk, ledger: &Ledger) -> Agent {
    let open = Arc::new(Semaphore::new(9));
    builder(server, WIRES[0])
        .approvals(ApprovalMode::Ask(Some(Arc::new(desk.clone())), WithoutApprover::Deny))
        .rule(Rule::on("pay", RuleAction::Ask))
        .tool(gated("pay", EffectClass::Unsafe, ledger, &open))
        .build()
}

/// S3.5, S8.3: a yes that comes after the stop is refused and revives nothing; a resume asks again under a
/// new id, to which the old yes does not speak.
/// HarperFast/harper PR#839: approving after the cancel revives the aborted session;
/// letta-ai/letta-code#2578: a stale approval blocks the next session; cline/cline PR#13892: the next
/// approval is asked on a dead run.
#[tokio::test]
async fn a_late_yes_revives_nothing() {
    let server = server([Reply::call("pay", json!({})), Reply::text("paid")]).await;
    let (ledger, (desk, mut asked)) = (Ledger::default(), Desk::open());
    let agent = asking(&server, &desk, &ledger);
    let handle = agent.run("pay").detach();
    let old = asked.recv().await.unwrap();
    handle.stop(StopRequest::now());
    let stopped = handle.done().await;
    let then = all_of(&stopped);
    old.answer(Decision::Approve);
    assert!(handle.decide(&old.question.id, Decision::Approve).await.is_err());
    let (after, receipt) = close(&server, &handle, &ledger).await;
    assert_eq!((all_of(&after), ledger.count("entry")), (then, 0));
    assert_eq!(receipt.approvals_cancelled, std::slice::from_ref(&old.question.id));
    assert_eq!(receipt.calls[0].status, CallStatus::NotStarted);

    let resumed = agent.resume(&stopped).detach();
    let new = asked.recv().await.unwrap();
    assert_ne!(new.question.id, old.question.id);
    assert!(resumed.decide(&old.question.id, Decision::Approve).await.is_err());
    assert_eq!(ledger.count("entry"), 0);
    new.answer(Decision::Approve);
    let (outcome, _) = close(&server, &resumed, &ledger).await;
    assert_eq!((outcome.answer(), ledger.count("commit")), (Some("paid"), 1));
}
