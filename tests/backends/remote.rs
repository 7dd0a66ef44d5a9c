//! Remote agents: their work is in a call, and the receipt says what they confirmed, no more.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Outcome, Receipt, RunHandle, StopRequest,
    event::EventKind,
    raw::remote::{AfterWord, DEFAULT_LISTEN, DEFAULT_STOP_WITHIN},
    receipt::{CallReport, CallStatus, QuietReport, RemoteStopState, SideEffect, StopSupport},
    remote::RemoteTool,
    secs,
};
use safepoint_testkit::{
    invariants::Invariants,
    peer::{OnPeerStop, Peer},
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use serde_json::json;
use tokio::time::Instant;

fn worker(on_stop: OnPeerStop) -> Peer {
    Peer::new("coder").says("I am at it. ").waits().answers("It is fixed.").on_stop(on_stop)
}

/// A run over the peer whose work has begun.
async fn running(peer: &Peer) -> RunHandle {
    let handle = Agent::remote(peer.clone()).build().run("fix it").detach();
    peer.gate().came(1).await;
    handle
}

fn row(receipt: &Receipt) -> &CallReport {
    &receipt.calls[0]
}

async fn stopped(on_stop: OnPeerStop, declared: StopSupport) -> (Peer, RunHandle, Arc<Receipt>) {
    let peer = worker(on_stop).declared(declared);
    let handle = running(&peer).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
    (peer, handle, Arc::clone(outcome.receipt()))
}

/// S10.1: a message is one call, and its answer is the run's; the next one is of the same conversation.
#[tokio::test]
async fn an_agent_over_a_remote_answers_with_its_answer() {
    let peer = Peer::new("coder").says("a").answers("It is fixed.");
    let agent = Agent::remote(peer.clone()).build();
    let first = agent.run("fix it").await;
    assert_eq!(first.answer(), Some("It is fixed."));
    let second = agent.run_on(first.history().clone(), "and now?").await;
    assert_eq!(second.answer(), Some("It is fixed."));
    let briefs = peer.briefs();
    assert_eq!((briefs[0].text.as_str(), briefs[1].text.as_str()), ("fix it", "and now?"));
    assert_eq!(briefs[0].conversation, briefs[1].conversation, "one conversation");
    assert_ne!(briefs[0].key, briefs[1].key, "two pieces of work");
}

async fn texts(handle: &RunHandle) -> Vec<String> {
    let mut events = handle.events();
    let mut texts = Vec::new();
    while let Some(event) = events.next().await {
        if let EventKind::Text(text) = event.kind {
            texts.push(text.to_string());
        }
    }
    texts
}

/// S10.1, S11.1: the peer's text is the run's text as it comes, and each piece is shown once. A second answer
/// starts a new line.
#[tokio::test]
async fn what_a_remote_says_is_shown_as_it_comes() {
    let streaming =
        Peer::new("coder").says("one ").says("two ").waits().says("three").answers("one two three");
    let handle = Agent::remote(streaming.clone()).build().run("count").detach();
    let mut events = handle.events();
    let mut seen = String::new();
    while seen != "one two " {
        let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await.unwrap().unwrap();
        if let EventKind::Text(text) = event.kind {
            seen.push_str(&text);
        }
    }
    assert!(!handle.is_done(), "the peer still works");
    streaming.gate().open_for_all();
    assert_eq!(handle.done().await.answer(), Some("one two three"));
    assert_eq!(texts(&handle).await, ["one ", "two ", "three"]);
    let other = Peer::new("coder").says("I am at it. ").answers("It is fixed.");
    let handle = Agent::remote(other).build().run("fix it").detach();
    assert_eq!(handle.done().await.answer(), Some("It is fixed."));
    assert_eq!(texts(&handle).await, ["I am at it. ", "\nIt is fixed."]);
    let longer = Peer::new("coder").says("It is ").answers("It is fixed.");
    let handle = Agent::remote(longer).build().run("fix it").detach();
    drop(handle.done().await);
    assert_eq!(texts(&handle).await, ["It is ", "fixed."]);
}

/// S10.3, S3.7, S4.1: a peer that ends its work and says so is stopped, and the run is quiet.
#[tokio::test]
async fn a_confirmed_stop_is_stopped() {
    for on_stop in [OnPeerStop::Ends, OnPeerStop::EndsLater] {
        let (peer, handle, receipt) = stopped(on_stop, StopSupport::Hard).await;
        assert_eq!((row(&receipt).status, row(&receipt).effect), (CallStatus::Stopped, SideEffect::Unknown));
        let remote = row(&receipt).remote.as_ref().unwrap();
        assert_eq!((remote.stop, remote.task.as_deref()), (Some(RemoteStopState::Confirmed), Some("task-1")));
        assert_eq!((peer.stops(), peer.in_flight()), (1, 0));
        assert!(receipt.to_string().contains("stop confirmed, work ended"), "{receipt}");
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert!(closed.receipt.quiet_at.is_some());
    }
}

/// S10.3, S3.6 / T3, google/adk-python#4127; Molecule-AI/molecule-core#173: a cancel that does nothing is
/// reported as that: the work is left running, in the peer's words, and the run is never called quiet.
#[tokio::test(start_paused = true)]
async fn every_other_word_leaves_the_work_running() {
    let cases = [
        (
            OnPeerStop::TakesNote,
            RemoteStopState::Acknowledged,
            "noted",
            "stop acknowledged, may still be running",
        ),
        (
            OnPeerStop::CannotStop,
            RemoteStopState::Refused,
            "cancel is not implemented",
            "stop refused, still running",
        ),
        (
            OnPeerStop::Refuses,
            RemoteStopState::Refused,
            "this agent cannot be canceled",
            "stop refused, still running",
        ),
        (OnPeerStop::Silent, RemoteStopState::Requested, "", "no answer within 2s"),
        (OnPeerStop::Unreachable, RemoteStopState::Unreachable, "connection refused", "stop not delivered"),
    ];
    for (on_stop, stop, word, shown) in cases {
        let (peer, handle, receipt) = stopped(on_stop, StopSupport::Hard).await;
        let remote = row(&receipt).remote.as_ref().unwrap();
        assert_eq!(row(&receipt).status, CallStatus::LeftRunning, "{on_stop:?}");
        assert_eq!((remote.stop, remote.word.as_str()), (Some(stop), word), "{on_stop:?}");
        assert!(receipt.to_string().contains(shown), "{receipt}");
        let QuietReport::NotQuiet(last) = handle.quiet().await else {
            panic!("{on_stop:?} was called quiet")
        };
        assert_eq!(last.survivors, ["remote work task-1 at script:coder"], "{on_stop:?}");
        assert_eq!(peer.in_flight(), 1);
        peer.gate().open_for_all();
        peer.idle().await;
    }
}

/// S10.3 / T3, microsoft/agent-framework#7511: a peer that only says that it was canceled, and is declared as
/// what it is, is not believed.
#[tokio::test]
async fn a_word_that_is_known_to_be_empty_is_not_believed() {
    let (peer, handle, receipt) = stopped(OnPeerStop::OnlySays, StopSupport::CallerSide).await;
    assert_eq!(row(&receipt).status, CallStatus::LeftRunning);
    assert_eq!(row(&receipt).remote.as_ref().unwrap().stop, Some(RemoteStopState::Confirmed));
    assert!(receipt.to_string().contains("but its stops are caller-side: may still be running"), "{receipt}");
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    peer.gate().open_for_all();
}

/// S10.3: the peer has its local deadline, and the run not one tick more.
#[tokio::test(start_paused = true)]
async fn a_silent_peer_delays_the_run_by_its_deadline_and_no_more() {
    let peer = worker(OnPeerStop::Silent).with(|spec| spec.stop_within(Duration::from_millis(700)));
    let handle = running(&peer).await;
    let asked = Instant::now();
    handle.stop(StopRequest::now());
    drop(handle.done().await);
    assert_eq!(asked.elapsed(), Duration::from_millis(700));
}

/// S10.45: a peer that took note, and whose stops are not hard, holds the caller no longer than an answer
/// that was on its way takes; our end listens on for the audit.
#[tokio::test(start_paused = true)]
async fn a_peer_that_took_note_holds_the_caller_no_longer() {
    let peer = worker(OnPeerStop::TakesNote).declared(StopSupport::CallerSide);
    let handle = running(&peer).await;
    let asked = Instant::now();
    handle.stop(StopRequest::now());
    drop(handle.done().await);
    assert!(asked.elapsed() <= Duration::from_millis(300), "{:?}", asked.elapsed());
    let settled = Instant::now();
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    assert_eq!(settled.elapsed(), DEFAULT_LISTEN);
    peer.gate().open_for_all();
}

/// S10.45: a program that ends with the run waits once for a silent peer, for the peer's own time, and
/// listens no longer. A peer that the stop could not reach gets no more than that time either.
#[tokio::test(start_paused = true)]
async fn a_peer_that_ends_with_the_run_waits_once() {
    for on_stop in [OnPeerStop::Silent, OnPeerStop::Unreachable] {
        let peer = worker(on_stop).with(|spec| spec.after_word(AfterWord::Leaves));
        let handle = running(&peer).await;
        let asked = Instant::now();
        handle.stop(StopRequest::now());
        assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
        assert_eq!(asked.elapsed(), DEFAULT_STOP_WITHIN, "{on_stop:?}");
        peer.gate().open_for_all();
    }
}

/// S10.45: what a peer had said of its answer when it was stopped is kept: in the outcome, and in the
/// receipt.
#[tokio::test(start_paused = true)]
async fn what_a_peer_had_said_is_kept() {
    let peer = worker(OnPeerStop::Ends);
    let handle = running(&peer).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(outcome.partial_text(), "I am at it. ");
    let remote = row(outcome.receipt()).remote.as_ref().unwrap();
    assert_eq!((remote.said.as_str(), remote.said_bytes), ("I am at it. ", 12));
    let shown = "partial answer kept, 12 bytes: \"I am at it. \"";
    assert!(outcome.receipt().to_string().contains(shown), "{}", outcome.receipt());
}

/// S10.3, S2.7: no clean-up time at all is no reason to leave a peer untold, or to say that it was stopped.
#[tokio::test(start_paused = true)]
async fn without_any_time_the_peer_is_asked_and_nothing_is_claimed() {
    let peer = worker(OnPeerStop::Silent);
    let handle = running(&peer).await;
    handle.stop(StopRequest::now().with_cleanup_cap(Duration::ZERO));
    let outcome = handle.done().await;
    assert_eq!(row(outcome.receipt()).status, CallStatus::LeftRunning);
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    assert_eq!(peer.stops(), 1);
    peer.gate().open_for_all();
}

/// S4.5: work that the peer had finished when the stop reached it is kept.
#[tokio::test(start_paused = true)]
async fn what_was_finished_when_the_stop_came_is_kept() {
    let peer = worker(OnPeerStop::TakesNote);
    let handle = running(&peer).await;
    handle.stop(StopRequest::now());
    peer.gate().open_for_all();
    let outcome = handle.done().await;
    assert_eq!(row(outcome.receipt()).status, CallStatus::Completed);
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
}

/// S2.1, S10.3, S10.64 / T2: work that comes to its end in the grace of a stop is kept; what it came to is
/// shown, and is the answer when the run is taken up again, without another request.
#[tokio::test]
async fn what_a_peer_ended_with_before_a_safe_point_is_shown() {
    let peer = worker(OnPeerStop::TakesNote);
    let agent = Agent::remote(peer.clone()).build();
    let handle = agent.run("fix it").detach();
    peer.gate().came(1).await;
    handle.stop(StopRequest::graceful(secs(30)));
    peer.gate().open_for_all();
    let outcome = handle.done().await;
    assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
    assert_eq!(outcome.partial_text(), "It is fixed.");
    assert_eq!(agent.resume(&outcome).await.answer(), Some("It is fixed."));
    assert_eq!(peer.begun(), 1);
}

/// S3.5, S10.3: an end that comes after the peer's time is late: audited, named in the last receipt, and
/// without effect.
#[tokio::test(start_paused = true)]
async fn a_late_end_is_audited_and_the_run_is_then_quiet() {
    let peer = worker(OnPeerStop::TakesNote);
    let handle = running(&peer).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(row(outcome.receipt()).status, CallStatus::LeftRunning);
    peer.gate().open_for_all();
    let QuietReport::Quiet(last) = handle.quiet().await else { panic!("it has ended") };
    assert_eq!(row(&last).status, CallStatus::LeftRunning, "as it was settled");
    assert!(last.late[0].contains("was finished by script:coder"), "{:?}", last.late);
}

/// S10.3, S3.6: a line that broke for good leaves work in an unknown state.
#[tokio::test]
async fn a_broken_line_is_a_failure_and_not_quiet() {
    let peer = Peer::new("coder").says("a").breaks("connection reset");
    let handle = Agent::remote(peer.clone()).build().run("fix it").detach();
    let outcome = handle.done().await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("connection reset"), "{error}");
    assert_eq!(
        (row(outcome.receipt()).status, row(outcome.receipt()).effect),
        (CallStatus::Failed, SideEffect::Unknown)
    );
    assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
    peer.gate().open_for_all();
}

/// S10.1, S9.2, S2.10: as a tool of a local agent it is stopped with the run, or alone.
#[tokio::test]
async fn a_remote_agent_is_a_tool_of_a_local_one() {
    let script =
        Script::of([Reply::call("coder", json!({"task": "fix it"})), Reply::text("It was stopped.")]);
    let peer = worker(OnPeerStop::Ends);
    let model = ScriptedModel::new(script);
    let handle = Agent::builder(model).tool(RemoteTool::new(peer.clone())).build().run("fix it").detach();
    peer.gate().came(1).await;
    let call = handle.events().now_call();
    assert!(handle.stop_call(&call, StopRequest::now()).is_some());
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!(closed.outcome.answer(), Some("It was stopped."));
    assert_eq!(row(&closed.receipt).status, CallStatus::Stopped);
}

trait NowCall {
    fn now_call(self) -> safepoint::ids::CallId;
}

impl NowCall for safepoint::event::Events {
    fn now_call(mut self) -> safepoint::ids::CallId {
        use safepoint::event::{EventKind, Fact};
        std::iter::from_fn(|| self.now())
            .find_map(|event| match event.kind {
                EventKind::Fact(fact) => match &*fact {
                    Fact::CallStarted { call_id, .. } => Some(call_id.clone()),
                    _ => None,
                },
                _ => None,
            })
            .unwrap()
    }
}
