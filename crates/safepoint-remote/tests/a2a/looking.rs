//! Streams that say nothing, or end without a word, and servers that do not show a task: whatever they do, what became of the
//! work is found out, or it is said at once why not.

use std::time::{Duration, Instant};

use safepoint::{
    Agent, Outcome, RunHandle,
    receipt::{CallStatus, QuietReport},
};
use safepoint_remote::a2a::{A2a, Bounds};
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, A2aWire, Looks, Streams, Tells, WorkStep},
    invariants::{ClosedScenario, Invariants},
    wait::{self, InTime as _},
};

use super::world::{bounds, peer, row, server};

/// A peer whose silences are short; a stream that is given up is given up by these.
fn hasty(server: &A2aServer) -> A2a {
    let (quiet, deaf) = (Duration::from_millis(20), Duration::from_millis(60));
    peer(server).bounds(Bounds { quiet, deaf, ..bounds() }).unwrap()
}

/// Its end, which no silence puts off.
async fn closed(handle: &RunHandle) -> ClosedScenario {
    Invariants::of(handle).check().in_time("its end").await.unwrap()
}

fn run(server: &A2aServer) -> RunHandle {
    Agent::remote(hasty(server)).build().run("do it").detach()
}

/// S10.43: after a cut the subscription is a stream of nothing, or one on which nothing comes, or is not answered: the task
/// says what became of the work.
#[tokio::test]
async fn a_subscription_that_brings_nothing_hides_no_end() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        for streams in [Streams::EmptyAfter(2), Streams::DeafAfter(2), Streams::UnansweredAfter(2)] {
            let server = server(A2aManners::honest(wire).streams(streams));
            let handle = run(&server);
            server.came(1).await;
            wait::so("it is looked at", || server.asked("GetTask") >= 6).await;
            server.let_on();
            let closed = closed(&handle).await;
            assert_eq!(closed.outcome.answer(), Some("half done"), "{wire:?} {streams:?}");
            assert!(server.asked("SubscribeToTask") <= 2, "{wire:?} {streams:?}: it is given up");
        }
    }
}

/// S10.43: a stream that stays open and says nothing more of a task that has ended.
#[tokio::test]
async fn a_stream_that_falls_silent_hides_no_end() {
    for wire in [A2aWire::V1, A2aWire::V03] {
        let server = server(A2aManners::honest(wire).streams(Streams::HushAfter(3)));
        let handle = run(&server);
        server.came(1).await;
        server.let_on();
        let closed = closed(&handle).await;
        assert_eq!(closed.outcome.answer(), Some("half done"), "{wire:?}");
    }
}

/// S10.40: a server that does not show the task, and will not: it is asked once, and told in its words; the work may go on.
#[tokio::test]
async fn what_cannot_pass_is_told_at_once() {
    let cases = [
        (Looks::Status(400), "400"),
        (Looks::Status(404), "404"),
        (Looks::Status(405), "405"),
        (Looks::Status(406), "406"),
        (Looks::NoMethod, "Method not found (-32601)"),
    ];
    for (looks, words) in cases {
        let server = server(A2aManners::honest(A2aWire::V03).tells(Tells::Looks).looks(looks));
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let outcome = handle.done().await;
        let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("it is unknown what became of the work"), "{error}");
        assert_eq!(row(outcome.receipt()).status, CallStatus::Failed);
        assert!(matches!(handle.quiet().await, QuietReport::NotQuiet(_)));
        assert_eq!((server.asked("GetTask"), server.running()), (1, 1), "{looks:?}");
    }
}

/// S10.43: a server that does not show the task, and streams it: its stream is heard to its end.
#[tokio::test]
async fn a_stream_is_heard_where_the_task_is_not_shown() {
    for looks in [Looks::NoMethod, Looks::Status(500)] {
        let server = server(A2aManners::honest(A2aWire::V03).looks(looks));
        let handle = run(&server);
        server.came(1).await;
        wait::so("it is looked at", || server.asked("GetTask") > 0).await;
        server.let_on();
        let closed = closed(&handle).await;
        assert_eq!(closed.outcome.answer(), Some("half done"), "{looks:?}");
    }
}

/// S10.42: an end that a stream has told is an end: looks that show the task as still at work do not take it back; they are
/// made for the rest of the answer, and only so often.
#[tokio::test]
async fn a_look_does_not_take_back_an_end() {
    const MOST: usize = 5;
    const NEVER_IN_STEP: usize = usize::MAX;
    let plan = ["one ", "two ", "three"].map(|text| WorkStep::Say(text.into()));
    for wire in [A2aWire::V1, A2aWire::V03] {
        for (behind, answer) in [(NEVER_IN_STEP, "one two two threethree"), (3, "one two three")] {
            let manners = A2aManners::honest(wire).plan(plan.clone()).streams(Streams::TellTwice);
            let server = server(manners.looks(Looks::Behind(behind)));
            let handle = Agent::remote(peer(&server)).build().run("count").detach();
            let closed = closed(&handle).await;
            let looks = if behind == NEVER_IN_STEP { MOST } else { behind + 1 };
            assert_eq!((closed.outcome.answer(), server.asked("GetTask")), (Some(answer), looks), "{wire:?}");
        }
    }
}

/// S10.42: the same of a stream that was cut and taken up again: what is known of the answer is told, and that a part of it may
/// be missing.
#[tokio::test]
async fn an_end_is_an_end_on_a_stream_that_was_taken_up_again() {
    let manners = A2aManners::honest(A2aWire::V1).streams(Streams::CutAfter(2));
    let server = server(manners.looks(Looks::Behind(usize::MAX)));
    let handle = run(&server);
    server.came(1).await;
    wait::so("its stream is taken up", || server.asked("SubscribeToTask") > 0).await;
    server.let_on();
    let closed = closed(&handle).await;
    let answer = closed.outcome.answer().unwrap();
    assert!(answer.starts_with("half"), "{answer}");
    assert!(answer.contains("a part of this answer may be missing"), "{answer}");
}

/// S10.43: looks that fail beside a stream put off only one another: once one of them shows the task, the next comes as soon
/// as if none had failed.
#[tokio::test]
async fn looks_that_failed_do_not_put_off_those_that_do_not() {
    const FAIL: usize = 5;
    let server = server(A2aManners::honest(A2aWire::V03).streams(Streams::HushAfter(3)).busy(FAIL));
    let bounds = Bounds { quiet: Duration::from_millis(40), ..bounds() };
    let handle = Agent::remote(peer(&server).bounds(bounds).unwrap()).build().run("do it").detach();
    wait::so("looks fail", || server.asked("GetTask") >= FAIL).await;
    let failed = Instant::now();
    wait::so("a look shows it", || server.asked("GetTask") > FAIL).await;
    let (pause, shown) = (failed.elapsed(), Instant::now());
    server.let_on();
    let closed = closed(&handle).await;
    assert_eq!(closed.outcome.answer(), Some("half done"));
    assert!(shown.elapsed() < pause, "after {pause:?} its end is noticed in {:?}", shown.elapsed());
}
