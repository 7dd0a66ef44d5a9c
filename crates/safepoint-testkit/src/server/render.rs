//! A reply as the steps of an answer, and the HTTP around it.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::route::{Gemini, ServedWire};
use crate::{
    http::response,
    script::{Reply, ReplyFault},
};

mod gemini;
mod message;
mod responses;
mod stream;

pub(super) use stream::named;

/// One step of an answer. Exhaustive: the connection does each.
#[derive(Clone, Debug)]
pub(super) enum WireStep {
    Head(u16, Vec<u8>),
    Write(Vec<u8>),
    Pause(Duration),
    Silence,
    Close,
    Reset,
    Finish(Vec<u8>),
    Whole(u16, Arc<[u8]>),
}

/// How a request wants its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rendering {
    pub(super) wire: ServedWire,
    pub(super) model: String,
    shape: Shape,
    /// The number of the exchange, where these are counted: what has an id in the answer has it from this.
    number: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Message,
    Stream,
    StreamWithUsage,
    /// A stream of a response that is kept when the peer goes.
    Kept,
}

/// All that the server must know of a request that no oracle judges.
#[derive(Default, Deserialize)]
struct Glance {
    model: Option<String>,
    stream: Option<bool>,
    background: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl Rendering {
    pub(super) fn of(wire: ServedWire, path: &str, body: &Value) -> Self {
        // What is not of these types is as if it were not there.
        Self::new(wire, path, Glance::deserialize(body).unwrap_or_default())
    }

    /// The answer to this exchange: some keep messages by their ids, and of two with one id they keep one.
    pub(super) fn of_exchange(self, number: usize) -> Self {
        Self { number: Some(number), ..self }
    }

    /// An id of this answer, after the wire's prefix.
    fn id(&self, prefix: &str) -> String {
        match self.number {
            Some(number) => format!("{prefix}scripted{number:06}"),
            None => format!("{prefix}scripted"),
        }
    }

    pub(super) fn at_a_glance(wire: ServedWire, path: &str, body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(Self::new(wire, path, serde_json::from_slice(body)?))
    }

    fn new(wire: ServedWire, path: &str, mut glance: Glance) -> Self {
        if let Some(gemini) = Gemini::of(path) {
            glance.model = Some(gemini.model.to_owned());
            glance.stream = Some(gemini.streams);
        }
        let usage = glance.stream_options.and_then(|options| options.include_usage);
        let shape = match (wire, glance.stream, glance.background, usage) {
            (_, None | Some(false), ..) => Shape::Message,
            (ServedWire::Responses, Some(true), Some(true), _) => Shape::Kept,
            (_, Some(true), _, Some(true)) => Shape::StreamWithUsage,
            (_, Some(true), _, None | Some(false)) => Shape::Stream,
        };
        Self { wire, model: glance.model.unwrap_or_else(|| "scripted".to_owned()), shape, number: None }
    }

    /// Whether the answer is a stream of events.
    pub(super) fn is_streamed(&self) -> bool {
        self.shape != Shape::Message
    }

    /// Whether the same reply is always the same bytes.
    pub(super) fn always_the_same(&self) -> bool {
        self.number.is_none()
    }

    /// Whether the response is kept when the peer goes.
    pub(super) fn is_kept(&self) -> bool {
        self.shape == Shape::Kept
    }
}

/// A reply that is not streamed.
fn message(how: &Rendering, reply: &Reply) -> Value {
    match how.wire {
        ServedWire::OpenAi => message::openai(how, reply),
        ServedWire::Anthropic => message::anthropic(how, reply),
        ServedWire::Responses => responses::whole(how, reply),
        ServedWire::Gemini => gemini::whole(how, reply),
    }
}

/// The chunks of a streamed reply.
pub(super) fn chunks(how: &Rendering, reply: &Reply) -> Vec<Vec<u8>> {
    match how.wire {
        ServedWire::OpenAi => stream::openai(how, reply),
        ServedWire::Anthropic => stream::anthropic(how, reply),
        ServedWire::Responses => responses::chunks(how, reply),
        ServedWire::Gemini => gemini::chunks(how, reply),
    }
}

/// An error in the middle of a stream.
fn error(wire: ServedWire) -> Vec<u8> {
    match wire {
        ServedWire::OpenAi => stream::data(&of_status(wire, 500)),
        ServedWire::Anthropic => named(&of_status(wire, 529)),
        ServedWire::Responses => responses::error(),
        ServedWire::Gemini => stream::data(&of_status(wire, 503)),
    }
}

/// The steps of a reply.
pub(super) fn reply(how: &Rendering, reply: &Reply) -> Vec<WireStep> {
    match &reply.fault {
        Some(ReplyFault::Silence) => vec![WireStep::Silence],
        Some(ReplyFault::Close) => vec![WireStep::Close],
        Some(ReplyFault::Reset) => vec![WireStep::Reset],
        Some(ReplyFault::Status { status, body, headers }) => {
            let own = of_status(how.wire, *status).to_string();
            let body = if body.is_empty() { &own } else { body };
            vec![WireStep::Whole(*status, http(*status, "application/json", headers, body.as_bytes()).into())]
        }
        Some(ReplyFault::Answer { content_type, body }) => {
            vec![WireStep::Whole(200, http(200, content_type, &[], body.as_bytes()).into())]
        }
        Some(ReplyFault::Raw(bytes)) => {
            vec![
                stream_head(),
                WireStep::Write(response::chunk(bytes)),
                WireStep::Finish(response::LAST_CHUNK.to_vec()),
            ]
        }
        fault => match (how.shape, fault) {
            (Shape::Message, Some(fault)) => broken_message(how, reply, fault),
            (Shape::Message, None) if reply.delay_ms == 0 => vec![whole(200, &message(how, reply))],
            (Shape::Message, None) => vec![written(reply), whole(200, &message(how, reply))],
            (Shape::Stream | Shape::StreamWithUsage | Shape::Kept, _) => {
                streamed(how, reply, chunks(how, reply))
            }
        },
    }
}

/// A message that is not streamed comes when its text would have.
fn written(reply: &Reply) -> WireStep {
    let pieces = u32::try_from(reply.texts().len()).unwrap_or(u32::MAX);
    WireStep::Pause(Duration::from_millis(reply.delay_ms).saturating_mul(pieces))
}

/// Half a message, and then what goes wrong with it.
fn broken_message(how: &Rendering, reply: &Reply, fault: &ReplyFault) -> Vec<WireStep> {
    let mut bytes = json(200, &message(how, reply));
    let end = match fault {
        ReplyFault::ErrorAfter(_) => return vec![whole(500, &of_status(how.wire, 500))],
        ReplyFault::StallAfter(_) => WireStep::Silence,
        ReplyFault::ResetAfter(_) => WireStep::Reset,
        _ => WireStep::Close,
    };
    bytes.truncate(bytes.len() - bytes.len() / 4);
    vec![WireStep::Head(200, bytes), end]
}

/// The steps of a reply whose response is kept, and, where one came to be, all its events.
pub(super) fn kept(how: &Rendering, of: &Reply) -> (Vec<WireStep>, Option<Vec<Vec<u8>>>) {
    match of.fault {
        Some(
            ReplyFault::Silence
            | ReplyFault::Close
            | ReplyFault::Reset
            | ReplyFault::Status { .. }
            | ReplyFault::Answer { .. }
            | ReplyFault::Raw(_),
        ) => (reply(how, of), None),
        _ => {
            let chunks = chunks(how, of);
            (streamed(how, of, chunks.clone()), Some(chunks))
        }
    }
}

/// A stream of these events, at once and whole.
pub(super) fn stream(events: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = STREAM_HEAD.as_bytes().to_vec();
    bytes.extend(events.iter().flat_map(|event| response::chunk(event)));
    bytes.extend(response::LAST_CHUNK);
    bytes
}

fn streamed(how: &Rendering, reply: &Reply, mut chunks: Vec<Vec<u8>>) -> Vec<WireStep> {
    let finish = WireStep::Finish(response::LAST_CHUNK.to_vec());
    let end = match reply.fault {
        Some(ReplyFault::StallAfter(_)) => WireStep::Silence,
        Some(ReplyFault::ResetAfter(_)) => WireStep::Reset,
        Some(ReplyFault::CloseAfter(_) | ReplyFault::CutAfter(_)) => WireStep::Close,
        _ => finish,
    };
    match reply.fault {
        Some(ReplyFault::StallAfter(most) | ReplyFault::ResetAfter(most) | ReplyFault::CloseAfter(most)) => {
            chunks.truncate(most);
        }
        Some(ReplyFault::ErrorAfter(most)) => {
            chunks.truncate(most);
            chunks.push(error(how.wire));
        }
        Some(ReplyFault::CutAfter(bytes)) => {
            let mut all = chunks.concat();
            all.truncate(bytes);
            chunks = vec![all];
        }
        _ => {}
    }
    // An empty chunk would end the body.
    chunks.retain(|chunk| !chunk.is_empty());
    if reply.delay_ms == 0 { at_once(&chunks, end) } else { paced(&chunks, end, reply.delay_ms) }
}

fn at_once(chunks: &[Vec<u8>], end: WireStep) -> Vec<WireStep> {
    if matches!(end, WireStep::Finish(_)) {
        return vec![WireStep::Whole(200, stream(chunks).into())];
    }
    let mut bytes = STREAM_HEAD.as_bytes().to_vec();
    bytes.extend(chunks.iter().flat_map(|chunk| response::chunk(chunk)));
    vec![WireStep::Head(200, bytes), end]
}

fn paced(chunks: &[Vec<u8>], end: WireStep, delay_ms: u64) -> Vec<WireStep> {
    let mut steps = vec![stream_head()];
    for chunk in chunks {
        steps.push(WireStep::Pause(Duration::from_millis(delay_ms)));
        steps.push(WireStep::Write(response::chunk(chunk)));
    }
    steps.push(end);
    steps
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

pub(super) fn stream_head() -> WireStep {
    WireStep::Head(200, STREAM_HEAD.into())
}

/// A whole answer of JSON.
pub(super) fn whole(status: u16, body: &Value) -> WireStep {
    WireStep::Whole(status, json(status, body).into())
}

pub(super) fn json(status: u16, body: &Value) -> Vec<u8> {
    http(status, "application/json", &[], body.to_string().as_bytes())
}

/// The error body of a status, in the provider's form and with its own type.
pub(super) fn of_status(wire: ServedWire, status: u16) -> Value {
    let message = format!("scripted {status}");
    match wire {
        ServedWire::Gemini => gemini::of_status(status, &message),
        ServedWire::OpenAi | ServedWire::Responses => {
            let (kind, code) = match status {
                401 => ("invalid_request_error", json!("invalid_api_key")),
                404 => ("invalid_request_error", json!("model_not_found")),
                429 => ("requests", json!("rate_limit_exceeded")),
                400..500 => ("invalid_request_error", Value::Null),
                _ => ("server_error", Value::Null),
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
        ServedWire::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                400..500 => "invalid_request_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
    }
}

pub(super) fn http(status: u16, kind: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    response::whole(&format!("{status} Scripted"), kind, &headers, body)
}
