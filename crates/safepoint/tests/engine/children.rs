//! Child runs: what a stop does to a tree of them, and what a resume continues (S9).

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use safepoint::{
    Agent, AgentBuilder, Outcome, Reason, RunHandle, SafePoints, StopRequest,
    event::{EventKind, Fact},
    ids::{CallId, Path},
    message::ToolCall,
    model::{Delta, Finish},
    receipt::{CallReport, CallStatus, Ending, SideEffect, StopSource},
    secs,
    stop::Reach,
    tool::{EffectClass, FnTool},
};
use tokio::sync::Semaphore;

use crate::world::{Reply, agent, ask, does, say};

/// A message that asks for these child runs, each with a task; for plain tools where the name has a `+`.
pub(crate) fn hire(names: &[&str]) -> Reply {
    let calls = names.iter().enumerate().map(|(n, name)| {
        let args = if name.starts_with('+') { "{}" } else { r#"{"task":"do it"}"# };
        let id = CallId::from(format!("h{n}"));
        Ok(Delta::CallReady(ToolCall { id, name: name.trim_start_matches('+').into(), args: args.into() }))
    });
    [Ok(Delta::Sent), Ok(Delta::Opened)]
        .into_iter()
        .chain(calls)
        .chain([Ok(Delta::Ended(Finish::Natural))])
        .collect()
}

pub(crate) fn with(parent: AgentBuilder, name: &str, child: &Agent) -> AgentBuilder {
    parent.child(child.as_subagent(name, "works"))
}

/// A tool that counts its runs and waits for its gate.
pub(crate) fn gated(name: &str, gate: &Arc<Semaphore>, ran: &Arc<AtomicU32>) -> FnTool {
    let (gate, ran) = (Arc::clone(gate), Arc::clone(ran));
    does(name, move |_| {
        let (gate, ran) = (Arc::clone(&gate), Arc::clone(&ran));
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            gate.acquire().await?.forget();
            Ok("done".into())
        }
    })
    .with(|spec| spec.effect(EffectClass::Idempotent))
}

pub(crate) fn at(calls: &[&str]) -> Path {
    calls.iter().fold(Path::default(), |path, call| path.of(&CallId::from(*call)))
}

/// Waits until a call has started in the run at `path`.
pub(crate) async fn started_at(handle: &RunHandle, path: &Path) {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Child { path: of, event } = &event.kind
            && of == path
            && matches!(&**event, EventKind::Fact(fact) if matches!(**fact, Fact::CallStarted { .. }))
        {
            return;
        }
    }
    panic!("the run ended first");
}

pub(crate) fn row(outcome: &Outcome, n: usize) -> CallReport {
    outcome.receipt().calls[n].clone()
}

/// S9.1: a child's answer is its call's result; its events stand in the parent's stream under its path, its receipt in
/// the parent's, its use in the totals.
#[tokio::test(start_paused = true)]
async fn a_child_run_is_the_work_of_its_call() {
    let child = agent([say("forty-two")]).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let handle = parent.run("go").detach();
    let outcome = handle.done().await;
    let call = row(&outcome, 0);
    assert_eq!(
        (outcome.answer(), call.status, call.effect),
        (Some("ok"), CallStatus::Completed, SideEffect::None)
    );
    assert!(format!("{:?}", outcome.history()).contains("forty-two"));
    let nested = call.child.unwrap();
    let receipt = nested.receipt.unwrap();
    assert_eq!((nested.path, receipt.ending, &receipt.path), (at(&["h0"]), Ending::Done, &at(&["h0"])));
    let mut total = outcome.usage().clone();
    total.add(&receipt.usage);
    assert_eq!(outcome.receipt().usage_total, total);
    let (mut events, mut settled) = (handle.events(), 0);
    while let Some(event) = events.next().await {
        if let EventKind::Child { path, event } = event.kind {
            assert_eq!(path, at(&["h0"]));
            settled += usize::from(
                matches!(&*event, EventKind::Fact(fact) if matches!(**fact, Fact::Settled { .. })),
            );
        }
    }
    assert_eq!(settled, 1);
    let own = handle.child(&at(&["h0"])).unwrap();
    assert_eq!(
        (own.done().await.answer(), own.id(), handle.children().len()),
        (Some("forty-two"), &receipt.run, 1)
    );
    let quiet = handle.quiet().await;
    assert!(quiet.receipt().calls[0].child.as_ref().unwrap().receipt.as_ref().unwrap().quiet_at.is_some());
    assert!(quiet.receipt().to_string().contains("child  root/h0  Done"), "{}", quiet.receipt());
}

/// S9.2: a safe-point stop of the root leaves its child alone, and waits for the call.
#[tokio::test(start_paused = true)]
async fn a_stop_is_root_only_by_default() {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let child = agent([ask(&["work"]), say("all of it")]).tool(gated("work", &gate, &ran)).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.stop(StopRequest::at(SafePoints::ANY));
    gate.add_permits(1);
    let outcome = handle.done().await;
    let call = row(&outcome, 0);
    assert_eq!((outcome.ending(), call.status), (Ending::Stopped, CallStatus::Completed));
    assert_eq!(call.child.unwrap().receipt.unwrap().ending, Ending::Done);
    assert_eq!(parent.resume(&outcome).await.answer(), Some("ok"));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// S9.2: `Now` on the parent ends its attached child now, in either reach.
#[tokio::test(start_paused = true)]
async fn now_ends_an_attached_child_in_either_reach() {
    for reach in [Reach::Root, Reach::Tree] {
        let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        let child = agent([ask(&["work"]), say("all of it")]).tool(gated("work", &gate, &ran)).build();
        let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
        let handle = parent.run("go").detach();
        started_at(&handle, &at(&["h0"])).await;
        handle.stop(StopRequest::now().with_reach(reach).with_reason(Reason::user("enough")));
        let outcome = handle.done().await;
        let call = row(&outcome, 0);
        assert_eq!((outcome.ending(), call.status), (Ending::Stopped, CallStatus::Stopped));
        assert_eq!((call.stopped_by, call.effect), (Some(StopSource::Run), SideEffect::Unknown));
        let nested = call.child.unwrap().receipt.unwrap();
        assert_eq!((nested.ending, &*nested.stop.as_ref().unwrap().reason.text), (Ending::Stopped, "enough"));
    }
}

/// S9.3, S5.3: a stop of the tree ends the child at its own safe point; the parent closes; a resume continues
/// inside the child, exactly where it was, and calls each model once.
#[tokio::test(start_paused = true)]
async fn three_levels_resume_where_they_were() {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let leaf = agent([ask(&["work"]), say("leaf")]).tool(gated("work", &gate, &ran)).build();
    let middle = with(agent([hire(&["leaf"]), say("middle")]), "leaf", &leaf).build();
    let root = with(agent([hire(&["middle"]), say("root")]), "middle", &middle).build();
    let handle = root.run("go").detach();
    started_at(&handle, &at(&["h0", "h0"])).await;
    handle.stop(StopRequest::at(SafePoints::ANY).with_reach(Reach::Tree));
    gate.add_permits(1);
    let stopped = handle.done().await;
    let call = row(&stopped, 0);
    assert_eq!((stopped.ending(), call.stopped_by), (Ending::Stopped, Some(StopSource::Run)));
    let resumed = root.resume(&stopped).detach();
    let outcome = resumed.done().await;
    // Each script has exactly as many replies as there may be model calls: one more would hang.
    assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("root"), 1));
    let leaf = resumed.child(&at(&["h0", "h0"])).unwrap().done().await;
    assert_eq!((leaf.answer(), leaf.receipt().attempt), (Some("leaf"), 2));
    let ids = [&stopped, &outcome].map(|outcome| row(outcome, 0).child.unwrap().receipt.unwrap().run.clone());
    assert_eq!(ids[0], ids[1]);
}

/// S9.4: a child stopped alone, through its own handle, ends its call as stopped, and the parent continues.
#[tokio::test(start_paused = true)]
async fn a_child_is_stopped_alone() {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let child = agent([ask(&["work"])]).tool(gated("work", &gate, &ran)).build();
    let parent = with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build();
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.child(&at(&["h0"])).unwrap().stop(StopRequest::graceful(secs(1)));
    let outcome = handle.done().await;
    let call = row(&outcome, 0);
    assert_eq!((outcome.answer(), call.status), (Some("ok"), CallStatus::Stopped));
    assert_eq!((call.stopped_by, outcome.receipt().stop.is_none()), (Some(StopSource::Call), true));
}
