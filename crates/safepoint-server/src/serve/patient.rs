//! A connection whose client takes what is sent within a time, and may close its own side before it has its answer.
//!
//! **Invariants**: the end of a client's side is kept back while an answer that is no stream is under way, and for a bounded time; where
//! a lost client is a stop, it is not kept back.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use crate::fan::STALLED;

/// How long the answer may take of a client that has closed its side: it may have gone.
const LEFT: Duration = Duration::from_secs(10);

/// How far the answer to the request is that the connection is at.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerUnderWay(Arc<Mutex<AnswerStage>>);

/// Held for one look or one entry; no other lock is taken under it.
#[derive(Debug, Default)]
struct AnswerStage {
    at: AnswerAt,
    /// What looks again at the end of the client's side, which was kept back.
    looks: Option<Waker>,
}

/// Exhaustive: none is under way for which the end of the client's side is kept back, it is made, or it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AnswerAt {
    #[default]
    Nowhere,
    Made,
    Written,
}

impl AnswerUnderWay {
    /// The client waits for an answer.
    pub(super) fn begin(&self) {
        self.stage().at = AnswerAt::Made;
    }

    /// The answer is there, and is written next.
    pub(super) fn is_made(&self) {
        let mut stage = self.stage();
        if stage.at == AnswerAt::Made {
            stage.at = AnswerAt::Written;
        }
    }

    /// A client that has closed its side gets none, or no more.
    pub(super) fn end(&self) {
        let mut stage = self.stage();
        stage.at = AnswerAt::Nowhere;
        if let Some(looks) = stage.looks.take() {
            looks.wake();
        }
    }

    /// What was to be written is.
    fn is_flushed(&self) {
        if self.stage().at == AnswerAt::Written {
            self.end();
        }
    }

    /// Whether the end of the client's side is kept back; then it is looked at again once that is over.
    fn keeps_back(&self, looks: &Waker) -> bool {
        let mut stage = self.stage();
        let keeps = stage.at != AnswerAt::Nowhere;
        if keeps {
            stage.looks = Some(looks.clone());
        }
        keeps
    }

    fn stage(&self) -> MutexGuard<'_, AnswerStage> {
        self.0.lock().expect("no code under this lock panics")
    }
}

/// The connection.
pub(super) struct Patient {
    stream: TcpStream,
    answer: AnswerUnderWay,
    /// Until when, while it takes nothing.
    until: Option<Pin<Box<Sleep>>>,
    /// Until when the end of its side is kept back, once that has come.
    left: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(stream: TcpStream, answer: AnswerUnderWay) -> Self {
        Self { stream, answer, until: None, left: None }
    }

    pub(super) fn into_socket(self) -> TcpStream {
        self.stream
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        match until.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let has_ended = matches!(read, Poll::Ready(Ok(()))) && buf.filled().len() == before;
        if !has_ended || buf.remaining() == 0 || !self.answer.keeps_back(cx.waker()) {
            return read;
        }
        let left = self.left.get_or_insert_with(|| Box::pin(sleep(LEFT)));
        left.as_mut().poll(cx).map(Ok)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.answer.is_flushed();
        }
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        time::{Instant, pause, timeout},
    };

    use super::*;

    /// A connection whose client has closed its side, what is known of its answer, and the client. From here on the clock is paused.
    async fn half_closed() -> (Patient, AnswerUnderWay, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.shutdown().await.unwrap();
        timeout(LEFT, stream.readable()).await.unwrap().unwrap();
        pause();
        let answer = AnswerUnderWay::default();
        (Patient::new(stream, answer.clone()), answer, client)
    }

    /// How long it takes until the end of the client's side is read.
    async fn ends_after(connection: &mut Patient) -> Duration {
        let begun = Instant::now();
        let read = timeout(LEFT * 2, connection.read(&mut [0; 8])).await;
        assert_eq!(read.expect("it is kept back for a time").unwrap(), 0);
        begun.elapsed()
    }

    /// S13.57: while an answer is made the end of the client's side is kept back, and no longer than for its time.
    #[tokio::test]
    async fn the_end_of_a_side_is_kept_back_for_a_time() {
        let (mut connection, answer, _client) = half_closed().await;
        answer.begin();
        let waited = ends_after(&mut connection).await;
        assert!(waited >= LEFT && waited < LEFT * 2, "{waited:?}");
    }

    /// S13.57: it is read at once behind the answer, and where there is none.
    #[tokio::test]
    async fn the_end_of_a_side_is_read_behind_the_answer() {
        let (mut connection, answer, _client) = half_closed().await;
        answer.begin();
        connection.flush().await.unwrap();
        assert!(answer.keeps_back(Waker::noop()), "it is made");
        answer.is_made();
        assert!(answer.keeps_back(Waker::noop()), "it is written next");
        connection.flush().await.unwrap();
        assert_eq!(ends_after(&mut connection).await, Duration::ZERO);
    }

    /// S13.57: who looks for the end of the side while it is kept back finds it once that is over.
    #[tokio::test]
    async fn the_end_of_a_side_that_was_kept_back_is_found() {
        let (mut connection, answer, _client) = half_closed().await;
        answer.begin();
        let ends = ends_after(&mut connection);
        let (waited, ()) = futures_util::future::join(ends, async { answer.end() }).await;
        assert_eq!(waited, Duration::ZERO);
    }
}
