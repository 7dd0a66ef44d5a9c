//! A call that waits for a person without an approver here: a stop at any safe point finds it at rest.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, Outcome, Reason, RunHandle, SafePoints, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, WithoutApprover},
    event::{EventKind, Fact},
    message::ToolCall,
    model::{Delta, Finish},
    receipt::{CallStatus, Ending, StopSource},
    secs,
};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use crate::world::{agent, ask, does, say};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// An agent whose call asks in the midst of its work, without an approver.
fn asking() -> AgentBuilder {
    let tool = does("pay", |cx| async move {
        let decision = cx.ask("transfer", json!({"to": "bob"})).await?;
        Ok(format!("{decision:?}"))
    });
    agent([ask(&["pay", "later"]), say("end")])
        .tool(tool)
        .tool(does("later", |_| async { Ok("r".into()) }))
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

async fn asked(handle: &RunHandle) -> ApprovalRequest {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        let fact = match &event.kind {
            EventKind::Fact(fact) => Arc::clone(fact),
            EventKind::Child { event, .. } => match &**event {
                EventKind::Fact(fact) => Arc::clone(fact),
                _ => continue,
            },
            _ => continue,
        };
        if let Fact::ApprovalRequested(request) = &*fact {
            return request.clone();
        }
    }
    panic!("the run ended first");
}

async fn stopped(handle: &RunHandle, request: StopRequest) -> (Outcome, Duration) {
    let began = Instant::now();
    handle.stop(request.with_reason(Reason::user("enough")));
    let done = tokio::time::timeout(NEVER, handle.done()).await;
    let outcome = done.unwrap_or_else(|_| panic!("it never settled; alive: {:?}", handle.alive()));
    (outcome, began.elapsed())
}

/// S2.17, S8.3: waiting for a person without an approver is a safe point of every set: no grace is waited
/// out, and without one nothing hangs. The question is withdrawn, and what waits behind it does not begin.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_nobody_is_at_rest() {
    let sets = [SafePoints::AFTER_MODEL, SafePoints::AFTER_STARTED_CALLS, SafePoints::AFTER_ALL_CALLS];
    for points in sets {
        for request in [StopRequest::at(points), StopRequest::at_within(points, secs(600))] {
            let handle = asking().build().run("go").detach();
            let question = asked(&handle).await;
            let (outcome, took) = stopped(&handle, request).await;
            assert_eq!((outcome.ending(), took), (Ending::Stopped, Duration::ZERO), "{points:?}");
            let receipt = outcome.receipt();
            let rows: Vec<_> = receipt.calls.iter().map(|call| (call.status, call.stopped_by)).collect();
            let by_run = Some(StopSource::Run);
            assert_eq!(rows, [(CallStatus::Stopped, by_run), (CallStatus::NotStarted, by_run)], "{points:?}");
            assert_eq!(receipt.approvals_cancelled, [question.id]);
            let stop = receipt.stop.as_ref().unwrap();
            assert_eq!((stop.fired.as_ref(), &*stop.reason.text), (Some(&stop.asked), "enough"));
        }
    }
}

/// S2.17, S9.3: a child run that waits so is at rest too; a stop of the tree ends it there, and its parent closes.
#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_nobody_is_at_rest() {
    let dig = ToolCall { id: "c0".into(), name: "helper".into(), args: r#"{"task":"dig"}"#.into() };
    let calls = vec![Ok(Delta::Sent), Ok(Delta::CallReady(dig)), Ok(Delta::Ended(Finish::Natural))];
    let outer = agent([calls, say("end")])
        .child(asking().build().as_subagent("helper", "helps").input(|_| "dig".into()))
        .build();
    let handle = outer.run("go").detach();
    asked(&handle).await;
    let (outcome, took) = stopped(&handle, StopRequest::graceful(secs(600))).await;
    assert_eq!((outcome.ending(), took), (Ending::Stopped, Duration::ZERO));
    let call = &outcome.receipt().calls[0];
    assert_eq!((call.status, call.stopped_by), (CallStatus::Stopped, Some(StopSource::Run)));
}

/// An approver that takes a minute.
struct Slow;

impl Approver for Slow {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Decision::Approve
        })
    }
}

/// S2.6, S2.17: with an approver the call continues with the answer, and the round completes.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_somebody_is_not_at_rest() {
    let agent: Agent =
        asking().approvals(ApprovalMode::Ask(Some(Arc::new(Slow)), WithoutApprover::Deny)).build();
    let handle = agent.run("go").detach();
    asked(&handle).await;
    let (outcome, took) = stopped(&handle, StopRequest::at(SafePoints::AFTER_ALL_CALLS)).await;
    assert_eq!((outcome.ending(), took), (Ending::Stopped, Duration::from_secs(60)));
    assert!(outcome.receipt().calls.iter().all(|call| call.status == CallStatus::Completed));
}

/// S2.6, S2.17: a call beside it that works is let end first.
#[tokio::test(start_paused = true)]
async fn what_works_beside_it_ends_first() {
    let (works, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (began, gate) = (Arc::clone(&works), Arc::clone(&go_on));
    let read = safepoint::tool::EffectClass::ReadOnly;
    let pay = does("pay", |cx| async move { Ok(format!("{:?}", cx.ask("transfer", json!({})).await?)) });
    let work = does("work", move |_| {
        let (began, gate) = (Arc::clone(&began), Arc::clone(&gate));
        async move {
            began.notify_one();
            gate.notified().await;
            Ok("worked".into())
        }
    });
    let handle = agent([ask(&["pay", "work"]), say("end")])
        .tool(pay.with(|spec| spec.effect(read)))
        .tool(work.with(|spec| spec.effect(read)))
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .build()
        .run("go")
        .detach();
    asked(&handle).await;
    works.notified().await;
    handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    // The stop is noticed, and the run continues, since a call is active.
    let seen =
        |kind: &EventKind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::StopRequested(_)));
    crate::world::until(&handle, seen).await;
    assert!(!handle.is_done());
    go_on.notify_one();
    let outcome = tokio::time::timeout(NEVER, handle.done()).await.expect("it settles");
    let statuses: Vec<_> = outcome.receipt().calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Stopped, CallStatus::Completed]);
}
