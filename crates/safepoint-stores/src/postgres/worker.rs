//! The thread of a store: it has the connections, and does what is asked of them.
//!
//! A store is asked from any runtime, or from one whose clock stands still; its connections live in a runtime of their own.
//!
//! **Invariants:** what was asked is done to its end, also where no caller waits for it any more. The thread ends with the last request
//! after the store is dropped.

use std::{
    future::Future,
    thread::{Builder, JoinHandle},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    raw::store::{Cause, StoreFuture},
    store::Error,
};
use tokio::sync::{
    mpsc::{self, UnboundedReceiver, UnboundedSender, WeakUnboundedSender},
    oneshot,
};

type Task = BoxFuture<'static, ()>;

/// Asks the thread. It ends when every one of these is dropped, and all that was asked is done.
#[derive(Clone, Debug)]
pub(super) struct PgWorker {
    tasks: UnboundedSender<Task>,
}

/// Asks the thread as long as it is there.
#[derive(Clone, Debug)]
pub(super) struct WeakWorker(WeakUnboundedSender<Task>);

impl PgWorker {
    pub(super) fn start() -> Result<(Self, JoinHandle<()>), Error> {
        let failed = |why| Error::Failed(Cause::new(why));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (tasks, asked) = mpsc::unbounded_channel();
        let thread = Builder::new().name("safepoint-postgres".into());
        let thread = thread.spawn(move || runtime.block_on(work(asked))).map_err(failed)?;
        Ok((Self { tasks }, thread))
    }

    pub(super) fn downgrade(&self) -> WeakWorker {
        WeakWorker(self.tasks.downgrade())
    }

    /// Does this beside everything else.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.tasks.send(Box::pin(task)).is_err() {
            // The thread is gone, and with it what this would have been about.
        }
    }

    /// Does this, and gives its answer.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (reply, answer) = oneshot::channel();
        self.begin(async move { tell(reply, question.await) });
        answer_of(answer)
    }
}

impl WeakWorker {
    pub(super) fn upgrade(&self) -> Option<PgWorker> {
        Some(PgWorker { tasks: self.0.upgrade()? })
    }
}

/// Gives an answer to its caller, if that one still waits.
pub(super) fn tell<T>(reply: oneshot::Sender<Result<T, Error>>, answer: Result<T, Error>) {
    if reply.send(answer).is_err() {
        // The caller is gone; what was done is done.
    }
}

pub(super) fn answer_of<T: Send + 'static>(
    answer: oneshot::Receiver<Result<T, Error>>,
) -> StoreFuture<'static, T> {
    Box::pin(async { answer.await.unwrap_or(Err(Error::Gone)) })
}

async fn work(mut asked: UnboundedReceiver<Task>) {
    let tasks = stream::poll_fn(move |cx| asked.poll_recv(cx));
    tasks.for_each_concurrent(None, |task| task).await;
}
