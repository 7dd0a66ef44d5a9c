//! One exchange with a provider: sent, retried before its first byte, read event by event, dropped at any instant.
//!
//! **Invariants**: nothing is asked for again after the first byte (a reply that its provider keeps is read on from
//! where its stream broke, which asks for nothing); every wait is an await of the stream, so dropping the stream ends
//! it and releases the connection; what stood before an error in the stream is given before the error; no more than one
//! event is taken between two awaits, and no more is collected than the reply may bring and one event.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use safepoint::model::{Delta, DeltaStream, ModelError, ModelErrorKind};
use safepoint::{Usage, usage::UsageSource};
use safepoint_http::{Body, Request, Response};
use tokio::time::{sleep, timeout};

use crate::{
    error,
    retry::retry_after,
    sse::{SseDecoder, SseError, SseEvent},
};

mod limits;
pub(crate) mod outgoing;

pub use limits::Patience;

use outgoing::{Outgoing, read_some};

/// Reads one wire's events into deltas.
pub(crate) trait ReplyReader: Send + Sync + 'static {
    /// Takes one event.
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;
    /// The stream is over; whether it had said so.
    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError>;
    /// Whether the message is complete, so that nothing more needs to be read.
    fn is_complete(&self) -> bool;
    /// Bytes of the message that were taken and not given yet: a part of it that is not complete.
    fn held(&self) -> usize;
    /// Whether the rest of a reply can be read elsewhere if its stream breaks, once the reply is named.
    fn is_kept(&self) -> bool {
        false
    }
    /// Where the rest of the reply can be read if the stream breaks, as what follows the request's own address; none
    /// where a broken stream is lost.
    fn resume(&self) -> Option<String> {
        None
    }
}

/// One exchange as a stream of deltas; nothing is sent before it is polled.
pub(crate) fn exchange(outgoing: Result<Outgoing, ModelError>, wire: impl ReplyReader) -> DeltaStream {
    let outgoing = match outgoing {
        Ok(outgoing) => outgoing,
        Err(error) => return stream::once(async move { Err(error) }).boxed(),
    };
    let decoder = SseDecoder::new(outgoing.patience.event_bytes);
    // Boxed, since it is moved with every delta.
    let exchange = Box::new(Exchange {
        outgoing,
        wire,
        decoder,
        queue: VecDeque::new(),
        error: None,
        phase: ExchangePhase::Start,
        broke: None,
        given: 0,
    });
    stream::unfold(exchange, |mut exchange| async move {
        let next = exchange.next().await?;
        Some((next, exchange))
    })
    .boxed()
}

struct Exchange<W> {
    outgoing: Outgoing,
    wire: W,
    decoder: SseDecoder,
    queue: VecDeque<Delta>,
    /// How it failed, once what had arrived before that is given.
    error: Option<ModelError>,
    phase: ExchangePhase,
    /// Where the stream broke last, and how often it did there.
    broke: Option<(String, u32)>,
    /// Bytes of the message that were given.
    given: usize,
}

enum ExchangePhase {
    Start,
    Send {
        failed: u32,
    },
    Wait {
        failed: u32,
        after: Duration,
    },
    /// The stream broke, and its rest is asked for after a wait.
    Rest {
        after: Duration,
        address: String,
    },
    Read(Box<Response>),
    /// What was read holds more events, perhaps.
    Decode(Box<Response>, Bytes),
    Over,
}

/// Why a try gave nothing, and how long the server asked to wait.
struct Miss {
    error: ModelError,
    wait: Option<Duration>,
    is_worth_a_retry: bool,
}

impl<W: ReplyReader> Exchange<W> {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.queue.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.error.take() {
                self.phase = ExchangePhase::Over;
                return Some(Err(error));
            }
            // One event may hold both what arrived and what went wrong behind it.
            self.error = self.step().await?.err();
            // A flood of events that say nothing must not delay a stop.
            tokio::task::coop::consume_budget().await;
        }
    }

    async fn step(&mut self) -> Option<Result<(), ModelError>> {
        match std::mem::replace(&mut self.phase, ExchangePhase::Over) {
            ExchangePhase::Over => None,
            ExchangePhase::Start => {
                self.sent();
                self.phase = ExchangePhase::Send { failed: 0 };
                Some(Ok(()))
            }
            ExchangePhase::Wait { failed, after } => {
                sleep(after).await;
                self.sent();
                self.phase = ExchangePhase::Send { failed };
                Some(Ok(()))
            }
            ExchangePhase::Rest { after, address } => {
                sleep(after).await;
                Some(self.rest(&address).await)
            }
            ExchangePhase::Send { failed } => Some(match self.send(self.ask()).await {
                Ok(response) => {
                    self.opened();
                    self.phase = ExchangePhase::Read(Box::new(response));
                    Ok(())
                }
                Err(miss) => self.missed(miss, failed + 1),
            }),
            ExchangePhase::Read(response) => Some(self.read(response).await),
            ExchangePhase::Decode(response, bytes) => Some(self.decode(response, bytes)),
        }
    }

    fn opened(&mut self) {
        self.queue.push_back(Delta::Opened);
        // Nothing is sent again from here on; what another try would need is let go, but for who asks for the rest.
        if !self.wire.is_kept() {
            self.outgoing.headers = HeaderMap::new();
        }
    }

    fn sent(&mut self) {
        self.queue.push_back(Delta::Sent);
        // A floor until the provider says more: it may never get to, if it is silent or cut.
        let bytes = usize::try_from(self.outgoing.body.len()).unwrap_or(usize::MAX);
        let input = Usage::floor_of_bytes(bytes);
        self.queue.push_back(Delta::Usage(Usage {
            input,
            source: UsageSource::Estimated,
            ..Usage::default()
        }));
    }

    fn missed(&mut self, miss: Miss, failed: u32) -> Result<(), ModelError> {
        let retry = &self.outgoing.patience.retry;
        match retry.after(failed, miss.wait) {
            Ok(after) if miss.is_worth_a_retry => {
                self.queue.push_back(Delta::Retrying { failed, after, error: miss.error.to_string() });
                self.phase = ExchangePhase::Wait { failed, after };
                Ok(())
            }
            Ok(_) | Err(None) => Err(miss.error),
            Err(Some(too_long)) => Err(miss.error.with_hint(too_long)),
        }
    }

    /// Asks for what the provider kept of a reply whose stream broke.
    async fn rest(&mut self, address: &str) -> Result<(), ModelError> {
        let Outgoing { client, headers, .. } = &self.outgoing;
        let request = client.get(&self.outgoing.below(address)?).headers(headers.clone());
        match self.send(request).await {
            Ok(response) => {
                // What was cut of an event is sent again.
                self.decoder = SseDecoder::new(self.outgoing.patience.event_bytes);
                self.phase = ExchangePhase::Read(Box::new(response));
                Ok(())
            }
            // The provider does not keep it, or does not let us have it.
            Err(miss) if !miss.is_worth_a_retry && miss.error.status().is_some() => Err(miss.error),
            Err(miss) => self.broke(miss.error),
        }
    }

    /// The stream broke: its rest is asked for where the provider keeps it, some times at each place.
    fn broke(&mut self, error: ModelError) -> Result<(), ModelError> {
        let Some(address) = self.wire.resume() else { return Err(error) };
        let before = self.broke.take().filter(|(place, _)| *place == address).map_or(0, |(_, failed)| failed);
        let failed = before + 1;
        let Ok(after) = self.outgoing.patience.retry.after(failed, None) else { return Err(error) };
        self.queue.push_back(Delta::Reconnecting { failed, after, error: error.to_string() });
        self.broke = Some((address.clone(), failed));
        self.phase = ExchangePhase::Rest { after, address };
        Ok(())
    }

    fn ask(&self) -> Request {
        let Outgoing { client, url, headers, body, .. } = &self.outgoing;
        client.post(url).headers(headers.clone()).body(Body::of_parts(body.clone()))
    }

    async fn send(&self, request: Request) -> Result<Response, Miss> {
        let Outgoing { url, patience, .. } = &self.outgoing;
        let response = match timeout(patience.idle, request.send()).await {
            Err(_elapsed) => {
                return Err(Miss { error: error::idle(patience.idle), wait: None, is_worth_a_retry: false });
            }
            Ok(Err(error)) => {
                // Once the request is out, another try might do the work twice; before that it cannot.
                let is_worth_a_retry = error.is_connect();
                return Err(Miss { error: error::unreachable(url, &error), wait: None, is_worth_a_retry });
            }
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            return self.check_type(response).await;
        }
        if status.is_redirection() {
            let error = error::elsewhere(status.as_u16(), url, response.headers().get(LOCATION));
            return Err(Miss { error, wait: None, is_worth_a_retry: false });
        }
        let wait = retry_after(response.headers());
        let body = read_some(response, patience.idle).await;
        let error = error::of_status(status.as_u16(), &body, url);
        // Some servers answer 500 to what does not fit their window.
        let is_worth_a_retry =
            error::is_worth_a_retry(status.as_u16()) && error.kind() != ModelErrorKind::ContextWindow;
        Err(Miss { error, wait, is_worth_a_retry })
    }

    /// A success that is not a stream of events is none: an error body, a login page, a whole message.
    async fn check_type(&self, response: Response) -> Result<Response, Miss> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        // Some servers name no type at all; the decoder then decides.
        if kind.is_empty() || kind.starts_with("text/event-stream") {
            return Ok(response);
        }
        let kind = kind.to_owned();
        let body = read_some(response, self.outgoing.patience.idle).await;
        let error = match error::provider_words(&body) {
            Some(words) => error::in_stream(&words),
            None => {
                error::malformed(format!("it answered with {kind} where a stream of events was asked for"))
            }
        };
        Err(Miss { error, wait: None, is_worth_a_retry: false })
    }

    async fn read(&mut self, mut response: Box<Response>) -> Result<(), ModelError> {
        let idle = self.outgoing.patience.idle;
        match timeout(idle, response.chunk()).await {
            Err(_elapsed) => self.broke(error::idle(idle)),
            Ok(Err(error)) => self.broke(error::broken(&error)),
            Ok(Ok(None)) => {
                self.phase = ExchangePhase::Over;
                self.wire.end(&mut self.queue).or_else(|error| self.broke(error))
            }
            Ok(Ok(Some(bytes))) => {
                self.phase = ExchangePhase::Decode(response, bytes);
                Ok(())
            }
        }
    }

    /// Takes the next event of what was read.
    fn decode(&mut self, response: Box<Response>, bytes: Bytes) -> Result<(), ModelError> {
        let mut rest = &bytes[..];
        let event = self.decoder.next(&mut rest).map_err(|wrong| match wrong {
            SseError::TooLarge => {
                error::too_much("one event of the stream", self.outgoing.patience.event_bytes)
            }
            SseError::NotUtf8 => error::malformed(wrong),
        })?;
        let Some(event) = event else {
            self.phase = ExchangePhase::Read(response);
            return Ok(());
        };
        let rest = bytes.slice(bytes.len() - rest.len()..);
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
        if !self.wire.is_complete() {
            self.phase = ExchangePhase::Decode(response, rest);
            return Ok(());
        }
        finish(*response);
        self.wire.end(&mut self.queue)
    }
}

/// Reads what is there already to the end, so that the pool gets the connection back.
fn finish(mut response: Response) {
    use futures_util::FutureExt as _;
    const MOST: usize = 8;
    for _ in 0..MOST {
        let Some(Ok(Some(_rest))) = response.chunk().now_or_never() else { return };
    }
}
