//! State shared by the handle, the maker and the watcher of a wrapped run.
//!
//! **Invariants**: the work begins at most once, and not after a stop took effect; the first end counts, and
//! none after the settlement; the native stop is called at most once, and not after the work has ended.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::{Effect, QuietGuard, Reason, SafePoints, Stop};
use serde_json::json;
use tokio::{runtime, sync::Notify, time::Instant};

use super::{BackendSpec, RunInput, TooLate, WrappedEnd};
use crate::{
    run::shared::SharedRun,
    sync::{Mutex, callback, clock},
    value::{
        approval::OnUnknownEffect,
        effect::EffectClass,
        event::{EventKind, Fact},
        history::{History, Message},
        ids::{CallId, Path, RunId},
        limits::Limits,
        receipt::{CallKind, StopSupport, TookEffect},
    },
};

/// A boundary of the wrapped work.
enum Boundary {}

impl Effect for Boundary {
    type Announcement = ();
}

type Native = Box<dyn FnOnce(Reason) + Send>;

/// One wrapped run.
pub(super) struct WrappedRun {
    shared: Arc<SharedRun>,
    pub(super) spec: BackendSpec,
    pub(super) history: History,
    pub(super) opened_at: Timestamp,
    pub(super) opened: Instant,
    pub(super) limits: Limits,
    /// Guards what the work has come to. Under it a gate of the scope may be passed, a label entered, and an
    /// event shown: the order of locks is this one, then those of the scope and of the feeds. The native stop
    /// and the drops of what it holds run after it is released. Nothing is awaited under it.
    state: Mutex<WorkState>,
    moved: Notify,
}

/// The state of the work.
#[derive(Default)]
pub(super) struct WorkState {
    pub(super) begun_at: Option<Timestamp>,
    pub(super) end: Option<WrappedEnd>,
    pub(super) said: String,
    /// When and how a stop took effect.
    pub(super) fired: Option<TookEffect>,
    is_settled: bool,
    native: Option<Native>,
    is_delivered: bool,
    /// Keeps the run from being quiet while the work continues.
    hold: Option<QuietGuard>,
}

/// The one call that stands for the work.
pub(super) const WORK: &str = "work";

impl WrappedRun {
    pub(super) fn new(spec: &BackendSpec, task: RunInput) -> Arc<Self> {
        let RunInput { mut history, input } = task;
        history.close();
        history.push(Message::User(input));
        let limits = Limits::default();
        // Its messages are not read: a steer returns, and a decision is refused.
        let (shared, _mail) = SharedRun::new(RunId::fresh(), Path::default(), &limits);
        let opened_at = clock::now();
        let fact = Fact::AttemptOpened {
            run: shared.run.clone(),
            attempt: 1,
            history: Some(history.clone()),
            at: opened_at,
            on_unknown: OnUnknownEffect::Tell,
            limits: None,
        };
        let cell = Self {
            shared,
            spec: spec.clone(),
            history,
            opened_at,
            opened: Instant::now(),
            limits,
            state: Mutex::default(),
            moved: Notify::new(),
        };
        cell.show(fact);
        Arc::new(cell)
    }

    pub(super) fn shared(&self) -> &Arc<SharedRun> {
        &self.shared
    }

    pub(super) fn show(&self, fact: Fact) {
        self.shared.feed.push(EventKind::Fact(Arc::new(fact)));
    }

    /// Begins the work, unless the run must end already.
    pub(super) fn begin(&self) -> Result<(), Stop> {
        let mut state = self.state.lock();
        // Nothing has happened yet, so this is a boundary for every set of points (S2.1).
        // Under the lock: a watcher that finds the work not begun, after a stop, knows that it will not
        // begin.
        if let Err(stop) = self.pass(SafePoints::ANY) {
            drop(state);
            self.observe(Some(SafePoints::ANY));
            return Err(stop);
        }
        let at = clock::now();
        state.begun_at = Some(at);
        state.hold = Some(self.shared.scope.hold(format!("the work of {}", self.spec.name)));
        drop(state);
        self.show(Fact::CallStarted {
            call_id: CallId::from(WORK),
            name: self.spec.name.clone(),
            round: 1,
            args: json!({}).into(),
            effect: EffectClass::Unsafe,
            key: format!("{}:{WORK}", self.shared.run),
            work: CallKind::Tool,
            at,
        });
        Ok(())
    }

    /// A boundary of the work with these points.
    pub(super) fn pass(&self, points: SafePoints) -> Result<(), Stop> {
        self.shared.scope.pass::<Boundary>(points, &()).map(drop)
    }

    pub(super) fn add_text(&self, text: String) {
        let mut state = self.state.lock();
        if !state.is_settled && state.end.is_none() {
            state.said.push_str(&text);
            self.shared.feed.push(EventKind::Text(text.into()));
        }
    }

    /// Ends the work. After the settlement only the audit gets that.
    pub(super) fn end(&self, end: WrappedEnd) -> Result<(), TooLate> {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return Err(TooLate);
        }
        let late = state.is_settled.then(|| describe(&end));
        // The work may see a stop, and end by it, before the watcher does.
        self.note_stop(&mut state);
        state.end = Some(end);
        if let Some(what) = &late {
            self.shared.audit.push(EventKind::Late(what.clone()));
        }
        let (hold, native) = (state.hold.take(), state.native.take());
        drop(state);
        drop((hold, native));
        self.moved.notify_waiters();
        late.map_or(Ok(()), |_| Err(TooLate))
    }

    /// The last handle that could end the work is gone.
    pub(super) fn end_without_result(&self) {
        let what = "the work was dropped without an end".to_owned();
        if self.end(WrappedEnd::Failed(what)).is_err() {
            // Its end was already set.
        }
    }

    /// A stop takes effect, the first time.
    pub(super) fn observe(&self, gate: Option<SafePoints>) {
        if self.shared.scope.demand().is_some() {
            self.state.lock().fired.get_or_insert_with(|| TookEffect::just_now(&self.shared.scope, gate));
        }
    }

    /// Notes a stop that ends the work now.
    fn note_stop(&self, state: &mut WorkState) {
        if self.shared.scope.is_stopping() {
            state.fired.get_or_insert_with(|| TookEffect::just_now(&self.shared.scope, None));
        }
    }

    pub(super) fn set_native(&self, native: Native) {
        let mut state = self.state.lock();
        if state.native.is_none() && state.end.is_none() && !state.is_delivered {
            state.native = Some(native);
        }
        drop(state);
        // Delivered after it is set: a stop in between is seen either here or by the setter.
        self.deliver();
    }

    /// Calls the native stop, once, if there is a stop and the work can take it.
    pub(super) fn deliver(&self) {
        let scope = &self.shared.scope;
        if self.spec.grade == StopSupport::None || !scope.is_stopping() {
            return;
        }
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        let (Some(native), Some(reason)) = (state.native.take(), scope.reason()) else { return };
        self.note_stop(&mut state);
        state.is_delivered = true;
        drop(state);
        let audit = Arc::clone(&self.shared.audit);
        let run = move || {
            if let Err(callback::Panicked(message)) = callback::call(|| native(reason)) {
                audit.push(EventKind::Late(format!("the native stop panicked: {message}")));
            }
        };
        if runtime::Handle::try_current().is_ok() {
            drop(scope.spawn_blocking("the native stop", run));
        } else {
            run();
        }
    }

    /// Waits until the work is over.
    pub(super) async fn over(&self) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if self.state.lock().end.is_some() {
                return;
            }
            moved.await;
        }
    }

    /// Fixes how it ended, with what is known then; `None` if that was done before.
    pub(super) fn settle<T>(&self, account: impl FnOnce(&WorkState) -> T) -> Option<T> {
        let mut state = self.state.lock();
        if state.is_settled {
            return None;
        }
        state.is_settled = true;
        Some(account(&state))
    }

    /// Whether the work began.
    pub(super) fn has_begun(&self) -> bool {
        self.state.lock().begun_at.is_some()
    }
}

fn describe(end: &WrappedEnd) -> String {
    match end {
        WrappedEnd::Done(text) => format!("the work came to an answer of {} bytes", text.len()),
        WrappedEnd::Failed(why) => format!("the work failed: {why}"),
        WrappedEnd::Stopped => "the work has ended".into(),
    }
}
