//! What is explored. Where an actor of the engine is needed, it is in small: it hears and answers as the real one does, and
//! the mailbox, the door and the tickets between it and whoever asks are the real ones.

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

/// A task of its own: parked until it is woken. Where nobody wakes it any more, loom says so.
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
