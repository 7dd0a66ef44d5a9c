//! One exchange with a provider: sent, retried before its first byte, read event by event, dropped at any instant.
//!
//! **Invariants**: nothing is asked for again after the first byte (a reply that its provider keeps is read on from
//! where its stream broke, which asks for nothing); every wait is an await of the stream, so dropping the stream ends
//! it and releases the connection; what stood before an error in the stream is given before the error; no more than one
//! event is taken between two awaits, and no more is collected than the reply may bring and one event.

use std::{
    collections::VecDeque,
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::{CONTENT_TYPE, LOCATION};
use safepoint::model::{Delta, DeltaStream, ModelError, ModelErrorKind};
use safepoint::{Usage, usage::UsageSource};
use safepoint_http::{HttpError, Request, Response};
use tokio::{
    task::coop,
    time::{Sleep, sleep},
};

use crate::{
    body::Parts,
    error,
    retry::retry_after,
    sse::{SseDecoder, SseError},
};

mod limits;
pub(crate) mod outgoing;
mod piece;
mod quiet;
mod reader;
pub(crate) mod whole;

pub use limits::Patience;
pub(crate) use reader::ReplyReader;

use outgoing::{Outgoing, Prepared, read_some};
use quiet::Quiet;

/// One exchange as a stream of deltas; nothing is sent before it is polled.
pub(crate) fn exchange(outgoing: Result<Outgoing, ModelError>, wire: impl ReplyReader) -> DeltaStream {
    match outgoing {
        Ok(outgoing) => Box::pin(Exchange::new(outgoing, wire)),
        Err(error) => stream::once(async move { Err(error) }).boxed(),
    }
}

struct Exchange<W> {
    outgoing: Outgoing,
    wire: W,
    decoder: SseDecoder,
    queue: VecDeque<Delta>,
    /// How it failed, once what had arrived before that is given.
    error: Option<ModelError>,
    phase: ExchangePhase,
    quiet: Quiet,
    /// Where the stream broke last, and how often it did there.
    broke: Option<(String, u32)>,
    /// Bytes of the message that were given.
    given: usize,
}

enum ExchangePhase {
    Start,
    /// The head of an answer is waited for.
    Send(AskedPart, BoxFuture<'static, Result<Response, HttpError>>),
    /// An answer that is no reply is read for what it says.
    Refused(AskedPart, BoxFuture<'static, Miss>),
    /// Before another try.
    Wait(AskedPart, Pin<Box<Sleep>>),
    /// What was read holds more events, perhaps.
    Read(Response, Bytes),
    Over,
}

/// What is asked for.
#[derive(Clone)]
enum AskedPart {
    /// The reply, after this number of failed tries.
    Reply { failed: u32 },
    /// The rest of a reply whose stream broke, at this address.
    Rest(Arc<str>),
}

/// Why a try gave nothing, and how long the server asked to wait.
struct Miss {
    error: ModelError,
    wait: Option<Duration>,
    is_worth_a_retry: bool,
}

impl<W: ReplyReader> Stream for Exchange<W> {
    type Item = Result<Delta, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let exchange = self.get_mut();
        loop {
            if let Some(delta) = exchange.queue.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(error) = exchange.error.take() {
                exchange.phase = ExchangePhase::Over;
                return Poll::Ready(Some(Err(error)));
            }
            if matches!(exchange.phase, ExchangePhase::Over) {
                return Poll::Ready(None);
            }
            // A flood of events that say nothing must not delay a stop.
            ready!(coop::poll_proceed(cx)).made_progress();
            // One event may hold both what arrived and what went wrong behind it.
            exchange.error = ready!(exchange.poll_step(cx)).err();
        }
    }
}

impl<W: ReplyReader> Exchange<W> {
    fn new(outgoing: Outgoing, wire: W) -> Self {
        let Patience { idle, event_bytes, .. } = outgoing.prepared.patience;
        Self {
            outgoing,
            wire,
            decoder: SseDecoder::new(event_bytes),
            queue: VecDeque::new(),
            error: None,
            phase: ExchangePhase::Start,
            quiet: Quiet::new(idle),
            broke: None,
            given: 0,
        }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(match &mut self.phase {
            ExchangePhase::Over => Ok(()),
            ExchangePhase::Start => self.ask(AskedPart::Reply { failed: 0 }),
            ExchangePhase::Wait(asked, timer) => {
                ready!(timer.as_mut().poll(cx));
                let asked = asked.clone();
                self.ask(asked)
            }
            ExchangePhase::Send(asked, head) => match head.as_mut().poll(cx) {
                Poll::Ready(answered) => {
                    let asked = asked.clone();
                    self.answered(asked, answered)
                }
                Poll::Pending => {
                    ready!(self.quiet.poll_too_long(cx));
                    let asked = asked.clone();
                    let error = error::idle(self.outgoing.prepared.patience.idle);
                    self.missed(asked, Miss { error, wait: None, is_worth_a_retry: false })
                }
            },
            ExchangePhase::Refused(asked, miss) => {
                let miss = ready!(miss.as_mut().poll(cx));
                let asked = asked.clone();
                self.missed(asked, miss)
            }
            ExchangePhase::Read(_, bytes) if !bytes.is_empty() => self.decode(),
            ExchangePhase::Read(response, _) => {
                let chunk = pin!(response.chunk()).poll(cx);
                if chunk.is_pending() {
                    ready!(self.quiet.poll_too_long(cx));
                }
                self.read(chunk)
            }
        })
    }

    /// Takes what was read; what is still pending has been too long.
    fn read(&mut self, chunk: Poll<Result<Option<Bytes>, HttpError>>) -> Result<(), ModelError> {
        self.quiet.ended();
        match chunk {
            Poll::Ready(Ok(Some(more))) => {
                if let ExchangePhase::Read(_, bytes) = &mut self.phase {
                    *bytes = more;
                }
                Ok(())
            }
            Poll::Ready(Ok(None)) => {
                self.phase = ExchangePhase::Over;
                self.wire.end(&mut self.queue).or_else(|error| self.broke(error))
            }
            Poll::Ready(Err(error)) => self.broke(error::broken(error)),
            Poll::Pending => self.broke(error::idle(self.outgoing.prepared.patience.idle)),
        }
    }

    fn ask(&mut self, asked: AskedPart) -> Result<(), ModelError> {
        let request: Request = match &asked {
            AskedPart::Reply { .. } => {
                self.sent();
                self.outgoing.request()
            }
            AskedPart::Rest(address) => self.outgoing.prepared.get(address)?,
        };
        self.quiet.ended();
        self.phase = ExchangePhase::Send(asked, request.send().boxed());
        Ok(())
    }

    fn sent(&mut self) {
        // An event seldom brings more.
        self.queue.reserve_exact(2);
        self.queue.push_back(Delta::Sent);
        // A floor until the provider says more: it may never get to, if it is silent or cut.
        let bytes = usize::try_from(self.outgoing.body.len()).unwrap_or(usize::MAX);
        let input = Usage::floor_of_bytes(bytes);
        self.queue.push_back(Delta::Usage(Usage::new(input, 0).with_source(UsageSource::Estimated)));
    }

    fn answered(&mut self, asked: AskedPart, answer: Result<Response, HttpError>) -> Result<(), ModelError> {
        let url = &self.outgoing.prepared.url;
        let response = match answer {
            Ok(response) => response,
            Err(error) => {
                // Once the request is out, another try might do the work twice; before that it cannot.
                let is_worth_a_retry = error.is_connect();
                let error = error::unreachable(url, error);
                return self.missed(asked, Miss { error, wait: None, is_worth_a_retry });
            }
        };
        self.quiet.ended();
        let status = response.status();
        if status.is_redirection() {
            let error = error::elsewhere(status.as_u16(), url, response.headers().get(LOCATION));
            return self.missed(asked, Miss { error, wait: None, is_worth_a_retry: false });
        }
        if status.is_success() && is_stream(&response) {
            self.opened(&asked, response);
            return Ok(());
        }
        let miss = refused(response, Arc::clone(&self.outgoing.prepared)).boxed();
        self.phase = ExchangePhase::Refused(asked, miss);
        Ok(())
    }

    fn opened(&mut self, asked: &AskedPart, response: Response) {
        match asked {
            AskedPart::Reply { .. } => self.queue.push_back(Delta::Opened),
            // What was cut of an event is sent again.
            AskedPart::Rest(_) => self.decoder = SseDecoder::new(self.outgoing.prepared.patience.event_bytes),
        }
        // Nothing is sent again from here on: what another try would need is let go.
        self.outgoing.body = Parts::default();
        self.phase = ExchangePhase::Read(response.without_headers(), Bytes::new());
    }

    fn missed(&mut self, asked: AskedPart, miss: Miss) -> Result<(), ModelError> {
        let AskedPart::Reply { failed } = asked else {
            // The provider does not keep the reply, or does not let us have it.
            let is_final = !miss.is_worth_a_retry && miss.error.status().is_some();
            return if is_final { Err(miss.error) } else { self.broke(miss.error) };
        };
        let failed = failed + 1;
        match self.outgoing.prepared.patience.retry.after(failed, miss.wait) {
            Ok(after) if miss.is_worth_a_retry => {
                self.queue.push_back(Delta::Retrying { failed, after, error: miss.error.to_string() });
                self.phase = ExchangePhase::Wait(AskedPart::Reply { failed }, Box::pin(sleep(after)));
                Ok(())
            }
            Ok(_) | Err(None) => Err(miss.error),
            Err(Some(too_long)) => Err(miss.error.with_hint(too_long)),
        }
    }

    /// The stream broke: its rest is asked for where the provider keeps it, some times at each place.
    fn broke(&mut self, error: ModelError) -> Result<(), ModelError> {
        let Some(address) = self.wire.resume() else { return Err(error) };
        let before = self.broke.take().filter(|(place, _)| *place == address).map_or(0, |(_, failed)| failed);
        let failed = before + 1;
        let Ok(after) = self.outgoing.prepared.patience.retry.after(failed, None) else { return Err(error) };
        self.queue.push_back(Delta::Reconnecting { failed, after, error: error.to_string() });
        let rest = AskedPart::Rest(address.as_str().into());
        self.broke = Some((address, failed));
        self.phase = ExchangePhase::Wait(rest, Box::pin(sleep(after)));
        Ok(())
    }

    /// Takes the next event of what was read.
    fn decode(&mut self) -> Result<(), ModelError> {
        let ExchangePhase::Read(_, bytes) = &mut self.phase else { return Ok(()) };
        let event = piece::next_event(&mut self.decoder, bytes).map_err(|wrong| match wrong {
            SseError::TooLarge => {
                error::too_much("one event of the stream", self.outgoing.prepared.patience.event_bytes)
            }
            SseError::NotUtf8 => error::malformed(wrong),
        })?;
        let Some(event) = event else { return Ok(()) };
        let read = self.wire.event(event, &mut self.queue);
        self.decoder.forget();
        self.given = self.queue.iter().fold(self.given, |given, delta| given.saturating_add(delta.bytes()));
        // What is too much is not given, but for what stood before it.
        if self.given.saturating_add(self.wire.held()) > self.outgoing.output_bytes {
            return Err(error::too_much("the reply", self.outgoing.output_bytes));
        }
        read?;
        // A complete message is read on to the end of its body only if that end is here already: the connection is then
        // reused, and otherwise nothing is waited for.
        if self.wire.is_complete()
            && let ExchangePhase::Read(response, _) = mem::replace(&mut self.phase, ExchangePhase::Over)
        {
            finish(response);
            return self.wire.end(&mut self.queue);
        }
        Ok(())
    }
}

/// Whether it is a stream of events. Some servers name no type at all; the decoder then decides.
fn is_stream(response: &Response) -> bool {
    let kind = kind(response);
    kind.is_empty() || kind.starts_with("text/event-stream")
}

fn kind(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Why an answer is no reply, in its own words: a failure, or a success that is not a stream of events (an error body, a
/// login page, a whole message).
async fn refused(response: Response, prepared: Arc<Prepared>) -> Miss {
    let (status, wait) = (response.status(), retry_after(response.headers()));
    let (kind, idle) = (kind(&response).to_owned(), prepared.patience.idle);
    let body = read_some(response, idle).await;
    if status.is_success() {
        let error = match error::provider_words(&body) {
            Some(words) => error::in_stream(&words),
            None => {
                error::malformed(format!("it answered with {kind} where a stream of events was asked for"))
            }
        };
        return Miss { error, wait: None, is_worth_a_retry: false };
    }
    let mut error = error::of_status(status.as_u16(), &body, &prepared.url);
    if let Some(wait) = wait {
        error = error.with_retry_after(wait);
    }
    // Some servers answer 500 to what does not fit their window.
    let is_worth_a_retry =
        error::is_worth_a_retry(status.as_u16()) && error.kind() != ModelErrorKind::ContextWindow;
    Miss { error, wait, is_worth_a_retry }
}

/// Reads what is there already to the end, so that the pool gets the connection back.
fn finish(mut response: Response) {
    const MOST: usize = 8;
    for _ in 0..MOST {
        let Some(Ok(Some(_rest))) = response.chunk().now_or_never() else { return };
    }
}
