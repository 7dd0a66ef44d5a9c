//! A tree whose log fails at any append, and a resume on what was recorded.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    Agent, AgentBuilder, History, Model, Outcome, SafePoints, StopRequest,
    approval::{ApprovalMode, Decision, ToolApproval},
    history::Message,
    log::{Log, LogError, MemoryLog, RunRecord},
    model::{Conversation, DeltaStream, ModelSpec},
    receipt::Ending,
    tool::{Concurrency, EffectClass},
};
use tokio::sync::Semaphore;

use crate::children::{gated, hire, with};
use crate::children_waiting::{DURABLY, asked, question};
use crate::world::{Reply, ask, does, say};

/// Says the one thing to a person and the other to results, whatever came before, and counts both.
#[derive(Clone)]
struct Steady {
    first: Reply2,
    then: Reply2,
    said: Arc<Mutex<[u32; 2]>>,
}

type Reply2 = Arc<dyn Fn() -> Reply + Send + Sync>;

impl Model for Steady {
    fn name(&self) -> &str {
        "steady"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Steady {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let again = matches!(history.entries().last().map(|entry| &**entry), Some(Message::Results { .. }));
        self.said.lock().unwrap()[usize::from(again)] += 1;
        stream::iter(if again { (self.then)() } else { (self.first)() }).boxed()
    }
}

fn steady(
    first: impl Fn() -> Reply + Send + Sync + 'static,
    then: &'static str,
    said: &Arc<Mutex<[u32; 2]>>,
) -> AgentBuilder {
    let model = Steady { first: Arc::new(first), then: Arc::new(move || say(then)), said: Arc::clone(said) };
    Agent::builder(model).approvals(ApprovalMode::Auto)
}

/// Fails from one append on, until it is repaired.
struct Breaks {
    inner: MemoryLog,
    left: AtomicU64,
}

impl Log for Breaks {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.inner.append(record),
            Err(_) => Box::pin(async { Err(LogError::new("the disk is gone")) }),
        }
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S9.3, S7.2: three levels, their one log failing at each append in turn: the run fails and ends; resumed on what was
/// recorded it comes to its answer, no recorded message is asked for again, no recorded end is run again.
#[tokio::test(start_paused = true)]
async fn a_tree_goes_on_from_any_append() {
    let mut appends = 0;
    loop {
        let counts: [Arc<Mutex<[u32; 2]>>; 3] = Default::default();
        let ran = Arc::new(AtomicU64::new(0));
        let works = Arc::clone(&ran);
        let work = does("work", move |_| {
            works.fetch_add(1, Ordering::SeqCst);
            async { Ok("done".into()) }
        })
        .with(|spec| spec.effect(EffectClass::Idempotent));
        let leaf = steady(|| ask(&["work"]), "leaf", &counts[2]).tool(work).build();
        let middle = with(steady(|| hire(&["leaf"]), "middle", &counts[1]), "leaf", &leaf).build();
        let root = with(steady(|| hire(&["middle"]), "root", &counts[0]), "middle", &middle).build();
        let log = Arc::new(Breaks { inner: MemoryLog::default(), left: AtomicU64::new(appends) });
        let outcome: Outcome = root.run_recorded(log.clone(), History::new(), "go").await;
        log.left.store(u64::MAX, Ordering::SeqCst);
        if outcome.ending() == Ending::Done {
            break;
        }
        let recorded = log.read().await.unwrap();
        let outcome = root.resume(&outcome).await;
        if recorded.is_empty() {
            // There are no records to continue from.
            appends += 1;
            continue;
        }
        assert_eq!(outcome.answer(), Some("root"), "append {appends}: {outcome:?}");
        // The one append that was lost is the one thing that may have to be done again.
        let said: u32 = counts.iter().flat_map(|count| *count.lock().unwrap()).sum();
        assert!((6..=7).contains(&said), "append {appends}: {said} model calls");
        assert!((1..=2).contains(&ran.load(Ordering::SeqCst)), "append {appends}");
        appends += 1;
    }
    assert!(appends > 20, "{appends}");
}

/// S8.3, S9.3: a stop of the root took the question of its grandchild back. Wherever the resume is cut before that run has asked
/// again, the next one asks it under a new id: no run waits for an answer that cannot come.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_taken_back_is_asked_again_from_any_append() {
    for appends in 0.. {
        let (busy, ran, said) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)), Arc::default());
        let work = gated("work", &Arc::new(Semaphore::new(100)), &ran);
        let work = work.with(|spec| spec.approval(ToolApproval::Required).effect(EffectClass::Idempotent));
        // A plain call keeps the root from suspending before the stop.
        let plain = gated("plain", &busy, &Arc::default()).with(|spec| spec.overlap(Concurrency::Parallel));
        let leaf = steady(|| ask(&["work"]), "leaf", &said).tool(work).approvals(DURABLY).build();
        let middle = steady(|| hire(&["leaf"]), "middle", &said).approvals(DURABLY);
        let middle = with(middle, "leaf", &leaf).build();
        let root = steady(|| hire(&["middle", "+plain"]), "root", &said).approvals(DURABLY);
        let root = with(root, "middle", &middle).tool(plain).build();
        let log = Arc::new(Breaks { inner: MemoryLog::default(), left: AtomicU64::new(u64::MAX) });
        let handle = root.run_recorded(log.clone(), History::new(), "go").detach();
        let first = asked(&handle).await;
        handle.stop(StopRequest::at(SafePoints::ANY));
        busy.add_permits(1);
        let stopped = handle.done().await;
        assert_eq!(stopped.ending(), Ending::Stopped);
        log.left.store(appends, Ordering::SeqCst);
        let cut = root.resume(&stopped).await;
        log.left.store(u64::MAX, Ordering::SeqCst);
        let is_whole = cut.ending() == Ending::Suspended;
        let waiting = if is_whole { cut } else { root.resume(&cut).await };
        let second = question(&waiting);
        assert_ne!(first.id, second.id, "append {appends}");
        let outcome = root.resume_with(&waiting, vec![(second.id, Decision::Approve)]).await;
        assert_eq!((outcome.answer(), ran.load(Ordering::SeqCst)), (Some("root"), 1), "append {appends}");
        if is_whole {
            assert!(appends > 5, "{appends}");
            return;
        }
    }
}
