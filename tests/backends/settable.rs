//! Handles settled by hand, and handles of work that is over: every order of begin, set, stop and end.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use safepoint::{
    Outcome, Reason, SafePoints, Steer, StopRequest,
    event::{EventKind, Fact},
    outcome::Persisted,
    raw::backend::{ActiveWork, BackendSpec, RunInput, TooLate, WrappedEnd, wrap, wrap_finished},
    receipt::{CallStatus, QuietReport, SideEffect, StopSupport},
    secs,
    steer::SteerOutcome,
    stop::StopAck,
};
use safepoint_testkit::{invariants::Invariants, recorder};
use tokio::time::Instant;

fn spec(grade: StopSupport) -> BackendSpec {
    BackendSpec { name: "own".into(), grade }
}

fn task() -> RunInput {
    RunInput::new("work")
}

/// A native stop that counts, and ends the work as asked.
fn native(working: &ActiveWork, stops: &Arc<AtomicUsize>) -> impl FnOnce(Reason) + Send + 'static {
    let (of, stops) = (working.clone(), Arc::clone(stops));
    move |_| {
        stops.fetch_add(1, Ordering::SeqCst);
        assert!(of.complete(WrappedEnd::Stopped).is_ok());
    }
}

/// S10.2: a handle for work that is over already needs no runtime, and says the same to everybody.
#[test]
fn work_that_is_over_has_a_handle() {
    let handle = wrap_finished(&spec(StopSupport::Hard), task(), WrappedEnd::Done("42".into()));
    assert!(handle.is_done());
    assert_eq!(handle.stop(StopRequest::now()), StopAck::TooLate);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert_eq!(handle.done().await.answer(), Some("42"));
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(
            (closed.receipt.calls[0].status, closed.receipt.calls[0].effect),
            (CallStatus::Completed, SideEffect::Done)
        );
        assert_eq!(closed.outcome.history().last_text().as_deref(), Some("42"));
        assert!(matches!(closed.outcome.persisted(), Persisted::No(_)));
    });
    let failed = wrap_finished(&spec(StopSupport::Hard), task(), WrappedEnd::Failed("no luck".into()));
    runtime.block_on(async {
        let Outcome::Failed(error) = failed.done().await else { panic!("it failed") };
        assert_eq!((error.code(), error.to_string().as_str()), ("provider", "no luck"));
    });
}

/// S10.2, S2.1 / T7, anthropics/claude-agent-sdk-typescript#429: a stop before the start keeps the work from
/// beginning.
#[tokio::test]
async fn a_stop_before_the_start_keeps_it_from_beginning() {
    for request in [StopRequest::now(), StopRequest::at(SafePoints::AFTER_ALL_CALLS)] {
        let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
        handle.stop(request);
        let Err(stop) = ready.begin() else { panic!("it began") };
        drop(stop);
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert!(matches!(closed.outcome, Outcome::Stopped(_)), "{:?}", closed.outcome);
        assert!(closed.receipt.calls.is_empty() && closed.receipt.quiet_at.is_some());
    }
}

/// S10.2: a stop between the start and the setting of what ends the work is held, and delivered when that is
/// set.
#[tokio::test]
async fn a_stop_before_the_native_stop_is_set_is_held() {
    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let working = ready.begin().map_err(drop).unwrap();
    handle.stop(StopRequest::now());
    // The watcher has seen the stop, and found nothing to hand it to.
    let is_asked =
        |kind: &EventKind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::StopRequested(_)));
    recorder::until(&handle, is_asked).await.unwrap();
    let stops = Arc::new(AtomicUsize::new(0));
    working.on_stop(native(&working, &stops));
    working.on_stop(|_| panic!("only the first counts"));
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(matches!(closed.outcome, Outcome::Stopped(_)));
    assert_eq!((stops.load(Ordering::SeqCst), closed.receipt.calls[0].status), (1, CallStatus::Stopped));
}

/// S10.2: the native stop runs once, whatever caller asks, and however often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_many_threads_the_native_stop_runs_once() {
    const ROUNDS: usize = 50;
    const THREADS: usize = 4;
    for _ in 0..ROUNDS {
        let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
        let working = ready.begin().map_err(drop).unwrap();
        let stops = Arc::new(AtomicUsize::new(0));
        let gate = Barrier::new(THREADS + 1);
        thread::scope(|threads| {
            for _ in 0..THREADS {
                threads.spawn(|| {
                    gate.wait();
                    handle.stop(StopRequest::now());
                });
            }
            gate.wait();
            working.on_stop(native(&working, &stops));
        });
        assert!(matches!(handle.done().await, Outcome::Stopped(_)));
        assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));
        assert_eq!(stops.load(Ordering::SeqCst), 1);
    }
}

/// S10.2, S2.11, S3.2: many ends and a stop race: one end counts, every reader sees it, and the other callers
/// learn that theirs does not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_ends_counts() {
    const ROUNDS: usize = 50;
    const THREADS: usize = 4;
    for _ in 0..ROUNDS {
        let (handle, ready) = wrap(&spec(StopSupport::CallerSide), task());
        let working = ready.begin().map_err(drop).unwrap();
        let gate = Barrier::new(THREADS + 1);
        let landed: Vec<Result<(), TooLate>> = thread::scope(|threads| {
            let ends: Vec<_> = (0..THREADS)
                .map(|number| {
                    let (working, gate) = (&working, &gate);
                    threads.spawn(move || {
                        gate.wait();
                        working.complete(WrappedEnd::Done(number.to_string()))
                    })
                })
                .collect();
            gate.wait();
            handle.stop(StopRequest::now());
            ends.into_iter().map(|end| end.join().unwrap()).collect()
        });
        let counted: Vec<String> =
            (0..THREADS).filter(|n| landed[*n].is_ok()).map(|n| n.to_string()).collect();
        match handle.done().await {
            Outcome::Done(answer) => assert_eq!(counted, [answer.text()]),
            Outcome::Stopped(_) => assert!(counted.is_empty(), "{counted:?} got the answer that it counts"),
            other => panic!("{other:?}"),
        }
        Invariants::of(&handle).check().await.unwrap();
    }
}

/// S10.1, S3.5: caller-side, the caller is unblocked at once; what comes of the work is late, and then the
/// run is quiet.
#[tokio::test(start_paused = true)]
async fn a_late_end_is_fenced() {
    let (handle, ready) = wrap(&spec(StopSupport::CallerSide), task());
    let working = ready.begin().map_err(drop).unwrap();
    working.say("half an ");
    let asked = Instant::now();
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::LeftRunning);
    assert_eq!(outcome.partial_text(), "half an ");
    working.say("answer");
    assert_eq!(working.complete(WrappedEnd::Done("half an answer".into())), Err(TooLate));
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(closed.outcome.answer().is_none() && closed.receipt.quiet_at.is_some());
    assert_eq!(closed.receipt.late, ["the work came to an answer of 14 bytes"]);
}

/// S3.6 / T7, mastra-ai/mastra#21522: hard, and the work does not end: settled at the cap, and never called
/// quiet.
#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_named() {
    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let working = ready.begin().map_err(drop).unwrap();
    working.on_stop(|_| {});
    let asked = Instant::now();
    handle.stop(StopRequest::now().with_cleanup_cap(Duration::from_secs(3)));
    let outcome = handle.done().await;
    assert_eq!(asked.elapsed(), Duration::from_secs(3));
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::LeftRunning);
    let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("it works") };
    assert_eq!(last.survivors, ["the work of own"]);
    drop(working);
}

/// S1.7, S2.4: a safe-point request waits for a boundary of the work, or for its grace.
#[tokio::test(start_paused = true)]
async fn safe_points_are_those_of_the_work() {
    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let working = ready.begin().map_err(drop).unwrap();
    handle.stop(StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    assert!(working.safe_point(SafePoints::AFTER_MODEL).is_ok() && !working.is_stopping());
    assert!(working.safe_point(SafePoints::AFTER_ALL_CALLS).is_err());
    working.complete(WrappedEnd::Stopped).unwrap();
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!(closed.receipt.stop.as_ref().unwrap().fired.as_deref(), Some("after-all-calls"));

    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let working = ready.begin().map_err(drop).unwrap();
    let stops = Arc::new(AtomicUsize::new(0));
    working.on_stop(native(&working, &stops));
    handle.stop(StopRequest::at_within(SafePoints::ANY, secs(5)));
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!(stops.load(Ordering::SeqCst), 1);
    assert!(closed.receipt.to_string().contains("grace period ended"), "{}", closed.receipt);
}

/// S2.13, S3.2: failures are failures, but not under a stop; work that ends without a word has failed.
#[tokio::test]
async fn a_failure_is_one_unless_a_stop_made_it() {
    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    ready.begin().map_err(drop).unwrap().complete(WrappedEnd::Failed("broken".into())).unwrap();
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(matches!(&closed.outcome, Outcome::Failed(error) if error.to_string() == "broken"));

    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    drop(ready.begin().map_err(drop).unwrap());
    assert!(matches!(handle.done().await, Outcome::Failed(_)));

    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let working = ready.begin().map_err(drop).unwrap();
    handle.stop(StopRequest::now());
    working.complete(WrappedEnd::Failed("interrupted system call".into())).unwrap();
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert!(matches!(closed.outcome, Outcome::Stopped(_)), "{:?}", closed.outcome);
}

/// S2.8, S2.13: a native stop that blocks or panics delays and breaks nothing; the receipt names it.
#[tokio::test]
async fn a_native_stop_that_misbehaves_is_reported() {
    let (handle, ready) = wrap(&spec(StopSupport::CallerSide), task());
    let working = ready.begin().map_err(drop).unwrap();
    let (release, held) = mpsc::channel::<()>();
    working.on_stop(move |_| held.recv().unwrap_or_default());
    handle.stop(StopRequest::now());
    assert!(matches!(handle.done().await, Outcome::Stopped(_)));
    assert_eq!(working.complete(WrappedEnd::Stopped), Err(TooLate));
    drop(release);
    assert!(matches!(handle.quiet().await, QuietReport::Quiet(_)));

    let (handle, ready) = wrap(&spec(StopSupport::CallerSide), task());
    let working = ready.begin().map_err(drop).unwrap();
    working.on_stop(|_| panic!("no such thread"));
    handle.stop(StopRequest::now());
    drop(handle.done().await);
    drop(working);
    let QuietReport::Quiet(last) = handle.quiet().await else { panic!("nothing is left") };
    assert!(last.late.iter().any(|late| late.contains("no such thread")), "{:?}", last.late);
}

/// S6.5, S8.2: a wrapped run cannot be steered, and has no questions: the handle says both at once.
#[tokio::test]
async fn what_a_wrapped_run_cannot_do_is_reported() {
    let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
    let steering = handle.steer(Steer::new("faster").unwrap());
    assert!(matches!(steering.outcome().await, SteerOutcome::Returned(_)));
    assert!(handle.decide(&"apr_1".into(), safepoint::approval::Decision::Approve).await.is_err());
    drop(ready);
    drop(handle.done().await);
}

/// S3.3 / T14, QwenLM/qwen-code PR#4366: a runtime that goes away leaves an outcome, and a word on what may
/// be alive.
#[test]
fn a_runtime_that_goes_leaves_an_outcome() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (handle, working) = runtime.block_on(async {
        let (handle, ready) = wrap(&spec(StopSupport::Hard), task());
        (handle, ready.begin().map_err(drop).unwrap())
    });
    drop(runtime);
    assert!(handle.is_done());
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(matches!(other.block_on(handle.done()), Outcome::Stopped(_)));
    assert!(matches!(other.block_on(handle.quiet()), QuietReport::NotQuiet(_)));
    drop(working);
}
