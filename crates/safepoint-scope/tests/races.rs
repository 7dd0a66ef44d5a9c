//! What a scope promises when much happens at once, or late, or in the wrong order.

use std::{
    future::{pending, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use safepoint_scope::{
    Code, Effect, Link, Reach, Reason, SafePoints, Scope, StopAck, StopRequest, TaskEnd, secs,
};
use tokio::{
    sync::Barrier,
    time::{Instant, sleep, timeout},
};

struct Step;
impl Effect for Step {
    type Announcement = ();
}

/// Rounds of a race: enough for each order to occur on two processors.
const ROUNDS: usize = 500;
/// By when a wake that was not lost has come, on any machine.
const SOON: Duration = Duration::from_secs(20);
/// Longer than anything here lasts: a paused clock is there at once, where nothing else is due.
const LONG: Duration = Duration::from_secs(7200);

/// Its output on a paused clock, where an endless wait fails.
async fn at_last<F: Future>(what: F) -> F::Output {
    timeout(LONG, what).await.expect("it came to an end")
}

/// The same on a real clock.
async fn soon<F: Future>(what: F) -> F::Output {
    timeout(SOON, what).await.expect("it came to an end")
}

/// S1.8: scopes of their own share nothing, whether one is stopped before, while or after another works.
#[tokio::test]
async fn two_runs_share_nothing() {
    let (_before, stop_before) = Scope::root();
    assert_eq!(stop_before.stop(StopRequest::now()), StopAck::First);
    let (other, handle) = Scope::root();
    assert!(!other.is_stopping() && other.demand().is_none() && handle.stop_requested().is_none());
    stop_before.settle();
    assert_eq!(stop_before.stop(StopRequest::now()), StopAck::TooLate);
    assert!(other.pass::<Step>(SafePoints::ANY, &()).is_ok() && !handle.is_settled());
    assert_eq!(soon(other.run(async { 7 })).await.ok(), Some(7));
    assert_eq!(handle.stop(StopRequest::now()), StopAck::First);
}

/// S2.1: what is asked before the work starts holds: `Now` starts nothing, a safe point is armed.
#[tokio::test]
async fn a_stop_before_the_start_holds() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    assert_eq!(scope.run(async { 7 }).await.ok(), Some(7));
    assert!(scope.pass::<Step>(SafePoints::AFTER_MODEL, &()).is_err());
    handle.stop(StopRequest::now());
    let mut started = false;
    let work = scope.run(async { started = true }).await;
    assert!(work.is_err() && !started);
}

/// S2.11: what had been asked in time stays readable after the end; what comes later leaves no trace.
#[tokio::test]
async fn a_late_request_leaves_no_trace() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL).with_reason(Reason::user("enough")));
    handle.settle();
    assert_eq!(handle.stop(StopRequest::now().with_reason(Reason::new(Code::SHUTDOWN))), StopAck::TooLate);
    assert_eq!(handle.stop_requested().expect("asked in time").text(), "enough");
    assert_eq!(handle.requests().len(), 1);
    assert!(!scope.is_stopping());
}

/// S1.5, S2.8: over all orders of going to wait and being asked, no wake is lost, nor in a nested run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_missed_by_a_task_that_goes_to_wait() {
    for _ in 0..ROUNDS {
        let (run, handle) = Scope::root();
        let (call, of_call) = run.child();
        let (nested, _) = call.child_run(Link::Attached);
        let start = Arc::new(Barrier::new(4));
        let waiters = [run.clone(), call.clone(), nested].map(|scope| {
            let start = Arc::clone(&start);
            run.spawn("waits", async move {
                start.wait().await;
                scope.run(pending::<()>()).await.is_err()
            })
        });
        start.wait().await;
        // A notification for another waiter, in the midst of it.
        of_call.settle();
        handle.stop(StopRequest::now());
        for waiter in waiters {
            assert_eq!(soon(waiter).await, Ok(true));
        }
    }
}

/// S2.11: a request and the end race on two threads: exactly one wins, and both agree who.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_and_the_end_agree_who_won() {
    for _ in 0..ROUNDS {
        let (scope, handle) = Scope::root();
        let start = Arc::new(Barrier::new(2));
        let (ending, started) = (handle.clone(), Arc::clone(&start));
        let end = scope.spawn("ends", async move {
            started.wait().await;
            ending.settle()
        });
        start.wait().await;
        let asked = handle.stop(StopRequest::now());
        assert_eq!(soon(end).await, Ok(true));
        assert_eq!(asked == StopAck::First, scope.is_stopping());
        assert_eq!(asked == StopAck::TooLate, handle.requests().is_empty());
    }
}

/// S3.6: quiet comes when the last of many tasks has gone, over all orders of going and waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quiet_misses_no_last_task() {
    for _ in 0..ROUNDS {
        let (scope, handle) = Scope::root();
        for _ in 0..3 {
            drop(scope.spawn("short", tokio::task::yield_now()));
        }
        handle.settle();
        soon(handle.quiet()).await;
        assert!(handle.alive().is_empty());
    }
}

/// S3.6: a nested run that is held by the outer one keeps it from being quiet, until it is quiet itself.
#[tokio::test(start_paused = true)]
async fn a_held_child_run_keeps_its_parent_from_quiet() {
    let (run, handle) = Scope::root();
    let (child, stop_child) = run.child_run(Link::Background);
    let hold = run.hold("child");
    drop(child.spawn("work", sleep(Duration::from_secs(3))));
    let settles_child = stop_child.clone();
    drop(run.spawn("awaits the child", async move {
        stop_child.quiet().await;
        drop(hold);
    }));
    handle.settle();
    settles_child.settle();
    let began = Instant::now();
    at_last(handle.quiet()).await;
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

/// S1.5: a request that adds a safe point wakes who follows the demand, and one that adds nothing does not.
#[tokio::test(start_paused = true)]
async fn only_what_changes_the_demand_wakes_its_followers() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    let seen = scope.demand();
    let follows = scope.spawn("follows", scope.changed(seen));
    tokio::task::yield_now().await;
    assert_eq!(handle.stop(StopRequest::at(SafePoints::AFTER_MODEL)), StopAck::Unchanged);
    tokio::task::yield_now().await;
    assert!(!follows.is_finished());
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL).with_reach(Reach::Tree));
    assert_eq!(at_last(follows).await.unwrap().reach, Reach::Tree);
}

/// S1.4: a later, longer grace does not put off an earlier deadline.
#[tokio::test(start_paused = true)]
async fn a_longer_grace_puts_nothing_off() {
    let (scope, handle) = Scope::root();
    let asked = Instant::now();
    handle.stop(StopRequest::graceful(secs(2)));
    assert_eq!(handle.stop(StopRequest::graceful(secs(60))), StopAck::Unchanged);
    let _stop = at_last(scope.stopped()).await;
    assert_eq!(asked.elapsed(), Duration::from_secs(2));
}

/// S1.7: a shorter grace asked later brings the end nearer for who waits already.
#[tokio::test(start_paused = true)]
async fn a_shorter_grace_brings_the_end_nearer() {
    let (scope, handle) = Scope::root();
    let asked = Instant::now();
    handle.stop(StopRequest::graceful(secs(60)));
    let waits = scope.clone();
    let task = scope.spawn("waits", async move { waits.stopped().await.reason().code().clone() });
    tokio::task::yield_now().await;
    assert_eq!(handle.stop(StopRequest::graceful(secs(2))), StopAck::Strengthened);
    assert_eq!(at_last(task).await, Ok(Code::USER));
    assert_eq!(asked.elapsed(), Duration::from_secs(2));
}

/// S4.3: shielded work runs to its end, whatever is asked.
#[tokio::test(start_paused = true)]
async fn shielded_work_runs_to_its_end() {
    let (scope, handle) = Scope::root();
    handle.stop(StopRequest::now());
    let began = Instant::now();
    scope.shield(sleep(Duration::from_secs(1))).await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert!(scope.is_stopping());
}

/// S4.7: a panic while a dropped future is torn down is reported, and the task is no longer counted.
#[tokio::test]
async fn a_panic_in_a_drop_is_an_end_too() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any("in drop");
        }
    }
    let (scope, handle) = Scope::root();
    let task = scope.spawn("bomb", async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    tokio::task::yield_now().await;
    task.dropper().drop_now();
    assert_eq!(soon(task).await, Err(TaskEnd::Panicked("in drop".into())));
    assert!(handle.alive().is_empty());
}

/// S4.3: a task that is dropped before its first poll never begins.
#[tokio::test]
async fn a_task_dropped_before_it_began_never_begins() {
    let (scope, handle) = Scope::root();
    let (begun, began) = tokio::sync::oneshot::channel();
    let task = scope.spawn("never", async move { begun.send(()) });
    task.dropper().drop_now();
    assert_eq!(soon(task).await, Err(TaskEnd::Dropped));
    assert!(soon(began).await.is_err() && handle.alive().is_empty());
}

/// S9.6: a stop wakes each waiter below it a bounded number of times, and a part's end wakes none of the others: what a
/// stop costs is linear in what is live.
#[tokio::test]
async fn a_stop_costs_what_is_live() {
    for many in [10, 1_000] {
        let (run, handle) = Scope::root();
        let polls = Arc::new(AtomicUsize::new(0));
        let (mut calls, mut tasks) = (Vec::new(), Vec::new());
        for _ in 0..many {
            let (call, of_call) = run.child();
            let (child, _) = call.child_run(Link::Attached);
            let (counted, mut waits) = (Arc::clone(&polls), Box::pin(async move { child.stopped().await }));
            let counted = poll_fn(move |cx| {
                counted.fetch_add(1, Ordering::SeqCst);
                waits.as_mut().poll(cx).map(drop)
            });
            tasks.push(run.spawn("waits", counted));
            calls.push(of_call);
        }
        for _ in 0..many {
            tokio::task::yield_now().await;
        }
        assert_eq!(polls.load(Ordering::SeqCst), many, "all of them wait");
        for call in &calls {
            call.settle();
            tokio::task::yield_now().await;
        }
        assert_eq!(polls.load(Ordering::SeqCst), many, "an end concerns only its own node");
        handle.stop(StopRequest::now());
        for task in tasks {
            soon(task).await.unwrap();
        }
        assert!(polls.load(Ordering::SeqCst) <= 3 * many);
    }
}
