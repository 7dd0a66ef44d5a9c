//! What a run's handle and its conductor both see: the ask, the feeds, the mailbox, and the cells of the outcome.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use safepoint_scope::{Asked, Scope, StopHandle, StopRequest};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::{
    approval::Decision,
    event::{EventKind, Feed},
    executor::Ending,
    ids::{ApprovalId, CallId, Path, RunId},
    limits::Limits,
    model::ModelError,
    outcome::Outcome,
    receipt::{CleanupReport, ProcessReport, Quiet},
    steer::Steer,
};

/// One run, as seen from outside.
pub(crate) struct Shared {
    pub(crate) run: RunId,
    pub(crate) path: Path,
    pub(crate) scope: Scope,
    pub(crate) stop: StopHandle,
    pub(crate) feed: Arc<Feed>,
    pub(crate) audit: Arc<Feed>,
    /// Boxed, since the mailbox keeps room for many at once, and ten thousand waiting runs have one each.
    mailbox: mpsc::UnboundedSender<Box<Msg>>,
    /// Every call that was looked at. Those that are over are told so: a request then comes too late.
    calls: Mutex<HashMap<CallId, StopHandle>>,
    outcome: OnceLock<Outcome>,
    quiet: OnceLock<Quiet>,
    published: Notify,
}

/// What reaches the conductor. Exhaustive: it must act on each.
pub(crate) enum Msg {
    /// The model's stream is over.
    ModelEnded { round: u32, error: Option<ModelError> },
    /// The model says more than it may.
    TooLong { round: u32 },
    /// A call is over.
    CallEnded { call_id: CallId, ending: Ending },
    /// What a stopped call left to clean up is done.
    Cleaned { call_id: CallId, cleanups: Vec<CleanupReport>, processes: Vec<ProcessReport> },
    /// A call that was left running came back.
    Late { call_id: CallId, what: String },
    /// Somebody decided.
    Decided { id: ApprovalId, decision: Decision, reply: oneshot::Sender<Result<(), DecideError>> },
    /// Nobody did in time.
    Expired { id: ApprovalId },
    /// A hook answered.
    Hooked { key: HookKey, answer: HookAnswer },
    /// The run is steered; where it landed is answered when it is recorded.
    Steer { steer: Steer, landed: oneshot::Sender<u32> },
    /// A single call was asked to stop: look again.
    Look,
}

/// Which hook answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HookKey {
    Model(u32),
    Call(CallId),
}

/// What a hook came to.
pub(crate) enum HookAnswer {
    Verdict(crate::hook::Verdict),
    Panicked(String),
    Overdue,
}

/// There is no conductor any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

/// Why a decision was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// Nobody asked that, or it is decided, expired or withdrawn.
    #[error("no open approval has this id: it was decided, expired or withdrawn")]
    NotOpen,
    /// The run has ended.
    #[error("the run has ended")]
    RunEnded,
}

impl Shared {
    pub(crate) fn new(run: RunId, limits: &Limits) -> (Arc<Self>, mpsc::UnboundedReceiver<Box<Msg>>) {
        let (scope, stop) = Scope::root();
        let (mailbox, received) = mpsc::unbounded_channel();
        let shared = Self {
            run,
            path: Path::default(),
            scope,
            stop,
            feed: Arc::new(Feed::new(limits.retained_deltas)),
            audit: Arc::new(Feed::new(limits.retained_deltas)),
            mailbox,
            calls: Mutex::default(),
            outcome: OnceLock::new(),
            quiet: OnceLock::new(),
            published: Notify::new(),
        };
        (Arc::new(shared), received)
    }

    pub(crate) fn post(&self, msg: Msg) {
        if self.send(msg).is_err() {
            // The conductor has gone: the run is settled and quiet, and nobody is left to tell.
        }
    }

    /// Posts it, unless the conductor has gone.
    pub(crate) fn send(&self, msg: Msg) -> Result<(), Gone> {
        self.mailbox.send(Box::new(msg)).map_err(|_unsent| Gone)
    }

    /// Fixes the outcome: the first write wins, and the stream of events ends with `last`.
    pub(crate) fn publish(&self, outcome: Outcome, last: EventKind) {
        if self.outcome.set(outcome).is_ok() {
            self.feed.close(last);
            self.published.notify_waiters();
        }
    }

    pub(crate) fn publish_quiet(&self, quiet: Quiet) {
        let last = EventKind::Quiet(Arc::clone(quiet.receipt()));
        if self.quiet.set(quiet).is_ok() {
            self.audit.close(last);
            self.published.notify_waiters();
        }
    }

    pub(crate) fn outcome_now(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    pub(crate) async fn outcome(&self) -> Outcome {
        self.published(|| self.outcome.get().cloned()).await
    }

    pub(crate) async fn quiet(&self) -> Quiet {
        self.published(|| self.quiet.get().cloned()).await
    }

    /// Registers, then looks, so that a publication in between is not missed.
    async fn published<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let published = self.published.notified();
            if let Some(found) = look() {
                return found;
            }
            published.await;
        }
    }

    pub(crate) fn stop_call(&self, id: &CallId, request: StopRequest) -> Option<Asked> {
        let handle = self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()?;
        let asked = handle.stop(request);
        self.post(Msg::Look);
        Some(asked)
    }

    pub(crate) fn name_call(&self, id: CallId, stop: StopHandle) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id, stop);
    }
}
