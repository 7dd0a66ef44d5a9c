//! Runs in the background: spared, named, stopped with the tree, owned by the root's family.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use safepoint::{
    Agent, RunHandle, StopRequest,
    event::EventKind,
    raw::within,
    receipt::{CallKind, CallStatus, Ending, QuietReport},
    stop::{Reach, Scope},
};
use tokio::sync::Semaphore;

use crate::children::{at, gated, hire, row, started_at, with};
use crate::world::{agent, ask, call_started, does, say, until};

fn family(gate: &Arc<Semaphore>, ran: &Arc<AtomicU32>) -> Agent {
    let child = agent([ask(&["work"]), say("found")]).tool(gated("work", gate, ran)).build();
    agent([hire(&["look"])]).child(child.as_subagent("look", "looks").background()).build()
}

async fn begun() -> (RunHandle, Arc<Semaphore>) {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let handle = family(&gate, &ran).run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    (handle, gate)
}

/// S9.1, S9.2: with `Root` a background child is spared and named; it continues, and can be stopped by its
/// own handle. anthropics/claude-code#76807, anthropics/claude-code#71294: a stop kills all background
/// agents.
#[tokio::test(start_paused = true)]
async fn a_background_child_is_spared_and_named() {
    let (handle, gate) = begun().await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let call = row(&outcome, 0);
    let nested = call.child.unwrap();
    assert_eq!((outcome.ending(), call.status), (Ending::Stopped, CallStatus::Completed));
    assert_eq!((nested.work, nested.receipt.is_none()), (CallKind::Background, true));
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::NotQuiet(_)));
    let survivors = &quiet.receipt().survivors;
    assert!(survivors.iter().any(|what| what.contains("background run look at root/h0")), "{survivors:?}");
    assert!(quiet.receipt().to_string().contains("background  root/h0  still running"));
    let own = handle.child(&at(&["h0"])).unwrap();
    gate.add_permits(1);
    assert_eq!(own.done().await.answer(), Some("found"));
}

/// S9.2: with `Tree` a background child is stopped too, and all is quiet.
#[tokio::test(start_paused = true)]
async fn a_background_child_is_stopped_with_the_tree() {
    let (handle, _gate) = begun().await;
    handle.stop(StopRequest::now().with_reach(Reach::Tree));
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    let nested = quiet.receipt().calls[0].child.clone().unwrap();
    assert_eq!(nested.receipt.unwrap().ending, Ending::Stopped);
}

/// S9.1, S3.5: a background child that ends after the root has settled changes nothing of its outcome: its events go to
/// the audit, its account into the final receipt.
#[tokio::test(start_paused = true)]
async fn a_background_child_ends_after_its_parent() {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let child = agent([ask(&["work"]), say("found")]).tool(gated("work", &gate, &ran)).build();
    let parent = agent([hire(&["look"]), say("ok")]).child(child.as_subagent("look", "looks").background());
    let handle = parent.build().run("go").detach();
    let outcome = handle.done().await;
    call_started(&handle.child(&at(&["h0"])).unwrap()).await;
    assert_eq!(
        (outcome.answer(), outcome.receipt().usage_total.clone()),
        (Some("ok"), outcome.usage().clone())
    );
    assert!(format!("{:?}", outcome.history()).contains("started in the background as root/h0"));
    gate.add_permits(1);
    let quiet = handle.quiet().await;
    let receipt = quiet.receipt();
    assert!(receipt.quiet_at.is_some() && ran.load(Ordering::SeqCst) == 1);
    let nested = receipt.calls[0].child.clone().unwrap().receipt.unwrap();
    assert_eq!((nested.ending, receipt.usage_total.output > receipt.usage.output), (Ending::Done, true));
    let (mut audit, mut shown) = (handle.audit(), 0);
    while let Some(event) = audit.next().await {
        shown += usize::from(matches!(event.kind, EventKind::Child { .. }));
    }
    assert!(shown > 0);
}

/// S9.2: a background run below an attached child is spared by `Root`, though the child is not.
#[tokio::test(start_paused = true)]
async fn a_background_run_below_a_child_is_spared() {
    let work = does("work", |_| pending());
    let leaf = agent([ask(&["work"])]).tool(work).build();
    let middle = agent([hire(&["leaf"])]).child(leaf.as_subagent("leaf", "works").background()).build();
    let root = with(agent([hire(&["middle"])]), "middle", &middle).build();
    let handle = root.run("go").detach();
    started_at(&handle, &at(&["h0", "h0"])).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(row(&outcome, 0).status, CallStatus::Stopped);
    let leaf = handle.child(&at(&["h0", "h0"])).unwrap();
    assert!(!leaf.is_done());
    let survivors = handle.quiet().await.receipt().survivors.clone();
    assert!(survivors.iter().any(|what| what.contains("root/h0/h0")), "{survivors:?}");
    leaf.stop(StopRequest::now());
    assert_eq!(leaf.done().await.ending(), Ending::Stopped);
}

/// S9.1: runs of one family: its stop reaches each of them and their background runs, even after they have
/// settled; a background run delays the family's quiet, and not that of the run that began it.
#[tokio::test(start_paused = true)]
async fn a_family_owns_what_its_runs_began() {
    let (family, stop) = Scope::root();
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
    let child = agent([ask(&["work"])]).tool(gated("work", &gate, &ran)).build();
    let look = child.as_subagent("look", "looks").background();
    let first = within(agent([hire(&["look"]), say("ok")]).child(look).build().run("go"), &family).detach();
    let second = within(agent([]).build().run("go"), &family).detach();
    assert_eq!(first.done().await.answer(), Some("ok"));
    assert!(matches!(first.quiet().await, QuietReport::Quiet(_)), "the family waits for it");
    assert!(first.alive().is_empty(), "{:?}", first.alive());
    let own = first.child(&at(&["h0"])).unwrap();
    assert!(family.alive().iter().any(|what| what.contains("background run look")), "{:?}", family.alive());
    stop.stop(StopRequest::now().with_reach(Reach::Tree));
    for handle in [&own, &second] {
        assert_eq!(handle.done().await.ending(), Ending::Stopped);
    }
    stop.settle();
    stop.quiet().await;
}
