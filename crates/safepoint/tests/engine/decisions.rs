//! A decision that comes too late gets what came first: who decided and what, or how else the question was
//! closed.

use std::{future::pending, time::Duration};

use futures_util::future::BoxFuture;
use safepoint::{
    Limits, RunHandle, StopRequest,
    approval::{
        ApprovalMode, ApprovalRequest, Approver, DecideError, Decision, ToolApproval, WithoutApprover,
    },
    event::{EventKind, Fact},
};
use serde_json::json;

use crate::world::{agent, ask, does, say};

/// Is asked, and never answers.
struct Silent;

impl Approver for Silent {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(pending())
    }
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
    panic!("the run ended first");
}

/// A run whose one call asks a person, before it or in it, and which works on for a while.
fn asks(inside: bool) -> RunHandle {
    let work = does("work", move |cx| async move {
        if inside {
            drop(cx.ask("really", json!({})).await?);
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(String::new())
    });
    let work = if inside { work } else { work.with(|spec| spec.approval(ToolApproval::Required)) };
    let silent = ApprovalMode::Ask(Some(std::sync::Arc::new(Silent)), WithoutApprover::Deny);
    let limits = Limits::default().with_approval_expiry(Duration::from_secs(3600));
    agent([ask(&["work"]), say("ok")]).limits(limits).approvals(silent).tool(work).build().run("go").detach()
}

/// S8.2: exactly one answer is accepted; a later one gets who was first and what they said, also after the
/// run, and an unknown question is distinguished from a closed one.
#[tokio::test(start_paused = true)]
async fn a_later_decision_is_told_who_was_first() {
    for inside in [false, true] {
        let handle = asks(inside);
        let id = asked(&handle).await.id;
        assert_eq!(handle.decide(&"apr_unknown".into(), Decision::Approve).await, Err(DecideError::Unknown));
        assert_eq!(handle.decide(&id, Decision::Approve.by("alice")).await, Ok(()));
        let no = || Decision::Deny { message: "no".into() };
        let first = DecideError::Decided { by: "alice".into(), decision: Box::new(Decision::Approve) };
        assert_eq!(handle.decide(&id, no().by("bob")).await, Err(first.clone()));
        assert_eq!(handle.done().await.answer(), Some("ok"));
        assert_eq!(handle.decide(&id, no()).await, Err(first));
    }
}

/// S8.5, S8.3: one that expired, or that a stop took back, says that.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_closed_otherwise_says_how() {
    for inside in [false, true] {
        let handle = asks(inside);
        let id = asked(&handle).await.id;
        tokio::time::sleep(Duration::from_secs(3601)).await;
        assert_eq!(handle.decide(&id, Decision::Approve).await, Err(DecideError::Expired));
        let handle = asks(inside);
        let id = asked(&handle).await.id;
        handle.stop(StopRequest::now());
        drop(handle.done().await);
        assert_eq!(handle.decide(&id, Decision::Approve).await, Err(DecideError::Withdrawn));
    }
}
