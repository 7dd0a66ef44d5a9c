//! What is explored. Where an actor of the engine is needed, it is a small model: it receives and answers as the real one does.
//! The mailbox, the inbox and the tickets between it and its callers are the real ones.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use loom::{sync::Notify, thread};

mod actor;
mod mailbox;
mod watched;

/// Lets all interleavings happen, save that no thread is held up more often than so.
pub(crate) fn explore(preemptions: usize, play: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(play);
}

/// A separate task: parked until it is woken. Loom reports a task that nothing wakes any more.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let parked = Arc::new(Parked(Notify::new()));
    let waker = Waker::from(Arc::clone(&parked));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        parked.0.wait();
    }
}

struct Parked(Notify);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}
