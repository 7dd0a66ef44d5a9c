//! Tasks that belong to a run: it is quiet only after them. The one place that spawns.

use std::{
    any::Any,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::task::{AbortHandle, JoinHandle};

use crate::{
    scope::{node::QuietGuard, tracker::Label},
    simulation::{SimulatedMachine, TaskTurn, here},
};

/// A task of a run. Awaiting it gives its output. If the handle is dropped, the task continues and is still counted.
#[must_use = "await it, or drop it to let it continue"]
pub struct Task<T> {
    handle: JoinHandle<Result<T, TaskEnd>>,
    /// Whether it is a thread, which nothing can drop.
    is_blocking: bool,
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

/// Drops a task's future at its next poll, and asks for that poll at once. The default drops nothing.
#[derive(Clone, Debug, Default)]
pub struct DropHandle(Option<AbortHandle>);

impl DropHandle {
    /// Has the future dropped. A future that never yields is dropped when it first does.
    pub fn drop_now(&self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl<T: Send + 'static> Task<T> {
    pub(crate) fn spawn(
        hold: QuietGuard,
        label: Label,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Self {
        let handle = tokio::spawn(Tracked::new(work, Some(hold)));
        Self { handle, is_blocking: false, label }
    }

    /// Spawns work that belongs to no scope: nothing waits for it to be quiet. For what outlives the scope that it serves,
    /// such as the task that settles a run.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn unscoped(label: impl Into<Label>, work: impl Future<Output = T> + Send + 'static) -> Self {
        let handle = tokio::spawn(Tracked::new(work, None));
        Self { handle, is_blocking: false, label: label.into() }
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
        Self { handle, is_blocking: true, label }
    }
}

impl<T> Task<T> {
    /// What can drop the task's future.
    #[must_use]
    pub fn dropper(&self) -> DropHandle {
        DropHandle((!self.is_blocking).then(|| self.handle.abort_handle()))
    }

    /// Has its future dropped, as [`DropHandle::drop_now`] does. Work that blocks its thread continues.
    pub fn drop_now(&self) {
        self.dropper().drop_now();
    }

    /// Its name, as it stands among what is alive.
    #[must_use]
    pub fn label(&self) -> &Label {
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
            .field("label", &self.label.to_string())
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

pin_project! {
/// The future inside the task. The hold is released after the work's own drop, also when that drop panics: the fields
/// are dropped in this order.
struct Tracked<F> {
    #[pin]
    work: Option<F>,
    _hold: Option<QuietGuard>,
    // The machine on which it runs, if that is one of a simulation.
    machine: Option<SimulatedMachine>,
}
}

impl<F> Tracked<F> {
    fn new(work: F, hold: Option<QuietGuard>) -> Self {
        Self { work: Some(work), _hold: hold, machine: here(SimulatedMachine::clone) }
    }
}

impl<F: Future> Tracked<F> {
    fn poll_work(mut slot: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<Result<F::Output, TaskEnd>> {
        let Some(work) = slot.as_mut().as_pin_mut() else { return Poll::Ready(Err(TaskEnd::Dropped)) };
        let end = match catch_unwind(AssertUnwindSafe(|| work.poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(TaskEnd::Panicked(message(&*panic))),
        };
        if catch_unwind(AssertUnwindSafe(|| slot.set(None))).is_err() {
            // Its end is known: a panic in its drop does not change it.
        }
        Poll::Ready(end)
    }
}

impl<F: Future> Future for Tracked<F> {
    type Output = Result<F::Output, TaskEnd>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(machine) = this.machine.clone() else { return Self::poll_work(this.work, cx) };
        match machine.polled(cx, |cx| Self::poll_work(this.work.as_mut(), cx)) {
            TaskTurn::Polled(polled) => polled,
            TaskTurn::Paused => Poll::Pending,
            TaskTurn::Crashed => {
                machine.on_its_clocks(|| this.work.set(None));
                Poll::Ready(Err(TaskEnd::Dropped))
            }
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
