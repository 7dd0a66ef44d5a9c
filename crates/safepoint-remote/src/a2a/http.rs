//! Exchanges with a remote agent: bounded, never repeated here, and in an exact state when dropped.

use std::{collections::VecDeque, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use safepoint::raw::json::read;
use safepoint_http::{HttpClient, Request, Response};
use safepoint_models::sse::SseDecoder;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;

use super::{bounds::Bounds, wire::Wire};
use crate::exchange::{self, send, whole};

pub(super) use crate::exchange::Broke;

/// The HTTP client and its bounds.
#[derive(Clone)]
pub(crate) struct Http {
    client: HttpClient,
    pub(super) headers: HeaderMap,
    pub(super) bounds: Bounds,
}

/// The answer to a message.
pub(super) enum Opened {
    Stream(Box<Events>),
    Answer(Value),
}

/// A request: where it goes, its name there, and its parameters.
pub(super) struct PeerRequest<'a> {
    pub(super) url: &'a Url,
    pub(super) wire: Wire,
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// The id of a request; an answer with another id does not answer it.
struct RequestId(String);

/// A stream of events.
pub(super) struct Events {
    response: Response,
    id: RequestId,
    decoder: SseDecoder,
    came: VecDeque<String>,
    idle: Duration,
    /// When the last byte arrived.
    alive: Instant,
}

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EVENT_STREAM: &str = "text/event-stream";
const ONE_VALUE: HeaderValue = HeaderValue::from_static("application/json");
/// What a message and a subscription may be answered with: some servers support only one of the two.
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// How much of an invalid answer an error shows.
const SHOWN: usize = 200;

impl Http {
    pub(super) fn new(headers: HeaderMap, bounds: Bounds) -> Result<Self, String> {
        Ok(Self { client: exchange::client()?, headers, bounds })
    }

    /// A card.
    pub(super) async fn card(&self, url: &Url) -> Result<Value, Broke> {
        let request = self.client.get(url).headers(self.headers.clone());
        let response = send(request).await?;
        let status = response.status();
        let body = whole(response, self.bounds.card_bytes).await?;
        if !status.is_success() {
            return Err(Broke::Foreign(format!("the server answered {status}")));
        }
        serde_json::from_slice(&body).map_err(|error| Broke::Foreign(format!("it is no JSON: {error}")))
    }

    /// Sends a request whose answer is one value.
    pub(super) async fn ask(&self, request: PeerRequest<'_>) -> Result<Value, Broke> {
        exchange::within(self.bounds.answer_time, async {
            let (request, id) = self.encoded(request);
            let response = send(request.header(ACCEPT, ONE_VALUE)).await?;
            self.value(response, &id).await
        })
        .await
    }

    /// Sends a request whose answer may be a stream. It waits `idle` for the head, as for each further event.
    pub(super) async fn open(&self, request: PeerRequest<'_>, idle: Duration) -> Result<Opened, Broke> {
        let (request, id) = self.encoded(request);
        let response = exchange::within(idle, send(request.header(ACCEPT, EITHER))).await?;
        if response.status().is_success() && is_stream(&response) {
            let decoder = SseDecoder::new(self.bounds.answer_bytes);
            let (came, alive) = (VecDeque::new(), Instant::now());
            return Ok(Opened::Stream(Box::new(Events { response, id, decoder, came, idle, alive })));
        }
        Ok(Opened::Answer(exchange::within(idle, self.value(response, &id)).await?))
    }

    fn encoded(&self, PeerRequest { url, wire, method, params }: PeerRequest<'_>) -> (Request, RequestId) {
        // No other request of any process has this id: some servers know their streams by it.
        let id = RequestId(Uuid::new_v4().to_string());
        let body = json!({"jsonrpc": "2.0", "id": id.0, "method": method, "params": params}).to_string();
        let request = self.client.post(url).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, ONE_VALUE).body(body);
        let request = match wire.version() {
            Some(version) => request.header(VERSION, HeaderValue::from_static(version)),
            None => request,
        };
        (request, id)
    }

    async fn value(&self, response: Response, id: &RequestId) -> Result<Value, Broke> {
        let (status, again) = (response.status(), exchange::again(response.headers()));
        let body = whole(response, self.bounds.answer_bytes).await?;
        match read(&body).map_err(|unread| unread.to_string()).and_then(|value| id.unwrapped(value)) {
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
    /// Whether the stream was silent for longer than allowed.
    pub(super) fn is_silent(&self) -> bool {
        self.alive.elapsed() >= self.idle
    }

    /// The result of the next event; none at the end of the stream.
    ///
    /// Dropping this loses nothing: the bytes that arrived stay here.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Broke> {
        loop {
            if let Some(data) = self.came.pop_front() {
                let value = read(data.as_bytes()).map_err(|unread| unread.to_string());
                let result = value.and_then(|value| self.id.unwrapped(value));
                return result
                    .map_err(|why| Broke::Foreign(format!("an event is not of the protocol ({why})")))?
                    .map(Some);
            }
            let chunk = timeout_at(self.alive + self.idle, self.response.chunk()).await;
            let chunk = chunk.map_err(|_elapsed| Broke::Lost(format!("nothing came for {:?}", self.idle)))?;
            self.alive = Instant::now();
            let chunk = chunk.map_err(|error| Broke::Lost(format!("the stream broke: {error}")))?;
            let Some(chunk) = chunk else { return Ok(None) };
            let came = &mut self.came;
            let fed = self.decoder.feed(&chunk, |event| came.push_back(event.data));
            fed.map_err(|error| Broke::Foreign(error.to_string()))?;
        }
    }
}

impl RequestId {
    /// The content of a JSON-RPC answer to this request. An error may have no id if the server could not read
    /// the request.
    fn unwrapped(&self, mut value: Value) -> Result<Result<Value, Broke>, String> {
        let (id, error) = (&value["id"], &value["error"]);
        let has_result = value.get("result").is_some_and(|result| !result.is_null());
        if !has_result && !error.is_object() {
            return Err("neither a result nor an error".into());
        }
        if id.as_str() != Some(&self.0) && (has_result || !id.is_null()) {
            return Ok(Err(Broke::Lost("what came answers another request".into())));
        }
        if error.is_object() {
            let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
            return Ok(Err(Broke::Error { code: error["code"].as_i64().unwrap_or_default(), message }));
        }
        Ok(Ok(value["result"].take()))
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.41: an answer counts only with the id of its request; an error may be without one.
    #[test]
    fn an_answer_counts_only_with_its_own_id() {
        let id = RequestId("ours".into());
        let result = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": {"kind": "task"}});
        let error =
            |id: Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32700, "message": "unread"}});
        assert_eq!(id.unwrapped(result("ours".into())), Ok(Ok(json!({"kind": "task"}))));
        let unread = Ok(Err(Broke::Error { code: -32700, message: "unread".into() }));
        assert_eq!(id.unwrapped(error("ours".into())), unread);
        assert_eq!(id.unwrapped(error(Value::Null)), unread);
        for foreign in
            [result("theirs".into()), result(1.into()), result(Value::Null), error("theirs".into())]
        {
            assert!(matches!(id.unwrapped(foreign.clone()), Ok(Err(Broke::Lost(_)))), "{foreign}");
        }
        assert!(id.unwrapped(json!("ours")).is_err());
    }
}
