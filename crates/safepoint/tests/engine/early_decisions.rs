//! A decision for a child's question that comes before the child is taken up again: it waits for it, and only for it.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use futures_util::{FutureExt as _, future::BoxFuture};
use safepoint::{
    Agent, History, StopRequest,
    approval::{ApprovalMode, DecideError, Decision, ToolApproval, WithoutApprover},
    event::Fact,
    ids::{ApprovalId, Path},
    raw::{
        log::{Log, LogError, MemoryLog, RunRecord},
        run_recorded,
    },
    receipt::Ending,
};
use tokio::sync::Semaphore;

use crate::{
    children::{at, gated, hire, started_at, with},
    world::{agent, ask, say},
};

const DURABLY: ApprovalMode = ApprovalMode::Ask(None, WithoutApprover::Suspend);

/// Once it is armed, a gate stands before what is read, or before the attempt of the run at this path.
struct Gated {
    inner: MemoryLog,
    path: Option<Path>,
    armed: AtomicBool,
    came: Semaphore,
    gate: Semaphore,
}

impl Gated {
    fn before(path: Option<Path>) -> Arc<Self> {
        let (came, gate) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { inner: MemoryLog::default(), path, armed: AtomicBool::new(false), came, gate })
    }

    async fn pass_if(&self, is_gated: bool) {
        if is_gated && self.armed.load(Ordering::SeqCst) {
            self.came.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
    }
}

impl Log for Gated {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let begins =
            matches!(*record.fact, Fact::AttemptOpened { .. }) && Some(&record.path) == self.path.as_ref();
        Box::pin(async move {
            self.pass_if(begins).await;
            self.inner.append(record).await
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        Box::pin(async move {
            self.pass_if(self.path.is_none()).await;
            self.inner.read().await
        })
    }
}

/// A parent whose child has one call, which needs a person if that is said.
fn family(approval: ToolApproval, gate: &Arc<Semaphore>, ran: &Arc<AtomicU32>) -> Agent {
    let work = gated("work", gate, ran).with(|spec| spec.approval(approval));
    let child = agent([ask(&["work"]), say("child")]).tool(work).approvals(DURABLY).build();
    with(agent([hire(&["ask"]), say("ok")]), "ask", &child).build()
}

/// A tree that waits for a person, on its log.
async fn waiting(parent: &Agent) -> (Arc<Gated>, safepoint::Outcome, ApprovalId) {
    waiting_with(parent, Some(at(&["h0"]))).await
}

/// The same; where a resume stands is given.
async fn waiting_with(parent: &Agent, path: Option<Path>) -> (Arc<Gated>, safepoint::Outcome, ApprovalId) {
    let log = Gated::before(path);
    let waiting = run_recorded(parent, log.clone(), History::new(), "go").await;
    let safepoint::Outcome::Suspended(asks) = &waiting else { panic!("{waiting:?}") };
    let question = asks.approvals()[0].id.clone();
    log.armed.store(true, Ordering::SeqCst);
    (log, waiting, question)
}

/// S8.2, S9.1: the parent is taken up and the child is not yet: the decision is neither refused nor lost, it waits for the child,
/// which takes it.
#[tokio::test(start_paused = true)]
async fn a_decision_that_is_early_waits_for_the_child() {
    let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::default());
    let parent = family(ToolApproval::Required, &gate, &ran);
    let (log, waiting, question) = waiting(&parent).await;
    let handle = parent.resume(&waiting).detach();
    log.came.acquire().await.unwrap().forget();
    let mut deciding = pin!(handle.decide(&question, Decision::Approve));
    assert_eq!((&mut deciding).now_or_never(), None, "no question is open yet");
    log.gate.add_permits(1);
    assert_eq!(deciding.await, Ok(()));
    assert_eq!((handle.done().await.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1));
}

/// S8.2, S8.4, S9.1: the same for one that comes while the parent has not yet read what was asked: it is not refused as unknown.
#[tokio::test(start_paused = true)]
async fn a_decision_that_comes_before_the_records_are_read_waits_for_the_child() {
    let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::default());
    let parent = family(ToolApproval::Required, &gate, &ran);
    let (log, waiting, question) = waiting_with(&parent, None).await;
    let handle = parent.resume(&waiting).detach();
    log.came.acquire().await.unwrap().forget();
    let mut deciding = pin!(handle.decide(&question, Decision::Approve));
    assert_eq!((&mut deciding).now_or_never(), None, "nothing is read yet");
    log.gate.add_permits(1);
    assert_eq!(deciding.await, Ok(()));
    assert_eq!((handle.done().await.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1));
}

/// S8.2, S9.1: a decision on an unknown question is refused meanwhile.
#[tokio::test(start_paused = true)]
async fn a_decision_for_nobody_does_not_wait_for_a_child() {
    let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::default());
    let parent = family(ToolApproval::Required, &gate, &ran);
    let (log, waiting, question) = waiting(&parent).await;
    let handle = parent.resume(&waiting).detach();
    log.came.acquire().await.unwrap().forget();
    let unknown = ApprovalId::from("apr_unknown");
    assert_eq!(handle.decide(&unknown, Decision::Approve).await, Err(DecideError::Unknown));
    log.gate.add_permits(1);
    assert_eq!(handle.decide(&question, Decision::Approve).await, Ok(()));
    assert_eq!((handle.done().await.answer(), ran.load(Ordering::SeqCst)), (Some("ok"), 1));
}

/// S8.2: a decision that comes with a resume and is about no question of the tree is refused, even if a child
/// resumes that might have asked: its questions are known.
#[tokio::test(start_paused = true)]
async fn a_decision_for_nobody_is_refused_where_a_child_goes_on() {
    let (gate, ran) = (Arc::new(Semaphore::new(0)), Arc::default());
    let parent = family(ToolApproval::NotNeeded, &gate, &ran);
    let handle = parent.run("go").detach();
    started_at(&handle, &at(&["h0"])).await;
    handle.stop(StopRequest::now());
    let stopped = handle.done().await;
    assert_eq!(stopped.ending(), Ending::Stopped);
    gate.add_permits(1);
    let outcome = parent.resume_with(&stopped, vec![("apr_unknown".into(), Decision::Approve)]).await;
    assert_eq!((outcome.ending(), ran.load(Ordering::SeqCst)), (Ending::Failed, 1), "{outcome:?}");
}
