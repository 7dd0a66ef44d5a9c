//! Handles for work that somebody else's runtime does: one that is over already, and one that is settled by hand.

use std::{fmt, sync::Arc};

use safepoint_scope::{Reason, SafePoints, Scope, Stop};

use super::{
    BackendSpec, RunInput,
    cell::{Start, WrappedRun},
    watch::Watcher,
};
use crate::run::RunHandle;

/// How work ended. Exhaustive: it has an answer, it failed, or it was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrappedEnd {
    /// It came to this answer.
    Done(String),
    /// It failed, and why. Under a stop that took effect, this is *stopped*: a failure is no evidence then (S4.5).
    Failed(String),
    /// It ended because it was asked to.
    Stopped,
}

/// The end came too late: the run has settled, or the work has been said to be over before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the end came too late: it is fixed already")]
pub struct TooLate;

/// A handle for work that is over already: for backends that answer at once. Needs no runtime.
#[must_use]
pub fn wrap_finished(spec: &BackendSpec, task: RunInput, end: WrappedEnd) -> RunHandle {
    let cell = WrappedRun::new(spec, task);
    let handle = RunHandle::of(cell.shared());
    if cell.begin() == Start::Begun && cell.end(end).is_err() {
        // Nobody else has it yet.
    }
    Watcher::new(cell).close();
    handle
}

/// A handle that you settle by hand, for work of a runtime of your own. The handle can be given away, and stopped, at
/// once; the work begins with [`PendingWork::begin`].
///
/// # Panics
/// Outside a tokio runtime.
pub fn wrap(spec: &BackendSpec, task: RunInput) -> (RunHandle, PendingWork) {
    let cell = WrappedRun::new(spec, task);
    let handle = RunHandle::of(cell.shared());
    // It outlives the run's own tasks, so it belongs to a scope of its own.
    let (engine, _nobody_stops_it) = Scope::root();
    drop(engine.spawn("a wrapped run", Watcher::new(Arc::clone(&cell)).run()));
    (handle, PendingWork { held: Held(cell) })
}

/// Work that has not begun.
#[must_use = "the run fails if this is dropped"]
pub struct PendingWork {
    held: Held,
}

/// Work that goes on. Clones are the same work, and the last one that is dropped without [`ActiveWork::complete`] fails it.
#[derive(Clone)]
pub struct ActiveWork {
    held: Arc<Held>,
}

impl PendingWork {
    /// Says that the work begins now: call it right before it does.
    ///
    /// # Errors
    /// The [`Stop`], if one was asked before: the work must not begin, and the run has ended as never started.
    pub fn begin(self) -> Result<ActiveWork, Stop> {
        match self.held.0.begin() {
            Start::Begun => Ok(ActiveWork { held: Arc::new(self.held) }),
            Start::Stopped(stop) => Err(stop),
        }
    }
}

impl ActiveWork {
    /// Sets what ends the work in your runtime. It is called once at most, off the async threads, with the first reason,
    /// when the run must end now; at once if that is so already. Later settings are ignored. Where the declared grade is
    /// [`StopSupport::None`](crate::receipt::StopSupport::None) it is never called.
    pub fn on_stop(&self, native: impl FnOnce(Reason) + Send + 'static) {
        self.held.0.set_native(Box::new(native));
    }

    /// Shows more text of the answer.
    pub fn say(&self, text: impl Into<String>) {
        self.held.0.say(text.into());
    }

    /// Whether the work must end now: an atomic load or two, for loops that block.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.held.0.shared().scope.is_stopping()
    }

    /// A boundary of your work at which it is whole, and which is these safe points.
    ///
    /// # Errors
    /// The [`Stop`], if what is asked takes effect here: end the work, and complete it as [`WrappedEnd::Stopped`].
    pub fn safe_point(&self, points: SafePoints) -> Result<(), Stop> {
        let cell = &self.held.0;
        cell.pass(points).inspect_err(|_| cell.observe(Some(points)))
    }

    /// Says how the work ended. The first word counts.
    ///
    /// # Errors
    /// [`TooLate`] if it does not count: then it is told in the audit, and changes nothing.
    pub fn complete(&self, end: WrappedEnd) -> Result<(), TooLate> {
        self.held.0.end(end)
    }
}

/// The right to say how the work ends.
struct Held(Arc<WrappedRun>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl fmt::Debug for PendingWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("run", &self.held.0.shared().run).finish_non_exhaustive()
    }
}

impl fmt::Debug for ActiveWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Working").field("run", &self.held.0.shared().run).finish_non_exhaustive()
    }
}
