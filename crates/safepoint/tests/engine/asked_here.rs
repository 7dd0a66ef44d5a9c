//! Questions that the program itself answers while the run lives, and calls that a stop leaves their time.

use std::time::Duration;

use futures_util::StreamExt as _;
use safepoint::{
    Limits, Outcome, RunHandle, SafePoints, StopRequest,
    approval::{
        ApprovalMode, ApprovalRequest, DecideError, Decision, OnUnknownEffect, ToolApproval, WithoutApprover,
    },
    event::{EventKind, Fact},
    receipt::{CallStatus, Ending},
    secs, tool,
    tool::OnStop,
};
use serde_json::{Value, json};

use crate::world::{agent, ask, ask_with, call_started, does, say};

const WAITS: ApprovalMode = ApprovalMode::Ask(None, WithoutApprover::Wait);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bill {
    cents: u64,
}

/// An agent whose one call pays, once it is approved.
fn payer(mode: ApprovalMode) -> safepoint::Agent {
    let pay =
        tool::from_fn("pay", "Pays", |_cx, bill: Bill| async move { Ok(format!("paid {}", bill.cents)) });
    let pay = pay.with(|spec| spec.approval(ToolApproval::Required));
    agent([ask_with(&[("pay", json!({"cents": 12000}))]), say("ok")]).approvals(mode).tool(pay).build()
}

async fn asked(handle: &RunHandle) -> ApprovalRequest {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let Some(asked) = event.approval_asked() {
            return asked.clone();
        }
    }
    panic!("the run ended first");
}

async fn results(handle: &RunHandle) -> Vec<String> {
    let events = handle.events().filter_map(|event| async move {
        let EventKind::Fact(fact) = &event.kind else { return None };
        if let Fact::CallEnded { result, .. } = &**fact { Some(result.text.to_string()) } else { None }
    });
    events.collect().await
}

/// S8.13: the question stays open in the live run, without an approver, until it is decided; then the run continues.
#[tokio::test(start_paused = true)]
async fn a_live_run_waits_for_the_program_to_decide() {
    let handle = payer(WAITS).run("go").detach();
    let question = asked(&handle).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!handle.is_done(), "it waits, and is not suspended");
    assert_eq!(handle.decide(&question.id, Decision::Approve).await, Ok(()));
    assert_eq!(handle.done().await.answer(), Some("ok"));
    assert_eq!(results(&handle).await, ["paid 12000"]);
}

/// S8.13, S8.3, S8.5: a stop at any safe point withdraws such a question at once, whatever its grace, and it expires as any
/// other.
#[tokio::test(start_paused = true)]
async fn such_a_question_is_withdrawn_by_a_stop_and_expires() {
    for request in
        [StopRequest::now(), StopRequest::graceful(secs(60)), StopRequest::at(SafePoints::AFTER_ALL_CALLS)]
    {
        let handle = payer(WAITS).run("go").detach();
        let question = asked(&handle).await;
        handle.stop(request);
        let outcome = handle.done().await;
        assert_eq!(outcome.ending(), Ending::Stopped);
        assert_eq!(outcome.receipt().approvals_cancelled, std::slice::from_ref(&question.id));
        assert_eq!(handle.decide(&question.id, Decision::Approve).await, Err(DecideError::Withdrawn));
    }
    let handle =
        payer(WAITS).run("go").limits(Limits::default().with_approval_expiry(Duration::from_secs(60)));
    let handle = handle.detach();
    let question = asked(&handle).await;
    assert_eq!(handle.done().await.receipt().calls[0].status, CallStatus::Expired);
    assert_eq!(handle.decide(&question.id, Decision::Approve).await, Err(DecideError::Expired));
}

/// S8.13: so does a call that asks while it runs, and a child run; the question of the child is among the events of the root.
#[tokio::test(start_paused = true)]
async fn calls_that_run_and_child_runs_wait_too() {
    let inside = does("work", |cx| async move { Ok(format!("{:?}", cx.ask("really", json!({})).await?)) });
    let run = agent([ask(&["work"]), say("ok")]).approvals(WAITS).tool(inside).build().run("go").detach();
    let question = asked(&run).await;
    assert_eq!(run.decide(&question.id, Decision::deny("no")).await, Ok(()));
    assert_eq!(run.done().await.answer(), Some("ok"));

    let below = payer(WAITS).as_subagent("payer", "Pays");
    let task = json!({"task": "pay"});
    let root = agent([ask_with(&[("payer", task)]), say("all paid")]).child(below).build();
    let run = root.run("go").detach();
    let question = asked(&run).await;
    assert!(!question.path.is_root());
    assert_eq!(run.decide(&question.id, Decision::Approve).await, Ok(()));
    assert_eq!(run.done().await.answer(), Some("all paid"));
}

/// S8.13, S7.3: a call whose effect is unknown is asked about there too.
#[tokio::test(start_paused = true)]
async fn an_unknown_effect_is_asked_about_in_the_live_run() {
    let pay = does("pay", |cx| async move {
        drop(cx.stopped().await);
        Ok(String::new())
    });
    let built =
        agent([ask(&["pay"]), say("ok")]).approvals(WAITS).on_unknown(OnUnknownEffect::Ask).tool(pay).build();
    let handle = built.run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let again = built.resume(&outcome).detach();
    let question = asked(&again).await;
    let done = Decision::Respond { result: "it was paid".into() };
    assert_eq!(again.decide(&question.id, done).await, Ok(()));
    assert_eq!(again.done().await.answer(), Some("ok"));
}

/// S8.14: a live run refuses changed arguments that do not fit, and its question stays open.
#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_refused_and_the_question_stays_open() {
    let handle = payer(WAITS).run("go").detach();
    let question = asked(&handle).await;
    let with = |args: Value| Decision::approve_with(args);
    let refused = handle.decide(&question.id, with(json!({"cents": "much"}))).await;
    assert!(matches!(&refused, Err(DecideError::Unfit(_))), "{refused:?}");
    assert_eq!(handle.decide(&question.id, with(json!({"cents": 5}))).await, Ok(()));
    assert_eq!(handle.done().await.answer(), Some("ok"));
    assert_eq!(results(&handle).await, ["paid 5"]);
}

/// S8.22: what the person who changed a call tells the model comes with the result, also where the call did not run.
#[tokio::test(start_paused = true)]
async fn a_model_learns_with_the_result_what_a_person_changed() {
    for (args, result) in [(json!({"cents": 5}), "paid 5\n"), (json!({"cents": "much"}), "do not fit")] {
        let agent = payer(ApprovalMode::Ask(None, WithoutApprover::Suspend));
        let outcome = agent.run("go").await;
        let Outcome::Suspended(waiting) = &outcome else { panic!("{outcome:?}") };
        let less = Decision::ApproveWith { args, message: "[the user lowered the sum]".into() };
        let again = agent.resume_with(&outcome, vec![(waiting.approvals()[0].id.clone(), less)]).detach();
        assert_eq!(again.done().await.answer(), Some("ok"));
        let text = results(&again).await.concat();
        assert!(text.contains(result) && text.ends_with("[the user lowered the sum]"), "{text}");
    }
}

/// S8.14: where the person cannot learn of it, the model learns that the mistake is not its own.
#[tokio::test(start_paused = true)]
async fn a_model_is_not_blamed_for_arguments_that_a_person_wrote() {
    let agent = payer(ApprovalMode::Ask(None, WithoutApprover::Suspend));
    let outcome = agent.run("go").await;
    let Outcome::Suspended(waiting) = &outcome else { panic!("{outcome:?}") };
    let wrong = Decision::approve_with(json!({"cents": "much"}));
    let again = agent.resume_with(&outcome, vec![(waiting.approvals()[0].id.clone(), wrong)]).detach();
    assert_eq!(again.done().await.answer(), Some("ok"));
    let text = results(&again).await.concat();
    assert!(text.contains("do not fit") && text.contains("a person approved this call with other"), "{text}");
}

/// S4.26, S1.3: a call sees a stop that waits for a safe point, and may end early by itself; the run stops behind it.
#[tokio::test(start_paused = true)]
async fn a_call_sees_a_stop_that_leaves_it_its_time() {
    let audit = does("audit", |cx| async move {
        assert!(!cx.is_stop_requested());
        cx.stop_requested().await;
        assert!(cx.is_stop_requested() && !cx.is_stopping());
        Ok("three of twenty".into())
    });
    let audit = audit.with(|spec| spec.on_stop(OnStop::Cooperate(Some(Duration::from_secs(5)))));
    let handle = agent([ask(&["audit"])]).tool(audit).build().run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::graceful(secs(60)));
    let outcome = handle.done().await;
    let call = &outcome.receipt().calls[0];
    assert_eq!((outcome.ending(), call.status), (Ending::Stopped, CallStatus::Completed));
    assert_eq!(results(&handle).await, ["three of twenty"]);
}

/// S8.1: a tool that does not ask for approval runs unasked, whatever it changes, also where no one could be asked.
#[tokio::test(start_paused = true)]
async fn what_asks_is_what_says_so() {
    let wipe = does("wipe", |_| async { Ok("wiped".into()) });
    let built =
        safepoint::Agent::builder(crate::world::Scripted::new([ask(&["wipe"]), say("ok")])).tool(wipe);
    assert_eq!(built.build().run("go").await.receipt().calls[0].status, CallStatus::Completed);
}
