//! A child that waits for a person: the parent waits too, decisions find their way, a stop takes the questions back.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use safepoint::{
    Agent, Outcome, RunHandle, SafePoints, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, DecideError, Decision, ToolApproval, WithoutApprover},
    event::{EventKind, Fact},
    receipt::{CallStatus, Ending},
    stop::Reach,
    tool::Concurrency,
};
use tokio::sync::Semaphore;

use crate::children::{at, gated, hire, row, with};
use crate::world::{agent, ask, say};

pub(crate) const DURABLY: ApprovalMode = ApprovalMode::Ask(None, WithoutApprover::Suspend);

/// Three levels; the leaf's one call needs a person.
fn levels(ran: &Arc<AtomicU32>) -> Agent {
    let gate = Arc::new(Semaphore::new(100));
    let work = gated("work", &gate, ran).with(|spec| spec.approval(ToolApproval::Required));
    let leaf = agent([ask(&["work"]), say("leaf")]).tool(work).approvals(DURABLY).build();
    let middle = with(agent([hire(&["leaf"]), say("middle")]), "leaf", &leaf).build();
    with(agent([hire(&["middle"]), say("root")]), "middle", &middle).build()
}

pub(crate) fn question(outcome: &Outcome) -> ApprovalRequest {
    let Outcome::Suspended(waiting) = outcome else { panic!("{outcome:?}") };
    waiting.approvals()[0].clone()
}

pub(crate) async fn asked(handle: &RunHandle) -> ApprovalRequest {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Child { event, .. } = &event.kind
            && let EventKind::Fact(fact) = &**event
            && let Fact::ApprovalRequested(request) = &**fact
        {
            return request.clone();
        }
    }
    panic!("the run ended first");
}

/// S9.1, S8.1: a child that waits suspends its parent; the question names the run; a decision with the resume reaches
/// it, and no model is called twice.
#[tokio::test(start_paused = true)]
async fn a_child_s_question_is_answered_at_the_resume() {
    let ran = Arc::new(AtomicU32::new(0));
    let root = levels(&ran);
    let waiting = root.run("go").await;
    let asked = question(&waiting);
    assert_eq!((waiting.ending(), &asked.path), (Ending::Suspended, &at(&["h0", "h0"])));
    assert_eq!(waiting.receipt().waiting[0].path, at(&["h0"]));
    assert!(waiting.receipt().to_string().contains("child  root/h0  Suspended"), "{}", waiting.receipt());
    let still = root.resume(&waiting).await;
    assert_eq!(question(&still).id, asked.id, "it stays open, and is the same");
    let outcome = root.resume_with(&still, vec![(asked.id.clone(), Decision::Approve)]).await;
    assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("root"), 1));
}

/// S8.2: a decision about no open question of the tree is not taken.
#[tokio::test(start_paused = true)]
async fn a_decision_for_nobody_is_refused() {
    let ran = Arc::new(AtomicU32::new(0));
    let root = levels(&ran);
    let waiting = root.run("go").await;
    let outcome = root.resume_with(&waiting, vec![("apr_unknown".into(), Decision::Approve)]).await;
    assert_eq!((outcome.ending(), ran.load(Ordering::SeqCst)), (Ending::Failed, 0));
}

/// S8.2, S8.5: while a sibling works, a child's question is answered through the root's handle; exactly one answer is
/// taken.
/// vybestack/llxprt-code#2099: one of several parallel calls hangs the subagent.
#[tokio::test(start_paused = true)]
async fn a_child_s_question_is_answered_while_others_work() {
    let (busy, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let gate = Arc::new(Semaphore::new(100));
    let work = gated("work", &gate, &ran).with(|spec| spec.approval(ToolApproval::Required));
    let child = agent([ask(&["work"]), say("child")]).tool(work).approvals(DURABLY).build();
    let plain = gated("plain", &busy, &Arc::default()).with(|spec| spec.overlap(Concurrency::Parallel));
    let parent = with(agent([hire(&["ask", "+plain"]), say("ok")]), "ask", &child).tool(plain).build();
    let handle = parent.run("go").detach();
    let question = asked(&handle).await;
    let (one, two) = tokio::join!(
        handle.decide(&question.id, Decision::Approve),
        handle.decide(&question.id, Decision::Deny { message: "no".into() }),
    );
    let by = "the holder of the handle".to_owned();
    let first = DecideError::Decided { by, decision: Box::new(Decision::Approve) };
    assert_eq!((one, two), (Ok(()), Err(first)));
    busy.add_permits(1);
    assert_eq!((handle.done().await.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1));
}

/// S8.3, S9.2: suspended is a safe point for every set: a stop takes the child's question back, also one that reaches
/// only the root; a resume asks again under a new id.
#[tokio::test(start_paused = true)]
async fn a_stop_takes_a_child_s_question_back() {
    for request in [
        StopRequest::now(),
        StopRequest::at(SafePoints::AFTER_MODEL),
        StopRequest::at(SafePoints::ANY),
        StopRequest::at(SafePoints::AFTER_ALL_CALLS).with_reach(Reach::Tree),
    ] {
        let ran = Arc::new(AtomicU32::new(0));
        let busy = Arc::new(Semaphore::new(0));
        let gate = Arc::new(Semaphore::new(100));
        let work = gated("work", &gate, &ran).with(|spec| spec.approval(ToolApproval::Required));
        let child = agent([ask(&["work"]), say("child")]).tool(work).approvals(DURABLY).build();
        // A plain call keeps the parent from suspending before the stop.
        let plain = gated("plain", &busy, &Arc::default()).with(|spec| spec.overlap(Concurrency::Parallel));
        let parent = with(agent([hire(&["ask", "+plain"]), say("ok")]), "ask", &child).tool(plain).build();
        let handle = parent.run("go").detach();
        let first = asked(&handle).await;
        handle.stop(request.clone());
        busy.add_permits(1);
        let stopped = handle.done().await;
        assert_eq!(
            (stopped.ending(), row(&stopped, 0).status),
            (Ending::Stopped, CallStatus::Stopped),
            "{request:?}"
        );
        assert_eq!(handle.decide(&first.id, Decision::Approve).await, Err(DecideError::Withdrawn));
        busy.add_permits(1);
        let waiting = parent.resume(&stopped).await;
        let second = question(&waiting);
        assert_ne!(first.id, second.id, "{request:?}");
        let outcome = parent.resume_with(&waiting, vec![(second.id, Decision::Approve)]).await;
        assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1), "{request:?}");
    }
}

/// S8.3: a stop that meets a waiting tree before any of it has resumed takes the question back, too: a resume asks again under a new id.
#[tokio::test(start_paused = true)]
async fn a_stop_before_anything_has_resumed_takes_a_child_s_question_back() {
    let ran = Arc::new(AtomicU32::new(0));
    let root = levels(&ran);
    let waiting = root.run("go").await;
    let resumed = root.resume(&waiting).detach();
    resumed.stop(StopRequest::now());
    let stopped = resumed.done().await;
    assert_eq!(stopped.ending(), Ending::Stopped);
    let again = root.resume(&stopped).await;
    let second = question(&again);
    assert_ne!(question(&waiting).id, second.id);
    let outcome = root.resume_with(&again, vec![(second.id, Decision::Approve)]).await;
    assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("root"), 1));
}

/// S8.5: a call that waits behind a child's question goes ahead; the question is answered while it works.
#[tokio::test(start_paused = true)]
async fn a_queued_call_does_not_wait_for_a_child_s_question() {
    let (busy, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let gate = Arc::new(Semaphore::new(100));
    let work = gated("work", &gate, &ran).with(|spec| spec.approval(ToolApproval::Required));
    let child = agent([ask(&["work"]), say("child")]).tool(work).approvals(DURABLY).build();
    let alone = gated("alone", &busy, &Arc::default());
    let parent = with(agent([hire(&["ask", "+alone"]), say("ok")]), "ask", &child).tool(alone).build();
    let handle = parent.run("go").detach();
    let question = asked(&handle).await;
    let mut events = handle.events();
    loop {
        let event = events.next().await.expect("the queued call starts");
        if matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::CallStarted { name, .. } if name == "alone"))
        {
            break;
        }
    }
    let (decided, ()) = tokio::join!(handle.decide(&question.id, Decision::Approve), async {
        busy.add_permits(1);
    });
    assert_eq!(decided, Ok(()));
    assert_eq!((handle.done().await.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1));
}
