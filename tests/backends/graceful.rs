//! A stop that waits for a safe point, over a remote agent. The remote agent knows no safe points, so it gets
//! the stop at once, and the grace is its time to answer.

use std::time::Duration;

use safepoint::{
    Agent, Outcome, Receipt, RunHandle, SafePoints, StopRequest,
    receipt::{CallReport, CallStatus, Escalation, RemoteStopState, SideEffect},
    remote::RemoteTool,
    secs,
    stop::Reach,
};
use safepoint_testkit::{
    peer::{OnPeerStop, Peer},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

const OWN_TIME: Duration = Duration::from_millis(800);

fn worker(on_stop: OnPeerStop) -> Peer {
    let peer = Peer::new("coder").says("I am at it. ").waits().answers("It is fixed.").on_stop(on_stop);
    peer.with(|spec| spec.stop_within(OWN_TIME))
}

async fn running(peer: &Peer) -> RunHandle {
    let handle = Agent::remote(peer.clone()).build().run("fix it").detach();
    peer.gate().came(1).await;
    handle
}

fn row(receipt: &Receipt) -> &CallReport {
    &receipt.calls[0]
}

/// S10.64: the cancel goes out with the request, whichever safe points it names, and not when its grace is
/// over.
#[tokio::test(start_paused = true)]
async fn a_stop_at_a_safe_point_tells_a_peer_at_once() {
    for points in [SafePoints::ANY, SafePoints::AFTER_MODEL, SafePoints::AFTER_ALL_CALLS] {
        let peer = worker(OnPeerStop::Ends);
        let handle = running(&peer).await;
        let asked = Instant::now();
        handle.stop(StopRequest::at_within(points, secs(30)));
        let outcome = handle.done().await;
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        assert!(asked.elapsed() < OWN_TIME, "{:?}", asked.elapsed());
        let receipt = outcome.receipt();
        assert_eq!((row(receipt).status, row(receipt).effect), (CallStatus::Stopped, SideEffect::Unknown));
        assert_eq!(receipt.stop.as_ref().unwrap().escalated, Escalation::No, "{receipt}");
        assert_eq!((peer.stops(), peer.in_flight()), (1, 0));
    }
}

/// S10.64: a peer that says nothing has the grace, and no tick more; the row says how long that was.
#[tokio::test(start_paused = true)]
async fn the_grace_is_the_peers_time() {
    let peer = worker(OnPeerStop::Silent);
    let handle = running(&peer).await;
    let asked = Instant::now();
    handle.stop(StopRequest::graceful(secs(5)));
    let outcome = handle.done().await;
    assert_eq!(asked.elapsed(), Duration::from_secs(5));
    let remote = row(outcome.receipt()).remote.as_ref().unwrap();
    assert_eq!((remote.stop, remote.within_ms), (Some(RemoteStopState::Requested), Some(5_000)));
    assert_eq!(row(outcome.receipt()).status, CallStatus::LeftRunning);
    peer.gate().open_for_all();
}

/// S10.64: a grace that is shorter than the peer's own time takes nothing of that.
#[tokio::test(start_paused = true)]
async fn a_short_grace_leaves_the_peer_its_own_time() {
    let peer = worker(OnPeerStop::Silent);
    let handle = running(&peer).await;
    let asked = Instant::now();
    handle.stop(StopRequest::at_within(SafePoints::ANY, Duration::from_millis(100).try_into().unwrap()));
    drop(handle.done().await);
    assert_eq!(asked.elapsed(), OWN_TIME);
    peer.gate().open_for_all();
}

/// S10.64, S1.5: a harder request ends the wait, but for half of the peer's own time.
#[tokio::test(start_paused = true)]
async fn a_harder_stop_shortens_the_peers_time() {
    let peer = worker(OnPeerStop::Silent);
    let handle = running(&peer).await;
    let asked = Instant::now();
    handle.stop(StopRequest::graceful(secs(60)));
    sleep(Duration::from_secs(10)).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(asked.elapsed(), Duration::from_secs(10) + OWN_TIME / 2);
    assert_eq!(peer.stops(), 1, "it is asked once");
    assert_eq!(outcome.receipt().stop.as_ref().unwrap().escalated, Escalation::ByRequest);
    peer.gate().open_for_all();
}

/// S10.64, S4.5: work that a peer does not stop may come to its own end in the grace, and that is kept.
#[tokio::test(start_paused = true)]
async fn a_peer_that_refuses_has_the_grace_for_its_work() {
    let peer = worker(OnPeerStop::Refuses);
    let handle = running(&peer).await;
    handle.stop(StopRequest::graceful(secs(30)));
    sleep(Duration::from_secs(3)).await;
    assert!(!handle.is_done(), "its grace is not over");
    peer.gate().open_for_all();
    let outcome = handle.done().await;
    assert_eq!(row(outcome.receipt()).status, CallStatus::Completed);
    assert_eq!(outcome.partial_text(), "It is fixed.");
}

/// S9.2, S10.64: as a call of another agent it is like a child run: a stop of the root alone leaves it
/// running.
#[tokio::test(start_paused = true)]
async fn a_stop_of_the_root_leaves_the_peer_of_a_call_alone() {
    for (reach, stops) in [(Reach::Root, 0), (Reach::Tree, 1)] {
        let script = Script::of([Reply::call("coder", json!({"task": "fix it"})), Reply::text("Fixed.")]);
        let peer = worker(OnPeerStop::Ends);
        let agent = Agent::builder(ScriptedModel::new(script)).tool(RemoteTool::new(peer.clone())).build();
        let handle = agent.run("fix it").detach();
        peer.gate().came(1).await;
        handle.stop(StopRequest::at(SafePoints::ANY).with_reach(reach));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(peer.stops(), stops, "{reach:?}");
        peer.gate().open_for_all();
        let outcome = handle.done().await;
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        let expected = if stops == 0 { CallStatus::Completed } else { CallStatus::Stopped };
        assert_eq!(row(outcome.receipt()).status, expected);
    }
}
