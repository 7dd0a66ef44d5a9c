//! A thread that reads, and can do nothing else.

use std::{
    sync::{Arc, Weak, mpsc},
    thread,
};

use rusqlite::Connection;
use safepoint::{
    raw::store::{Cause, StoreFuture},
    store::Error,
};
use tokio::sync::oneshot;

use super::fail::Fail;

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// Asks a thread that reads. The thread ends with the last question after this is dropped.
#[derive(Debug)]
pub(super) struct ReaderThread {
    questions: Arc<mpsc::Sender<Question>>,
    thread: thread::JoinHandle<()>,
}

impl ReaderThread {
    pub(super) fn start(name: &str, connection: Connection) -> Result<Self, Error> {
        let (questions, asked) = mpsc::channel::<Question>();
        let read = move || asked.into_iter().for_each(|question| question(&connection));
        let thread = thread::Builder::new().name(name.into()).spawn(read);
        Ok(Self {
            questions: Arc::new(questions),
            thread: thread.map_err(|why| Error::Failed(Cause::new(why)))?,
        })
    }

    /// Waits until every question is answered and the file is closed.
    pub(super) fn close(self) {
        drop(self.questions);
        if self.thread.join().is_err() {
            // The caller of the request that panicked already got the answer that the store is gone.
        }
    }

    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fail> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        ask(&self.questions, question)
    }

    /// Asks it as long as it is there.
    pub(super) fn downgrade(&self) -> WeakReader {
        WeakReader(Arc::downgrade(&self.questions))
    }
}

/// Asks a thread that reads, and does not keep it.
pub(super) struct WeakReader(Weak<mpsc::Sender<Question>>);

impl WeakReader {
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fail> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        match self.0.upgrade() {
            Some(questions) => ask(&questions, question),
            None => Box::pin(async { Err(Error::Gone) }),
        }
    }
}

fn ask<T: Send + 'static>(
    questions: &mpsc::Sender<Question>,
    question: impl FnOnce(&Connection) -> Result<T, Fail> + Send + 'static,
) -> StoreFuture<'static, T> {
    let (reply, answer) = oneshot::channel();
    let ask = move |connection: &Connection| {
        if reply.send(question(connection).map_err(Error::from)).is_err() {
            // The caller is gone, and nothing was changed.
        }
    };
    let sent = questions.send(Box::new(ask));
    Box::pin(async move {
        if sent.is_err() {
            return Err(Error::Gone);
        }
        answer.await.unwrap_or(Err(Error::Gone))
    })
}
