//! What a stop does before the caller has the outcome, and what waits until then.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use safepoint::{
    Halt, History, Limits, Receipt, StopRequest,
    event::{EventKind, Fact},
    hook::{HookResult, Hooks},
    log::{Log, LogError, MemoryLog, RunRecord},
    receipt::Ending,
    tool::OnStop,
};

use crate::children::{hire, with};
use crate::world::{agent, ask, does, until};

/// A log that notes its appends: the names of the facts of each.
#[derive(Default)]
struct Appends {
    inner: MemoryLog,
    appends: Mutex<Vec<Vec<&'static str>>>,
}

fn name(record: &RunRecord) -> &'static str {
    match &*record.fact {
        Fact::StopRequested(_) => "asked",
        Fact::StopObserved { .. } => "observed",
        Fact::ModelEnded { .. } => "message",
        Fact::Settled { .. } => "settled",
        _ => "other",
    }
}

impl Log for Appends {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        self.appends.lock().unwrap().push(vec![name(&record)]);
        self.inner.append(record)
    }
    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        self.appends.lock().unwrap().push(records.iter().map(name).collect());
        self.inner.append_all(records, limit)
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S2.2, S3.4: a stop of a streaming model is two appends: what was asked with what it did, and the end. The records and
/// their order are those of single appends.
#[tokio::test(start_paused = true)]
async fn a_stop_of_a_stream_is_two_appends() {
    let log = Arc::new(Appends::default());
    let handle = agent([]).build().run_recorded(Arc::clone(&log) as _, History::new(), "go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    let before = log.appends.lock().unwrap().len();
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Stopped, "par"));
    let appends = log.appends.lock().unwrap().split_off(before);
    assert_eq!(appends, [vec!["asked", "observed", "message"], vec!["settled"]]);
    let stop = outcome.receipt().stop.clone().unwrap();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Fact(fact) = &event.kind
            && let Fact::StopRequested(asked) = &**fact
        {
            assert_eq!(
                (asked, asked.at),
                (&stop.requests[0], stop.requested_at),
                "the receipt says the same"
            );
        }
    }
}

/// Blocks its caller until it is released.
struct Blocks(Mutex<mpsc::Receiver<()>>);

impl Hooks for Blocks {
    fn on_stop(&self, _: &Arc<Receipt>) -> HookResult<()> {
        let released = self.0.lock().unwrap().recv_timeout(Duration::from_secs(10));
        assert!(released.is_ok(), "the caller did not have the outcome first");
        None
    }
}

/// S11.2: a hook that blocks when it is notified of a stop delays no outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_blocks_delays_no_outcome() {
    let (release, blocked) = mpsc::channel();
    let handle = agent([]).hooks(Blocks(Mutex::new(blocked))).build().run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    let outcome = tokio::time::timeout(Duration::from_secs(5), handle.done()).await;
    release.send(()).unwrap();
    assert_eq!(outcome.expect("the outcome waited for the hook").ending(), Ending::Stopped);
    assert_eq!(handle.quiet().await.receipt().late, [""; 0], "the hook panicked");
}

/// S3.6, S12.5: of many runs that are stopped at once each has its outcome before the first is cleared away.
#[tokio::test(start_paused = true)]
async fn all_have_their_outcomes_before_the_first_is_cleared_away() {
    const RUNS: usize = 200;
    let agent = agent([]).build();
    let mut handles = Vec::new();
    for _ in 0..RUNS {
        let handle = agent.run("go").detach();
        until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
        handles.push(handle);
    }
    for handle in &handles {
        let _accepted = handle.stop(StopRequest::now());
    }
    handles[0].quiet().await;
    assert_eq!(handles.iter().filter(|handle| handle.is_done()).count(), RUNS);
}

/// What was seen of a stop, in order: by a call's body, or by a child run's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Body,
    Record,
}

/// A log that notes when a child run records that it was asked to stop.
#[derive(Default)]
struct Listens {
    inner: MemoryLog,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Log for Listens {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        if name(&record) == "asked" && !record.path.is_root() {
            self.seen.lock().unwrap().push(Seen::Record);
        }
        self.inner.append(record)
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S9.6: a stop of a tree reaches all calls in it before its child runs record that.
#[tokio::test(start_paused = true)]
async fn all_that_runs_in_a_tree_sees_a_stop_before_its_runs_record() {
    const CHILDREN: usize = 100;
    let log = Arc::new(Listens::default());
    let (begun, bodies) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&log.seen));
    let running = Arc::clone(&begun);
    let listens = does("listens", move |cx| {
        let (bodies, running) = (Arc::clone(&bodies), Arc::clone(&running));
        async move {
            running.fetch_add(1, Ordering::SeqCst);
            let stop = cx.stopped().await;
            bodies.lock().unwrap().push(Seen::Body);
            Err(Halt::Stop(stop))
        }
    });
    let listens = listens.with(|spec| spec.on_stop(OnStop::Cooperate(None)));
    let child = agent((0..CHILDREN).map(|_| ask(&["listens"]))).tool(listens).build();
    let limits = Limits::default().with_parallel_calls(CHILDREN);
    let parent = with(agent([hire(&["ask"; CHILDREN])]), "ask", &child).limits(limits).build();
    let handle = parent.run_recorded(Arc::clone(&log) as _, History::new(), "go").detach();
    while begun.load(Ordering::SeqCst) < CHILDREN {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    let seen = log.seen.lock().unwrap();
    let first = seen.iter().position(|seen| *seen == Seen::Record);
    assert_eq!((first, seen.len()), (Some(CHILDREN), 2 * CHILDREN));
}
