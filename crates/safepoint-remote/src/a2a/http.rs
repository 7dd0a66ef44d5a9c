//! Exchanges with a peer: bounded, never repeated here, and in an exact state when dropped.

use std::{collections::VecDeque, time::Duration};

use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use safepoint::json::read;
use safepoint_models::sse::SseDecoder;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::{bounds::Bounds, wire::Wire};
use crate::exchange::{self, in_full, send, whole};

pub(super) use crate::exchange::Broke;

/// How peers are reached.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    pub(super) headers: HeaderMap,
    pub(super) bounds: Bounds,
}

/// What a message was answered with.
pub(super) enum Opened {
    Stream(Box<Events>),
    Answer(Value),
}

/// A stream of events.
pub(super) struct Events {
    response: Response,
    decoder: SseDecoder,
    came: VecDeque<String>,
    idle: Duration,
    /// When the last sign of life came: any byte.
    alive: Instant,
}

const VERSION: &str = "A2A-Version";
const EVENT_STREAM: &str = "text/event-stream";
const ONE_VALUE: &str = "application/json";
/// What a message and a subscription may be answered with: some servers have only the one.
const EITHER: &str = "application/json, text/event-stream";
/// How much of a foreign answer is told.
const SHOWN: usize = 200;

impl Http {
    pub(super) fn new(headers: HeaderMap, bounds: Bounds) -> Result<Self, String> {
        Ok(Self { client: exchange::client()?, headers, bounds })
    }

    /// A card.
    pub(super) async fn card(&self, url: &Url) -> Result<Value, Broke> {
        let request = self.client.get(url.clone()).headers(self.headers.clone());
        let response = send(request).await?;
        let status = response.status();
        let body = whole(response, self.bounds.card_bytes).await?;
        if !status.is_success() {
            return Err(Broke::Foreign(format!("the server answered {status}")));
        }
        serde_json::from_slice(&body).map_err(|error| Broke::Foreign(format!("it is no JSON: {error}")))
    }

    /// A request whose answer is one value.
    pub(super) async fn ask(&self, to: (&Url, Wire), method: &str, params: Value) -> Result<Value, Broke> {
        let asked = async {
            let response = send(self.request(to, method, params).header(ACCEPT, ONE_VALUE)).await?;
            self.value(response).await
        };
        let time = self.bounds.answer_time;
        timeout(time, asked)
            .await
            .unwrap_or_else(|_elapsed| Err(Broke::Lost(format!("no answer within {time:?}"))))
    }

    /// A request whose answer may be a stream. Its head is waited for as long as more of a stream: for `idle`.
    pub(super) async fn open(
        &self,
        to: (&Url, Wire),
        (method, params): (&str, Value),
        idle: Duration,
    ) -> Result<Opened, Broke> {
        let request = self.request(to, method, params).header(ACCEPT, EITHER);
        let response = timeout(idle, send(request)).await;
        let response =
            response.unwrap_or_else(|_elapsed| Err(Broke::Lost(format!("no answer within {idle:?}"))))?;
        if response.status().is_success() && is_stream(&response) {
            let decoder = SseDecoder::new(self.bounds.answer_bytes);
            let (came, alive) = (VecDeque::new(), Instant::now());
            return Ok(Opened::Stream(Box::new(Events { response, decoder, came, idle, alive })));
        }
        let value = timeout(idle, self.value(response)).await;
        let value =
            value.unwrap_or_else(|_elapsed| Err(Broke::Lost(format!("no answer within {idle:?}"))))?;
        Ok(Opened::Answer(value))
    }

    fn request(&self, (url, wire): (&Url, Wire), method: &str, params: Value) -> RequestBuilder {
        // No other request has this id, of whatever process: some servers know their streams by it.
        let id = Uuid::new_v4().to_string();
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let request = self.client.post(url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, ONE_VALUE).body(body);
        match wire.version() {
            Some(version) => request.header(VERSION, version),
            None => request,
        }
    }

    async fn value(&self, response: Response) -> Result<Value, Broke> {
        let (status, again) = (response.status(), exchange::again(response.headers()));
        let body = whole(response, self.bounds.answer_bytes).await?;
        match read(&body).map_err(|unread| unread.to_string()).and_then(unwrapped) {
            Ok(result) => result,
            Err(_) if !status.is_success() => {
                Err(Broke::Status { status, message: exchange::refusal(status, &body), again })
            }
            Err(why) => {
                let shown = &body[..body.len().min(SHOWN)];
                let shown = String::from_utf8_lossy(shown);
                Err(Broke::Foreign(format!("the answer is not of the protocol ({why}): {shown}")))
            }
        }
    }
}

impl Events {
    /// Whether there was no sign of life for longer than is waited for one.
    pub(super) fn is_silent(&self) -> bool {
        self.alive.elapsed() >= self.idle
    }

    /// The next event's result; none at the end of the stream.
    ///
    /// Nothing is lost if this is dropped: what came stays here.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Broke> {
        loop {
            if let Some(data) = self.came.pop_front() {
                let value = read(data.as_bytes()).map_err(|unread| unread.to_string());
                let result = value.and_then(unwrapped);
                return result
                    .map_err(|why| Broke::Foreign(format!("an event is not of the protocol ({why})")))?
                    .map(Some);
            }
            let chunk = timeout_at(self.alive + self.idle, self.response.chunk()).await;
            let chunk = chunk.map_err(|_elapsed| Broke::Lost(format!("nothing came for {:?}", self.idle)))?;
            self.alive = Instant::now();
            let chunk =
                chunk.map_err(|error| Broke::Lost(format!("the stream broke: {}", in_full(&error))))?;
            let Some(chunk) = chunk else { return Ok(None) };
            let came = &mut self.came;
            let fed = self.decoder.feed(&chunk, |event| came.push_back(event.data));
            fed.map_err(|error| Broke::Foreign(error.to_string()))?;
        }
    }
}

/// What a JSON-RPC answer holds.
fn unwrapped(mut value: Value) -> Result<Result<Value, Broke>, String> {
    let error = &value["error"];
    if error.is_object() {
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        return Ok(Err(Broke::Error { code: error["code"].as_i64().unwrap_or_default(), message }));
    }
    if value.get("result").is_some_and(|result| !result.is_null()) {
        return Ok(Ok(value["result"].take()));
    }
    Err("neither a result nor an error".into())
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM))
}
