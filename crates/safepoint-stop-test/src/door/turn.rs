//! A turn of a server that streams its answer: what its caller reads, and how the caller gets control back.
//!
//! **Invariants:** the request is sent and read by a task of its own, so that also a server that answers nothing until its model has
//! spoken is asked. Dropping the turn's answer closes its connection.

use futures_util::future::{BoxFuture, Either, select};
use http::HeaderMap;
use safepoint_http::Request;
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use super::{Told, http::answered};
use crate::claims::Said;

/// How many events may wait for the caller before the server has to.
const WAITING: usize = 256;

/// What a caller reads.
pub(super) enum Heard {
    /// The answer has begun, with these headers.
    Begun(HeaderMap),
    /// An event of JSON.
    Event(Value),
    /// The answer is whole.
    Whole,
    /// The connection ended within the answer.
    Cut,
    /// The request was not answered, or not by a success; in words.
    Refused(String),
}

/// What makes sense of what is read.
pub(super) trait TurnReader: Send {
    /// Reads this; what the caller is told, if that is an end of the turn.
    fn read(&mut self, heard: Heard) -> Option<Told>;
}

/// The answer to a request, as it comes.
struct TurnAnswer(mpsc::Receiver<Heard>);

impl TurnAnswer {
    fn ask(request: Request) -> Self {
        let (sender, heard) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let closed = Box::pin(sender.closed());
            // Whichever comes first: once its caller is gone, the rest of the answer is dropped, and the connection with it.
            select(closed, Box::pin(hear(request, &sender))).await;
        });
        Self(heard)
    }
}

async fn hear(request: Request, to: &mpsc::Sender<Heard>) {
    let last = match answered(request.send().await).await {
        Err(refused) => Heard::Refused(refused),
        Ok(mut events) => {
            let mut next = Some(Heard::Begun(events.headers().clone()));
            while let Some(heard) = next {
                if to.send(heard).await.is_err() {
                    // Its caller is gone.
                    return;
                }
                next = events.next().await.map(Heard::Event);
            }
            if events.is_cut() { Heard::Cut } else { Heard::Whole }
        }
    };
    if to.send(last).await.is_err() {
        // As above.
    }
}

/// A turn, and what of it gives its caller control.
#[derive(Default)]
pub(super) struct ServedTurn {
    answer: Option<TurnAnswer>,
    /// What an answer to a stop says, until it is there.
    cancel: Option<BoxFuture<'static, Option<Told>>>,
    /// When its caller closed the connection.
    closed: Option<Instant>,
    /// How it ended, once that was read.
    end: Option<Told>,
}

impl ServedTurn {
    /// Begins one with this request.
    pub(super) fn begin(request: Request) -> Self {
        Self { answer: Some(TurnAnswer::ask(request)), ..Self::default() }
    }

    /// Its caller closes the connection, and has control with that.
    pub(super) fn close(&mut self) {
        self.answer = None;
        self.closed.get_or_insert_with(Instant::now);
    }

    /// Sends a stop; its answer gives control if it says of an end. A later one is sent, too, and the first answer counts.
    pub(super) fn cancel(&mut self, asks: impl Future<Output = Option<Told>> + Send + 'static) {
        let asked = tokio::spawn(asks);
        self.cancel.get_or_insert_with(|| Box::pin(async move { asked.await.ok().flatten() }));
    }

    /// Reads until this is so, or the turn is over.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read has been given to the reader.
    pub(super) async fn read_until<R: TurnReader>(&mut self, reader: &mut R, is_so: impl Fn(&R) -> bool) {
        while !is_so(reader) && self.end.is_none() {
            self.end = read(&mut self.answer, reader).await;
        }
    }

    /// Waits until its caller has control back.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read is kept.
    pub(super) async fn told(&mut self, reader: &mut impl TurnReader) -> Told {
        if let Some(at) = self.closed {
            return Told { at, ..Told::now(Said::Nothing) };
        }
        while self.end.is_none() {
            let read = Box::pin(read(&mut self.answer, reader));
            let Some(cancel) = &mut self.cancel else {
                self.end = read.await;
                continue;
            };
            // Whichever comes first gives its caller control. What is not read yet waits in the channel.
            match select(cancel, read).await {
                Either::Left((told, _)) => {
                    self.cancel = None;
                    // One that was refused, or says of no end, leaves it to the stream to say when there is one.
                    if let Some(told) = told {
                        return told;
                    }
                }
                Either::Right((told, _)) => self.end = told,
            }
        }
        self.end.clone().expect("it was waited for")
    }
}

/// Reads what comes next; waits for ever where nothing is to be read.
async fn read(answer: &mut Option<TurnAnswer>, reader: &mut impl TurnReader) -> Option<Told> {
    let Some(TurnAnswer(heard)) = answer else { return std::future::pending().await };
    // Without a last word it was cut by its own task, which ends with the test.
    reader.read(heard.recv().await.unwrap_or(Heard::Cut))
}
