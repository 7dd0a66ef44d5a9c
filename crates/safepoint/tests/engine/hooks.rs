//! When hooks are notified, and how long a stop at a safe point waits for them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    History, SafePoints, StopRequest,
    event::{Completion, Fact},
    hook::{CallVerdict, HookCall, HookResult, HookedMessage, Hooks, ModelVerdict, blocking, from_future},
    log::{Log, LogError, MemoryLog, RunRecord},
    receipt::{CallReport, CallStatus, Ending},
};
use tokio::{sync::Notify, time::Instant};

use crate::world::{agent, ask, does, say, until};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

/// A log whose records can be looked at.
#[derive(Default)]
struct Watched {
    inner: MemoryLog,
    facts: Mutex<Vec<Arc<Fact>>>,
}

impl Log for Watched {
    fn append(&self, record: RunRecord) -> futures_util::future::BoxFuture<'_, Result<u64, LogError>> {
        self.facts.lock().unwrap().push(Arc::clone(&record.fact));
        self.inner.append(record)
    }
    fn read(&self) -> futures_util::future::BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.inner.read()
    }
}

impl Watched {
    fn last(&self) -> Arc<Fact> {
        Arc::clone(self.facts.lock().unwrap().last().unwrap())
    }
}

/// Notes what the log's last record was at its notification.
struct Notified {
    log: Arc<Watched>,
    notes: Arc<Mutex<Vec<&'static str>>>,
}

impl Hooks for Notified {
    fn after_model(&self, message: &HookedMessage) -> HookResult<()> {
        let note = match (&*self.log.last(), &message.whole) {
            (Fact::ModelEnded { whole, .. }, message) if whole != message => "notified as something else",
            (Fact::ModelEnded { .. }, Completion::Complete) => "whole",
            (Fact::ModelEnded { .. }, Completion::Stopped) => "cut",
            _ => "before the record",
        };
        self.notes.lock().unwrap().push(note);
        None
    }
    fn after_call(&self, message: &CallReport) -> HookResult<()> {
        let note = match &*self.log.last() {
            Fact::CallEnded { report, .. } if **report == *message => "ended",
            _ => "before the record",
        };
        self.notes.lock().unwrap().push(note);
        None
    }
}

/// S2.18, S7.1: a hook is notified after the record, and with what it was: a message that a stop cut arrives
/// as cut.
#[tokio::test(start_paused = true)]
async fn hooks_are_told_after_the_record() {
    let (log, notes) = (Arc::new(Watched::default()), Arc::default());
    let hooks = Notified { log: Arc::clone(&log), notes: Arc::clone(&notes) };
    // The second reply hangs in the midst of its text.
    let builder = agent([ask(&["t"])]).tool(does("t", |_| async { Ok("paid".into()) })).hooks(hooks);
    let handle = builder.build().run_recorded(log, History::new(), "go").detach();
    until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    handle.quiet().await;
    assert_eq!(*notes.lock().unwrap(), ["whole", "ended", "cut"]);
}

/// A hook at one place that thinks for so long and then says this, and whether it came to that.
struct Thinks {
    place: &'static str,
    time: Duration,
    refuses: bool,
    asked: Arc<Notify>,
    finished: Arc<Mutex<usize>>,
}

impl Thinks {
    fn at<T: Send + 'static>(&self, place: &str, [proceed, refuse]: [T; 2]) -> HookResult<T> {
        if self.place != place {
            return None;
        }
        let says = if self.refuses { refuse } else { proceed };
        let (time, finished) = (self.time, Arc::clone(&self.finished));
        let asked = Arc::clone(&self.asked);
        from_future(async move {
            asked.notify_one();
            tokio::time::sleep(time).await;
            *finished.lock().unwrap() += 1;
            says
        })
    }
}

impl Hooks for Thinks {
    fn before_model(&self, _: u32, _: &History) -> HookResult<ModelVerdict> {
        self.at("before_model", [ModelVerdict::Proceed, ModelVerdict::Refuse("no".into())])
    }
    fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
        self.at("before_call", [CallVerdict::Proceed, CallVerdict::Refuse("no".into())])
    }
}

/// Asks for this stop while a hook thinks; how it ended, after how long, and whether the hook did its work.
async fn stopped_at(
    place: &'static str,
    time: Duration,
    refuses: bool,
    request: StopRequest,
) -> (safepoint::Outcome, Duration, usize) {
    let (asked, finished) = (Arc::new(Notify::new()), Arc::default());
    let hooks = Thinks { place, time, refuses, asked: Arc::clone(&asked), finished: Arc::clone(&finished) };
    let builder = agent([ask(&["t"]), say("end")]).tool(does("t", |_| async { Ok("r".into()) })).hooks(hooks);
    let handle = builder.build().run("go").detach();
    asked.notified().await;
    let began = Instant::now();
    handle.stop(request);
    let outcome = tokio::time::timeout(NEVER, handle.done()).await.expect("it settles");
    let took = began.elapsed();
    handle.quiet().await;
    let finished = *finished.lock().unwrap();
    (outcome, took, finished)
}

/// S2.18, S2.8: a stop at a safe point that matches where a hook thinks lets the hook finish; what it says is then of no use,
/// and nothing begins.
#[tokio::test(start_paused = true)]
async fn a_stop_at_a_safe_point_lets_a_hook_finish() {
    for place in ["before_model", "before_call"] {
        for refuses in [false, true] {
            let time = Duration::from_secs(3);
            let request = StopRequest::at(SafePoints::ANY);
            let (outcome, took, finished) = stopped_at(place, time, refuses, request).await;
            assert_eq!((outcome.ending(), took, finished), (Ending::Stopped, time, 1), "{place}");
            let receipt = outcome.receipt();
            let none = receipt.calls.iter().all(|call| call.status == CallStatus::NotStarted);
            assert!(none, "{place}: {:?}", receipt.calls);
        }
    }
}

/// S2.18, S2.8: no longer than its bound; and `Now` does not wait at all.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_hook_beyond_its_bound() {
    let bound = safepoint::Limits::default().callback_timeout;
    for place in ["before_model", "before_call"] {
        let polite = StopRequest::at(SafePoints::ANY);
        let (outcome, took, finished) = stopped_at(place, NEVER, false, polite).await;
        assert_eq!((outcome.ending(), took, finished), (Ending::Stopped, bound, 0), "{place}");
        let (outcome, took, finished) = stopped_at(place, NEVER, false, StopRequest::now()).await;
        assert_eq!((outcome.ending(), took, finished), (Ending::Stopped, Duration::ZERO, 0), "{place}");
    }
}

/// S2.18: a blocking hook, too, gets a complete message as such.
#[tokio::test]
async fn a_blocking_hook_is_told_after_the_record() {
    struct Blocks(Arc<Mutex<Option<Completion>>>);
    impl Hooks for Blocks {
        fn after_model(&self, message: &HookedMessage) -> HookResult<()> {
            let (seen, whole) = (Arc::clone(&self.0), message.whole.clone());
            blocking(move || *seen.lock().unwrap() = Some(whole))
        }
    }
    let seen = Arc::default();
    let outcome = agent([say("end")]).hooks(Blocks(Arc::clone(&seen))).build().run("go").await;
    assert_eq!((outcome.ending(), seen.lock().unwrap().clone()), (Ending::Done, Some(Completion::Complete)));
}
