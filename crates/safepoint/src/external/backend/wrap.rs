//! Handles for work that another runtime does: one that is already over, and one that is settled by hand.

use std::{fmt, sync::Arc};

use safepoint_scope::{Reason, SafePoints, Stop, Task};

use super::{BackendSpec, RunInput, state::WrappedRun, watch::Watcher};
use crate::run::RunHandle;

/// How work ended. Exhaustive: it has an answer, it failed, or it was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrappedEnd {
    /// It has this answer.
    Done(String),
    /// It failed, and why. Under a stop that took effect, this is *stopped*: a failure proves nothing then
    /// (S4.5).
    Failed(String),
    /// It ended because of the stop.
    Stopped,
}

/// The end came too late: the run has settled, or the work was already reported as over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the end came too late: it is fixed already")]
pub struct TooLate;

/// A handle for work that is already over: for backends that answer at once. Needs no runtime.
#[must_use]
pub fn wrap_finished(spec: &BackendSpec, task: RunInput, end: WrappedEnd) -> RunHandle {
    let cell = WrappedRun::new(spec, task);
    let handle = RunHandle::of(cell.shared());
    if cell.begin().is_ok() && cell.end(end).is_err() {
        // The handle is new, so no other end can come first.
    }
    Watcher::new(cell).close();
    handle
}

/// A handle that you settle by hand, for work of your own runtime. The handle can be passed on, and stopped,
/// at once; the work begins with [`PendingWork::begin`].
///
/// # Panics
/// Outside a tokio runtime.
pub fn wrap(spec: &BackendSpec, task: RunInput) -> (RunHandle, PendingWork) {
    let cell = WrappedRun::new(spec, task);
    let handle = RunHandle::of(cell.shared());
    // The watcher outlives the run's tasks, so it is in no scope.
    drop(Task::unscoped("a wrapped run", Watcher::new(Arc::clone(&cell)).run()));
    (handle, PendingWork { held: WorkHold(cell) })
}

/// Work that has not begun.
#[must_use = "the run fails if this is dropped"]
pub struct PendingWork {
    held: WorkHold,
}

/// Running work. Clones are the same work; dropping the last one without [`ActiveWork::complete`] fails it.
#[derive(Clone)]
pub struct ActiveWork {
    held: Arc<WorkHold>,
}

impl PendingWork {
    /// Begins the work: call it right before the work starts.
    ///
    /// # Errors
    /// The [`Stop`], if one was requested before: the work must not begin, and the run has ended as never
    /// started.
    pub fn begin(self) -> Result<ActiveWork, Stop> {
        self.held.0.begin()?;
        Ok(ActiveWork { held: Arc::new(self.held) })
    }
}

impl ActiveWork {
    /// Sets what ends the work in your runtime. It is called at most once, off the async threads, with the
    /// first reason, when the run must end now; at once if that is so already. Later settings are ignored.
    /// With the declared grade [`StopSupport::None`](crate::receipt::StopSupport::None) it is never called.
    pub fn on_stop(&self, native: impl FnOnce(Reason) + Send + 'static) {
        self.held.0.set_native(Box::new(native));
    }

    /// Shows more text of the answer.
    pub fn say(&self, text: impl Into<String>) {
        self.held.0.add_text(text.into());
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

    /// Sets how the work ended. The first call counts.
    ///
    /// # Errors
    /// [`TooLate`] if it does not count: then the audit gets it, and nothing else changes.
    pub fn complete(&self, end: WrappedEnd) -> Result<(), TooLate> {
        self.held.0.end(end)
    }
}

/// Shared by all clones; its drop ends work without an end.
struct WorkHold(Arc<WrappedRun>);

impl Drop for WorkHold {
    fn drop(&mut self) {
        self.0.end_without_result();
    }
}

impl fmt::Debug for PendingWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingWork").field("run", &self.held.0.shared().run).finish_non_exhaustive()
    }
}

impl fmt::Debug for ActiveWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveWork").field("run", &self.held.0.shared().run).finish_non_exhaustive()
    }
}
