//! Replies that the run's own task reads, because none of their polls blocks: they hide no stop, whatever they do.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, future::BoxFuture};
use safepoint::{
    Agent, History, Limits, Model, RunHandle, SafePoints, StopRequest,
    event::{EventKind, Fact},
    log::{Log, LogError, MemoryLog, RunRecord},
    model::{Conversation, Delta, DeltaStream, ModelError, ModelSpec},
    receipt::Ending,
};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::world::until;

/// No test waits longer, whatever is broken.
const BOUND: Duration = Duration::from_secs(20);

/// What a reply does after its first text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Hangs,
    Panics,
    /// It panics when it is dropped.
    PanicsAtItsDrop,
    Floods,
    /// One more text when it is noted so, and then nothing.
    Says,
}

/// A model whose replies may be read by the run's own task, and what became of its reply.
#[derive(Clone)]
struct Noted {
    then: Then,
    polls: Arc<AtomicUsize>,
    is_dropped: Arc<AtomicBool>,
    dropped: Arc<Notify>,
    says: Arc<Semaphore>,
}

fn noted(then: Then) -> Noted {
    let (polls, is_dropped, dropped) = Default::default();
    Noted { then, polls, is_dropped, dropped, says: Arc::new(Semaphore::new(0)) }
}

impl Model for Noted {
    fn name(&self) -> &str {
        "noted"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Noted {
    fn stream(&mut self, _: &History) -> DeltaStream {
        Box::pin(NotedReply { noted: self.clone(), said: 0, next: None })
    }
    fn never_blocks(&self) -> bool {
        true
    }
}

struct NotedReply {
    noted: Noted,
    said: usize,
    next: Option<BoxFuture<'static, ()>>,
}

impl Stream for NotedReply {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.noted.polls.fetch_add(1, Ordering::SeqCst);
        self.said += 1;
        match (self.said, self.noted.then) {
            (1, _) => Poll::Ready(Some(Ok(Delta::Sent))),
            (2, _) | (_, Then::Floods) => Poll::Ready(Some(Ok(Delta::Text("so f".into())))),
            (_, Then::Panics) => panic!("the decoder panics"),
            (_, Then::Hangs | Then::PanicsAtItsDrop) => Poll::Pending,
            (_, Then::Says) => {
                let says = Arc::clone(&self.noted.says);
                let next = self
                    .next
                    .get_or_insert_with(|| Box::pin(async move { says.acquire().await.unwrap().forget() }));
                next.as_mut().poll(cx).map(|()| {
                    self.next = None;
                    Some(Ok(Delta::Text("ar".into())))
                })
            }
        }
    }
}

impl Drop for NotedReply {
    fn drop(&mut self) {
        self.noted.is_dropped.store(true, Ordering::SeqCst);
        self.noted.dropped.notify_one();
        assert!(self.noted.then != Then::PanicsAtItsDrop, "the exchange panics when it is dropped");
    }
}

async fn text_shown(handle: &RunHandle) {
    let shown = until(handle, |kind| matches!(kind, EventKind::Text(_)));
    timeout(BOUND, shown).await.expect("no text was shown");
}

/// S2.2, S2.8, S12.5: a reply on which nothing more comes, one that always has another piece, and one whose drop panics: each
/// is released by a stop before its run has settled.
#[tokio::test]
async fn a_reply_that_the_run_reads_itself_hides_no_stop() {
    for then in [Then::Hangs, Then::Floods, Then::PanicsAtItsDrop] {
        let noted = noted(then);
        let limits = Limits::default().with_model_output_bytes(usize::MAX);
        let handle = Agent::builder(noted.clone()).limits(limits).build().run("go").detach();
        text_shown(&handle).await;
        handle.stop(StopRequest::now());
        let before = noted.polls.load(Ordering::SeqCst);
        let outcome = timeout(BOUND, handle.done()).await.expect("the reply hides the stop");
        assert_eq!(outcome.ending(), Ending::Stopped, "{then:?}");
        assert!(outcome.partial_text().starts_with("so f"), "{then:?}");
        assert!(noted.is_dropped.load(Ordering::SeqCst), "{then:?}: it is released first");
        assert!(noted.polls.load(Ordering::SeqCst) <= before + 1, "{then:?}: it is not read on");
        let quiet = timeout(BOUND, handle.quiet()).await.expect("something is still alive");
        assert!(quiet.receipt().quiet_at.is_some(), "{then:?}");
    }
}

/// S2.16, S3.1: a decoder that panics while the run's own task reads fails its model call, and nothing else; the run has its
/// outcome, and is quiet.
#[tokio::test]
async fn a_decoder_that_panics_in_the_runs_own_task_fails_its_call() {
    let handle = Agent::builder(noted(Then::Panics)).build().run("go").detach();
    let outcome = timeout(BOUND, handle.done()).await.expect("the panic hides the end");
    let safepoint::Outcome::Failed(failed) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.code(), "provider");
    assert!(format!("{failed:?}").contains("the decoder panics"), "{failed:?}");
    assert_eq!(outcome.partial_text(), "so f");
    let quiet = timeout(BOUND, handle.quiet()).await.expect("something is still alive");
    assert!(quiet.receipt().quiet_at.is_some());
}

/// What is alive names the call, who reads it.
#[tokio::test]
async fn a_reply_that_the_run_reads_itself_is_alive_by_name() {
    let handle = Agent::builder(noted(Then::Hangs)).build().run("go").detach();
    text_shown(&handle).await;
    assert_eq!(handle.alive(), ["model call"]);
    handle.stop(StopRequest::now());
    timeout(BOUND, handle.quiet()).await.expect("it was not released");
    assert!(handle.alive().is_empty());
}

/// A log whose record of a stop request takes until it is let go.
struct Slow {
    inner: MemoryLog,
    came: Semaphore,
    gate: Semaphore,
}

impl Log for Slow {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let is_slow = matches!(*record.fact, Fact::StopRequested(_));
        Box::pin(async move {
            if is_slow {
                self.came.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
            }
            self.inner.append(record).await
        })
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S2.2, S2.3, S2.8: while the log takes its time with what was asked, the reply is read on, and shown; and `Now` releases it
/// then and there.
#[tokio::test(start_paused = true)]
async fn a_slow_log_holds_no_reply() {
    let log =
        Arc::new(Slow { inner: MemoryLog::default(), came: Semaphore::new(0), gate: Semaphore::new(0) });
    let noted = noted(Then::Says);
    let agent = Agent::builder(noted.clone()).build();
    let handle = agent.run_recorded(Arc::clone(&log) as _, History::new(), "go").detach();
    text_shown(&handle).await;
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    log.came.acquire().await.unwrap().forget();
    noted.says.add_permits(1);
    let more = until(&handle, |kind| matches!(kind, EventKind::Text(text) if text.as_ref() == "ar"));
    timeout(Duration::from_secs(1), more).await.expect("the log holds the reply");
    handle.stop(StopRequest::now());
    timeout(Duration::from_secs(1), noted.dropped.notified()).await.expect("the log holds the exchange");
    assert!(!handle.is_done());
    log.gate.add_permits(8);
    let outcome = timeout(BOUND, handle.done()).await.expect("it settles");
    assert_eq!((outcome.ending(), outcome.partial_text()), (Ending::Stopped, "so far"));
}
