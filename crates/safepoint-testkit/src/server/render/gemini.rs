//! Replies as Gemini gives them: each chunk is a small response with the usage so far.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{Rendering, message, stream::data};
use crate::{
    script::{self, Reply},
    server::ServedWire,
};

/// A whole response.
pub(super) fn whole(how: &Rendering, reply: &Reply) -> Value {
    let (finish, usage) =
        (message::finish(ServedWire::Gemini, reply), message::usage(ServedWire::Gemini, reply));
    response(how, &id(how, reply), parts(reply), Some(finish), usage)
}

/// The chunks of a streamed response: the figures grow with what was said, and the last chunk names the end.
///
/// Google ends a stream with its last part, with a chunk without a part, or with an empty text, as it comes; an empty text that is sent
/// back is refused by one of its two services. The first of these is what every client can read.
pub(super) fn chunks(how: &Rendering, reply: &Reply) -> Vec<Vec<u8>> {
    let id = id(how, reply);
    let mut chunks: Vec<Vec<Value>> = parts(reply).into_iter().map(|part| vec![part]).collect();
    if chunks.is_empty() {
        chunks.push(vec![json!({"text": ""})]);
    }
    let last = chunks.len();
    chunks
        .into_iter()
        .enumerate()
        .map(|(place, parts)| {
            let said = place + 1;
            let finish = (said == last).then(|| message::finish(ServedWire::Gemini, reply));
            data(&response(how, &id, parts, finish, usage(reply, said, last)))
        })
        .collect()
}

fn response(how: &Rendering, id: &str, parts: Vec<Value>, finish: Option<String>, usage: Value) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": how.model, "responseId": id})
}

/// The figures when `said` of `all` chunks were sent.
fn usage(reply: &Reply, said: usize, all: usize) -> Value {
    let mut usage = message::usage(ServedWire::Gemini, reply);
    let output = usage["candidatesTokenCount"].as_u64().unwrap_or_default();
    let input = usage["promptTokenCount"].as_u64().unwrap_or_default();
    let so_far = output * said as u64 / all as u64;
    usage["candidatesTokenCount"] = json!(so_far);
    usage["totalTokenCount"] = json!(input + so_far);
    usage
}

/// A reply with calls has its own id on every server.
fn id(how: &Rendering, reply: &Reply) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if reply.calls.is_empty() {
        how.id("")
    } else {
        // Relaxed: each number is given once, and orders nothing.
        format!("calls{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The parts of a reply: thoughts, text (its seal behind it), and calls, the first of which is signed.
fn parts(reply: &Reply) -> Vec<Value> {
    let mut parts: Vec<Value> = script::cut(&reply.reasoning, reply.chunk_chars)
        .into_iter()
        .map(|piece| json!({"text": piece, "thought": true}))
        .collect();
    parts.extend(reply.texts().into_iter().map(|piece| json!({ "text": piece })));
    if !reply.redacted.is_empty() {
        parts.push(json!({"text": "", "thoughtSignature": reply.redacted}));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"name": call.name, "args": call.args}});
        if let Some(id) = call.id.as_ref().filter(|id| !id.is_empty()) {
            part["functionCall"]["id"] = json!(id);
        }
        if index == 0 {
            part["thoughtSignature"] = json!(message::SEAL);
        }
        parts.push(part);
    }
    parts
}

/// The provider's error body of a status.
pub(super) fn of_status(status: u16, message: &str) -> Value {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        400..500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": name}})
}
