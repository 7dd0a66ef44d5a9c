//! Facts that are one append, because nothing has an effect between them: what they announce begins, or is reported as never
//! begun, and what is asked meanwhile is noticed as if they were apart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    Agent, History, Model, Outcome, RunHandle, SafePoints, StopRequest,
    approval::{Rule, RuleAction},
    event::{EventKind, Fact},
    log::{Log, LogError, MemoryLog, RunRecord},
    model::{Conversation, Delta, DeltaStream, ModelSpec},
    receipt::{CallStatus, Ending, ModelState, QuietReport},
};
use tokio::{
    sync::{Notify, OnceCell, Semaphore},
    time::timeout,
};

use crate::world::{agent, ask, does, say, until};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

async fn settled(handle: &RunHandle) -> Outcome {
    timeout(NEVER, handle.done()).await.expect("the run never settled")
}

/// S12.5: a stop that comes while the calls of a message are judged is noticed before the next call is.
#[tokio::test(start_paused = true)]
async fn a_stop_is_noticed_between_two_calls_that_are_judged() {
    let (judged, stops) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceCell::<RunHandle>::new()));
    let rule = {
        let (judged, stops) = (Arc::clone(&judged), Arc::clone(&stops));
        Rule::on("work", RuleAction::Allow).when(move |_| {
            judged.fetch_add(1, Ordering::SeqCst);
            stops.get().unwrap().stop(StopRequest::now());
            true
        })
    };
    let work = does("work", |_| async { Ok("done".into()) });
    let handle = agent([ask(&["work"; 8]), say("end")]).tool(work).rule(rule).build().run("go").detach();
    stops.set(handle.clone()).unwrap();
    assert_eq!(settled(&handle).await.ending(), Ending::Stopped);
    assert_eq!(judged.load(Ordering::SeqCst), 1);
}

/// A model whose reply hangs, and that says when it is dropped.
#[derive(Clone, Default)]
struct Hangs(Arc<Notify>);

impl Model for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

struct NotesItsDrop(Arc<Notify>);

impl Drop for NotesItsDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Conversation for Hangs {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let held = NotesItsDrop(Arc::clone(&self.0));
        let first = stream::iter([Ok(Delta::Sent), Ok(Delta::Text("so far".into()))]);
        first.chain(stream::pending()).inspect(move |_| _ = &held).boxed()
    }
    fn never_blocks(&self) -> bool {
        true
    }
}

/// S2.13, S3.6: a run that fails because its log breaks while its model streams releases the exchange, and is quiet.
#[tokio::test(start_paused = true)]
async fn a_log_that_breaks_while_the_model_streams_leaves_no_exchange() {
    let log = Breaks { inner: MemoryLog::default(), came: Semaphore::new(0), gate: Semaphore::new(0) };
    let (log, model) = (Arc::new(log), Hangs::default());
    let dropped = Arc::clone(&model.0);
    let agent = Agent::builder(model).build();
    let handle = agent.run_recorded(Arc::clone(&log) as _, History::new(), "go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    log.came.close();
    handle.stop(StopRequest::at(SafePoints::AFTER_MODEL));
    let outcome = settled(&handle).await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    let receipt = outcome.receipt();
    assert_eq!(receipt.model.as_ref().map(|model| model.state), Some(ModelState::Closed));
    assert!(receipt.usage.input > 0 && receipt.usage.output > 0, "{:?}", receipt.usage);
    timeout(NEVER, dropped.notified()).await.expect("the exchange is never released");
    let quiet = timeout(NEVER, handle.quiet()).await.expect("no word on its quiet");
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{:?}", quiet.receipt().survivors);
}

/// A log that takes its time with the start of a call, and after that nothing.
struct Breaks {
    inner: MemoryLog,
    came: Semaphore,
    gate: Semaphore,
}

impl Log for Breaks {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        let refused = self.came.is_closed();
        Box::pin(async move {
            if refused { Err(LogError::new("the disk is full")) } else { self.inner.append(record).await }
        })
    }
    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        let refused = self.came.is_closed();
        let starts = records.iter().any(|record| matches!(*record.fact, Fact::CallStarted { .. }));
        Box::pin(async move {
            if refused {
                return Err(LogError::new("the disk is full"));
            }
            if starts {
                self.came.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                self.came.close();
            }
            self.inner.append_all(records, limit).await
        })
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

/// S3.7, S3.8, S3.6: calls whose starts were recorded together, and that a stop and a broken log then kept from beginning, are
/// reported as not started: nothing of them is alive.
#[tokio::test(start_paused = true)]
async fn calls_that_a_broken_log_kept_from_beginning_have_not_started() {
    let log =
        Arc::new(Breaks { inner: MemoryLog::default(), came: Semaphore::new(0), gate: Semaphore::new(0) });
    let begun = Arc::new(AtomicUsize::new(0));
    let work = {
        let begun = Arc::clone(&begun);
        does("work", move |_| {
            begun.fetch_add(1, Ordering::SeqCst);
            async { Ok("done".into()) }
        })
    };
    let work = work.with(|spec| spec.effect(safepoint::tool::EffectClass::ReadOnly));
    let agent = agent([ask(&["work", "work"]), say("end")]).tool(work).build();
    let handle = agent.run_recorded(Arc::clone(&log) as _, History::new(), "go").detach();
    log.came.acquire().await.unwrap().forget();
    handle.stop(StopRequest::now());
    log.gate.add_permits(1);
    let outcome = settled(&handle).await;
    assert_eq!((outcome.ending(), begun.load(Ordering::SeqCst)), (Ending::Stopped, 0));
    let quiet = timeout(NEVER, handle.quiet()).await.expect("no word on its quiet");
    for receipt in [outcome.receipt(), quiet.receipt()] {
        let rows: Vec<_> = receipt.calls.iter().map(|call| (call.status, call.effect)).collect();
        assert!(rows.iter().all(|row| row.0 == CallStatus::NotStarted), "{rows:?}");
    }
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{:?}", quiet.receipt().survivors);
}

/// A log that refuses the start of every call, and what is recorded with it.
struct TakesNoStart(MemoryLog);

impl Log for TakesNoStart {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(async { Ok(self.append_all(vec![record], NEVER).await?[0]) })
    }
    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        if records.iter().any(|record| matches!(*record.fact, Fact::CallStarted { .. })) {
            return Box::pin(async { Err(LogError::new("the disk is full")) });
        }
        self.0.append_all(records, limit)
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.0.read()
    }
}

/// S3.7, S3.9: a model call that ended, whose end the log did not take together with the start of its call, is in the receipt with
/// its bill.
#[tokio::test(start_paused = true)]
async fn a_model_call_whose_end_is_not_recorded_is_in_the_receipt() {
    let work = does("work", |_| async { Ok("done".into()) });
    let agent = agent([ask(&["work"]), say("end")]).tool(work).build();
    let log = Arc::new(TakesNoStart(MemoryLog::default()));
    let handle = agent.run_recorded(log, History::new(), "go").detach();
    let outcome = settled(&handle).await;
    assert_eq!(outcome.ending(), Ending::Failed);
    let receipt = outcome.receipt();
    assert_eq!(receipt.model.as_ref().map(|model| model.state), Some(ModelState::Completed));
    assert!(receipt.usage.input > 0, "{:?}", receipt.usage);
}
