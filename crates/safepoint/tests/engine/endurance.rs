//! Bodies that outlast their contract, times without end, inputs without words, and one outcome taken up twice.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use safepoint::{
    History, Limits, Outcome, RunHandle, StopRequest,
    receipt::{CallStatus, Ending, QuietReport},
    tool::{self, OnStop},
};

use crate::world::{agent, ask, call_started, does, say};

/// What a body that cannot be stopped shows in a run that stops.
async fn left(handle: &RunHandle, free: mpsc::Sender<()>) {
    let outcome = handle.done().await;
    let row = &outcome.receipt().calls[0];
    assert_eq!(row.status, CallStatus::LeftRunning);
    assert!(!handle.alive().is_empty());
    assert!(serde_json::to_string(outcome.history()).unwrap().contains("[still running"));
    free.send(()).unwrap();
    let quiet = handle.quiet().await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{:?}", quiet.receipt().survivors);
    let late = &quiet.receipt().late;
    assert!(late.iter().any(|what| what.contains("returned 4 bytes")), "{late:?}");
}

const SHORT: Duration = Duration::from_millis(20);
/// Long enough that a blocking body has begun by then, on a busy machine too.
const BEGUN_BY: Duration = Duration::from_millis(250);

/// S3.6, S4.8, S2.7: a blocking body that is still there after its contract's time was left running, whatever
/// its contract; the model sees that, and its late result goes to the audit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_body_that_goes_on_is_left_running() {
    let contracts =
        [OnStop::Drop, OnStop::Cooperate(Some(SHORT)), OnStop::Finish(Some(SHORT)), OnStop::Detach];
    for contract in contracts {
        let (free, freed) = mpsc::channel();
        let freed = Mutex::new(freed);
        let (began, begins) = mpsc::channel();
        let deaf = tool::from_blocking_fn("deaf", "for a test", move |_, (): ()| {
            began.send(()).unwrap();
            freed.lock().unwrap().recv().unwrap();
            Ok("late")
        });
        let deaf = deaf.with(|spec| spec.on_stop(contract));
        let handle = agent([ask(&["deaf"])]).tool(deaf).build().run("go").detach();
        tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
        handle.stop(StopRequest::now());
        left(&handle, free).await;
    }
}

/// S3.6, S4.3: an async body that never yields cannot be dropped: it was left running.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_async_body_that_never_yields_is_left_running() {
    for contract in [OnStop::Drop, OnStop::Cooperate(Some(SHORT))] {
        let (free, freed) = mpsc::channel();
        let freed = Arc::new(Mutex::new(freed));
        let (began, begins) = mpsc::channel();
        let deaf = does("deaf", move |_| {
            let (freed, began) = (Arc::clone(&freed), began.clone());
            async move {
                began.send(()).unwrap();
                freed.lock().unwrap().recv().unwrap();
                Ok("late".into())
            }
        });
        let deaf = deaf.with(|spec| spec.on_stop(contract));
        let handle = agent([ask(&["deaf"])]).tool(deaf).build().run("go").detach();
        tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
        handle.stop(StopRequest::now());
        left(&handle, free).await;
    }
}

/// S2.7, S4.3: an async body that yields is gone at its next poll, and was stopped.
#[tokio::test(start_paused = true)]
async fn a_body_that_yields_is_stopped() {
    let handle = agent([ask(&["t"])]).tool(does("t", |_| std::future::pending())).build().run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.receipt().calls[0].status, CallStatus::Stopped);
}

/// S4.6: a blocking body that outlasts its time limit is timed out and left running: the model sees both, and
/// its late result goes to the audit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_outlasts_its_limit_is_said_to_go_on() {
    for contract in [OnStop::Drop, OnStop::Cooperate(Some(SHORT)), OnStop::Detach] {
        let (free, freed) = mpsc::channel();
        let freed = Mutex::new(freed);
        let deaf = tool::from_blocking_fn("deaf", "for a test", move |_, (): ()| {
            freed.lock().unwrap().recv().unwrap();
            Ok("late")
        });
        let deaf = deaf.with(|spec| spec.on_stop(contract).timeout(BEGUN_BY));
        let handle = agent([ask(&["deaf"]), say("next")]).tool(deaf).build().run("go").detach();
        let outcome = handle.done().await;
        assert_eq!(outcome.receipt().calls[0].status, CallStatus::TimedOut);
        let text = serde_json::to_string(outcome.history()).unwrap();
        assert!(text.contains("timed out") && text.contains("still running"), "{text}");
        free.send(()).unwrap();
        let quiet = handle.quiet().await;
        assert!(!quiet.receipt().late.is_empty(), "{contract:?}");
    }
}

/// S5.1: a blank input is refused before anything is sent, and leaves the conversation as it was.
#[tokio::test(start_paused = true)]
async fn a_blank_input_is_refused() {
    let agent = agent([say("one"), say("two")]).build();
    for blank in ["", "  \n"] {
        let Outcome::Failed(error) = agent.run(blank).await else { panic!("it was taken") };
        assert_eq!(error.code(), "input");
    }
    let first = agent.run("hi").await;
    let outcome = agent.run_on(first.history().clone(), " ").await;
    assert!(matches!(&outcome, Outcome::Failed(error) if error.code() == "input"));
    assert_eq!(outcome.receipt().rounds, 0);
    let again = agent.resume(&outcome).await;
    assert!(matches!(&again, Outcome::Failed(error) if error.code() == "input"));
    let next = agent.run_on(outcome.history().clone(), "and?").await;
    assert_eq!(next.answer(), Some("two"));
    let empty = agent.run_on(History::new(), "").await;
    assert_eq!(empty.history().entries().len(), 0);
}

/// S7.4, S3.7, I6: of two resumes at a time one runs; the other fails with that reason, and does nothing.
#[tokio::test(start_paused = true)]
async fn one_outcome_is_taken_up_once_at_a_time() {
    let paid = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&paid);
    let pay = does("pay", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok("paid".into()) }
    });
    let gate = does("gate", |cx| async move {
        drop(cx.stopped().await);
        Ok("first".into())
    });
    let gate = gate.with(|spec| spec.on_stop(OnStop::Cooperate(None)));
    let limits = Limits::default().with_parallel_calls(1);
    let agent = agent([ask(&["gate", "pay"]), say("end")]).limits(limits).tool(gate).tool(pay).build();
    let handle = agent.run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    let (one, two) = (agent.resume(&outcome).detach(), agent.resume(&outcome).detach());
    let (one, two) = tokio::join!(one.done(), two.done());
    assert_eq!(one.ending(), Ending::Done);
    assert!(matches!(&two, Outcome::Failed(error) if error.code() == "conflict"), "{two:?}");
    assert!(two.receipt().calls.is_empty());
    assert_eq!(paid.load(Ordering::SeqCst), 1);
    assert_eq!(agent.resume(&outcome).await.ending(), Ending::Done, "afterwards it is free again");
}

/// S2.8, S3.6: the longest time there is means "no limit", never a panic.
#[tokio::test(start_paused = true)]
async fn the_longest_time_is_no_limit() {
    let max = Duration::MAX;
    let limits = Limits::default()
        .with_wall_time(max)
        .with_call_timeout(max)
        .with_cleanup_timeout(max)
        .with_finish_grace(max)
        .with_callback_timeout(max)
        .with_quiet_timeout(max)
        .with_drain_timeout(max)
        .with_release_timeout(max)
        .with_append_timeout(max)
        .with_approval_expiry(max);
    let contracts =
        [OnStop::Cooperate(Some(max)), OnStop::Cooperate(None), OnStop::Finish(None), OnStop::Drop];
    for contract in contracts {
        let tool = does("t", |cx| async move {
            drop(cx.stopped().await);
            Ok("r".into())
        });
        let tool = tool.with(|spec| spec.on_stop(contract));
        let handle = agent([ask(&["t"])]).tool(tool).limits(limits.clone()).build().run("go").detach();
        call_started(&handle).await;
        handle.stop(StopRequest::now().with_cleanup_cap(max));
        let done = tokio::time::timeout(Duration::from_secs(3600), handle.done()).await;
        assert_eq!(done.expect("it never settled").ending(), Ending::Stopped);
        let quiet = tokio::time::timeout(Duration::from_secs(3600), handle.quiet()).await;
        assert!(matches!(quiet, Ok(QuietReport::Quiet(_))), "{quiet:?}");
    }
}

/// S4.11: a name that some provider would refuse at the first request is refused when the agent is made.
#[test]
fn a_tools_name_is_one_that_every_provider_takes() {
    let ok = |_| async { Ok("r".into()) };
    let long = "n".repeat(65);
    for name in ["", "my tool!", "näme", "a.b", long.as_str()] {
        let error = agent([]).tool(does(name, ok)).try_build().unwrap_err();
        assert!(error.to_string().contains("providers take"), "{error}");
    }
    assert!(agent([]).tool(does("Read_file-2", ok)).try_build().is_ok());
    assert!(agent([]).tool(does("t", ok)).tool(does("t", ok)).try_build().is_err());
}
