//! Tasks that belong to a run: it is quiet only after them. The one place that spawns.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::task::JoinHandle;

use crate::scope::{node::QuietGuard, tracker::Label};

/// A task of a run. Awaiting it gives its output. If the handle is dropped, the task continues and is still counted.
#[must_use = "await it, or drop it to let it continue"]
pub struct Task<T> {
    handle: JoinHandle<Result<T, TaskEnd>>,
    dropper: DropHandle,
    label: Label,
}

/// Why a task gave no output. Exhaustive: it ended by itself or it was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// It panicked, with this message.
    Panicked(String),
    /// Its future was dropped: by [`DropHandle::drop_now`], or because the tokio runtime shut down.
    Dropped,
}

/// Drops a task's future at its next poll, and asks for that poll at once.
#[derive(Clone, Debug, Default)]
pub struct DropHandle(Arc<Drops>);

#[derive(Debug, Default)]
struct Drops {
    /// Set once and never taken back.
    wanted: AtomicBool,
    /// Held to store or to take the waker. The waker is called after the lock is released. It is always the
    /// waker of the one task that polls, so replacing it frees no other task.
    waker: Mutex<Option<Waker>>,
}

impl DropHandle {
    /// Has the future dropped. A future that never yields is dropped when it first does.
    pub fn drop_now(&self) {
        // The flag is set before the lock, and the task reads it after the lock: if the task stored its waker first, this
        // takes the waker and wakes it; otherwise the task's lock follows this one, and its read sees the flag. The lock
        // alone orders this; SeqCst is for simplicity, since a drop is rare.
        self.0.wanted.store(true, Ordering::SeqCst);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_wanted(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !waker.as_ref().is_some_and(|held| held.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        drop(waker);
        // After the lock that `drop_now` takes: see there.
        self.0.wanted.load(Ordering::SeqCst)
    }
}

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(
        hold: QuietGuard,
        label: Label,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        let dropper = DropHandle::default();
        let tracked = Tracked { work: Some(Box::pin(work)), dropper: dropper.clone(), _hold: hold };
        Self { handle: tokio::spawn(tracked), dropper, label }
    }

    pub(crate) fn spawn_blocking(
        hold: QuietGuard,
        label: Label,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        let handle = tokio::task::spawn_blocking(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(hold);
            result.map_err(|panic| TaskEnd::Panicked(message(&*panic)))
        });
        Self { handle, dropper: DropHandle::default(), label }
    }
}

impl<T> Task<T> {
    /// What can drop the task's future.
    #[must_use]
    pub fn dropper(&self) -> DropHandle {
        self.dropper.clone()
    }

    /// Has its future dropped, as [`DropHandle::drop_now`] does. Work that blocks its thread continues.
    pub fn drop_now(&self) {
        self.dropper.drop_now();
    }

    /// Its name, as it stands among what is alive.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskEnd>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(cx).map(|joined| match joined {
            Ok(result) => result,
            Err(error) if error.is_panic() => Err(TaskEnd::Panicked(message(&*error.into_panic()))),
            Err(_shut_down) => Err(TaskEnd::Dropped),
        })
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("label", &self.label)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// The future inside the task. The hold is released after the work's own drop, also when that drop panics.
struct Tracked<F> {
    work: Option<Pin<Box<F>>>,
    dropper: DropHandle,
    _hold: QuietGuard,
}

impl<F: Future> Future for Tracked<F> {
    type Output = Result<F::Output, TaskEnd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(work) = this.work.as_mut() else { return Poll::Ready(Err(TaskEnd::Dropped)) };
        let end = if this.dropper.is_wanted(cx) {
            Err(TaskEnd::Dropped)
        } else {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(output)) => Ok(output),
                Err(panic) => Err(TaskEnd::Panicked(message(&*panic))),
            }
        };
        let work = this.work.take();
        match (catch_unwind(AssertUnwindSafe(|| drop(work))), end) {
            (Err(panic), Err(TaskEnd::Dropped)) => Poll::Ready(Err(TaskEnd::Panicked(message(&*panic)))),
            (_, end) => Poll::Ready(end),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
