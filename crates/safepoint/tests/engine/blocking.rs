//! Async bodies that block their thread: they hide no stop of their call and no time limit.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use safepoint::{
    Grace, Outcome, RunHandle, StopRequest, ToolContext,
    receipt::{CallStatus, StopSource},
    tool::{FnTool, OnStop},
};
use tokio::time::timeout;

use crate::world::{agent, ask, does, say};

const SHORT: Duration = Duration::from_millis(20);
/// No test waits longer, whatever is broken.
const BOUND: Duration = Duration::from_secs(20);

/// A run whose one call blocks its thread until it is freed.
struct Blocked {
    handle: RunHandle,
    free: mpsc::Sender<()>,
}

impl Blocked {
    /// Begins the run; `looks` is called by the body before it blocks.
    async fn begin(
        looks: impl Fn(&ToolContext) + Clone + Send + Sync + 'static,
        with: impl FnOnce(FnTool) -> FnTool,
    ) -> Self {
        let (free, freed) = mpsc::channel();
        let freed = Arc::new(Mutex::new(freed));
        let (began, begins) = mpsc::channel();
        let deaf = does("deaf", move |cx| {
            let (freed, began, looks) = (Arc::clone(&freed), began.clone(), looks.clone());
            async move {
                began.send(()).unwrap();
                looks(&cx);
                // An error: the test is over.
                freed.lock().unwrap().recv().unwrap_or_default();
                Ok("late".into())
            }
        });
        let handle = agent([ask(&["deaf"]), say("ok")]).tool(with(deaf)).build().run("go").detach();
        tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
        Self { handle, free }
    }

    /// The outcome, which does not wait for the body, and what of it was late.
    async fn over(self) -> (Outcome, Vec<String>) {
        let outcome = timeout(BOUND, self.handle.done()).await.expect("the body hides its end");
        self.free.send(()).unwrap();
        let quiet = timeout(BOUND, self.handle.quiet()).await.expect("the body has ended");
        (outcome, quiet.receipt().late.clone())
    }
}

/// S2.10, S4.3: a stop of one call alone, also one that waits for its grace, ends a call whose body never yields, by each
/// contract; the run continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocked_body_hides_no_stop_of_its_call() {
    for request in [StopRequest::now, || StopRequest::graceful(Grace::from_millis(20))] {
        for contract in [OnStop::Drop, OnStop::Cooperate(Some(SHORT)), OnStop::Detach] {
            let deaf = |tool: FnTool| tool.with(|spec| spec.on_stop(contract));
            let blocked = Blocked::begin(|_| {}, deaf).await;
            assert!(blocked.handle.stop_call(&"c0".into(), request()).is_some());
            let (outcome, _) = blocked.over().await;
            assert_eq!(outcome.answer(), Some("ok"), "{contract:?}");
            let call = &outcome.receipt().calls[0];
            assert_eq!((call.status, call.stopped_by), (CallStatus::LeftRunning, Some(StopSource::Call)));
        }
    }
}

/// S4.3, S2.7: under *detach* a stop of the run does not wait for a body that never yields, and its result is late.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocked_body_that_is_detached_is_left_at_once() {
    let blocked = Blocked::begin(|_| {}, |tool| tool.with(|spec| spec.on_stop(OnStop::Detach))).await;
    blocked.handle.stop(StopRequest::now());
    let (outcome, late) = blocked.over().await;
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::LeftRunning);
    assert!(late.iter().any(|what| what.contains("returned 4 bytes")), "{late:?}");
}

/// S2.7, S4.3: a body under *detach* that blocks once it is left does not hold its call's end, which still has output to spill.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_body_that_blocks_when_it_is_left_does_not_hold_its_end() {
    let (free, freed) = mpsc::channel::<()>();
    let freed = Arc::new(Mutex::new(freed));
    let (began, begins) = mpsc::channel();
    let left = does("left", move |cx| {
        let (freed, began) = (Arc::clone(&freed), began.clone());
        async move {
            cx.progress("long ".repeat(100).as_str());
            began.send(()).unwrap();
            drop(cx.stopped().await);
            // An error: the test is over.
            freed.lock().unwrap().recv().unwrap_or_default();
            Ok("late".into())
        }
    });
    let left = left.with(|spec| spec.on_stop(OnStop::Detach).output_bytes(100));
    let handle = agent([ask(&["left"]), say("ok")]).tool(left).build().run("go").detach();
    tokio::task::spawn_blocking(move || begins.recv().unwrap()).await.unwrap();
    handle.stop(StopRequest::now());
    let outcome = timeout(BOUND, handle.done()).await.expect("the body holds the end of its call");
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::LeftRunning);
    free.send(()).unwrap();
    timeout(BOUND, handle.quiet()).await.expect("the body has ended");
}

/// S4.5: a result that was there when the stop came is kept, also under *detach*, though the task of the call has not seen it.
#[tokio::test]
async fn a_result_that_was_there_is_kept_by_detach() {
    let (give, given) = tokio::sync::oneshot::channel();
    let (given, (began, begins)) = (Arc::new(Mutex::new(Some(given))), tokio::sync::oneshot::channel());
    let began = Arc::new(Mutex::new(Some(began)));
    let waits = does("waits", move |_| {
        let (given, began) = (given.lock().unwrap().take().unwrap(), began.lock().unwrap().take().unwrap());
        async move {
            began.send(()).unwrap();
            Ok(given.await.unwrap())
        }
    });
    let waits = waits.with(|spec| spec.on_stop(OnStop::Detach));
    let handle = agent([ask(&["waits"]), say("ok")]).tool(waits).build().run("go").detach();
    begins.await.unwrap();
    // Nothing else runs between these two: the test has the one thread.
    give.send("paid".into()).unwrap();
    handle.stop(StopRequest::now());
    let outcome = timeout(BOUND, handle.done()).await.unwrap();
    assert_eq!(outcome.receipt().calls[0].status, CallStatus::Completed);
}

/// S4.6: the time limit of a call is signalled to a body that never yields, and ends the call; the run continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_blocked_body_hides_no_time_limit() {
    let seen = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&seen);
    let polls = move |cx: &ToolContext| {
        while !cx.is_stopping() {
            std::hint::spin_loop();
        }
        // Read after the outcome, which comes later than this by the message that ends the call.
        sees.store(cx.is_stopping(), Ordering::SeqCst);
    };
    let blocked = Blocked::begin(polls, |tool| tool.with(|spec| spec.timeout(SHORT))).await;
    let (outcome, _) = blocked.over().await;
    assert_eq!(outcome.answer(), Some("ok"));
    let call = &outcome.receipt().calls[0];
    assert_eq!((call.status, call.stopped_by), (CallStatus::TimedOut, None));
    assert!(serde_json::to_string(outcome.history()).unwrap().contains("still running"));
    assert!(seen.load(Ordering::SeqCst));
}
