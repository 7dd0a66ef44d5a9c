//! Replies in the words of each wire, and the HTTP around them.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::http::Wire;
use crate::script::{Call, Fault, Reply};

/// One step of an answer. Exhaustive: the connection does each.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Head(u16, Vec<u8>),
    Write(Vec<u8>),
    Pause(Duration),
    Silence,
    Close,
    Reset,
    Finish(Vec<u8>),
}

pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The steps of a reply.
pub(super) fn reply(wire: Wire, reply: &Reply, stream: bool, model: &str) -> Vec<Step> {
    match &reply.fault {
        Some(Fault::Silence) => return vec![Step::Silence],
        Some(Fault::Status { status, body, headers }) => {
            return vec![of_status(wire, *status, body, headers)];
        }
        Some(Fault::Answer { content_type, body }) => {
            return vec![Step::Finish(http(200, content_type, &[], body.as_bytes()))];
        }
        Some(Fault::Raw(bytes)) => {
            return vec![stream_head(), Step::Write(framed(bytes)), Step::Finish(LAST_CHUNK.to_vec())];
        }
        Some(Fault::StallAfter(_) | Fault::CloseAfter(_) | Fault::ResetAfter(_)) | None => {}
    }
    if !stream {
        return vec![Step::Finish(whole(200, &crate::whole::message(wire, reply, model)))];
    }
    streamed(wire, reply, model)
}

fn streamed(wire: Wire, reply: &Reply, model: &str) -> Vec<Step> {
    let chunks = chunks(wire, reply, model);
    let (sent, last) = match reply.fault {
        Some(Fault::StallAfter(count)) => (count, Step::Silence),
        Some(Fault::CloseAfter(count)) => (count, Step::Close),
        Some(Fault::ResetAfter(count)) => (count, Step::Reset),
        _ => (chunks.len(), Step::Finish(LAST_CHUNK.to_vec())),
    };
    let Step::Head(status, mut bytes) = stream_head() else { unreachable!("the head of a stream is a head") };
    if reply.delay_ms == 0 {
        for chunk in chunks.into_iter().take(sent) {
            bytes.extend(framed(&chunk));
        }
        return vec![Step::Head(status, bytes), last];
    }
    let mut steps = vec![Step::Head(status, bytes)];
    for chunk in chunks.into_iter().take(sent) {
        steps.push(Step::Pause(Duration::from_millis(reply.delay_ms)));
        steps.push(Step::Write(framed(&chunk)));
    }
    steps.push(last);
    steps
}

/// The chunks of a streamed reply, one event each.
pub(super) fn chunks(wire: Wire, reply: &Reply, model: &str) -> Vec<Vec<u8>> {
    match wire {
        Wire::OpenAi => openai(reply, model),
        Wire::Anthropic => anthropic(reply, model),
    }
}

/// Text in pieces of so many characters.
fn pieces(text: &str, chars: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    if chars == 0 {
        return vec![text.to_owned()];
    }
    let all: Vec<char> = text.chars().collect();
    all.chunks(chars).map(|piece| piece.iter().collect()).collect()
}

/// Arguments in two pieces, as providers send them.
fn halves(args: &Value) -> [String; 2] {
    let text = args.as_str().map_or_else(|| args.to_string(), ToOwned::to_owned);
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    [text[..middle].to_owned(), text[middle..].to_owned()]
}

pub(crate) fn id_of(call: &Call, index: usize, prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    call.id.clone().unwrap_or_else(|| format!("{prefix}{:06}{index}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn openai(reply: &Reply, model: &str) -> Vec<Vec<u8>> {
    let event = |delta: Value, finish: Value| {
        data(&json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": model, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": null}))
    };
    let mut chunks = vec![event(json!({"role": "assistant", "content": ""}), Value::Null)];
    for piece in pieces(&reply.reasoning, reply.chunk_chars) {
        chunks.push(event(json!({"reasoning_content": piece}), Value::Null));
    }
    for piece in pieces(&reply.text, reply.chunk_chars) {
        chunks.push(event(json!({"content": piece}), Value::Null));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = id_of(call, index, "call_");
        let [first, second] = halves(&call.args);
        let mut begun =
            json!({"index": index, "type": "function", "function": {"name": call.name, "arguments": first}});
        if !id.is_empty() {
            begun["id"] = json!(id);
        }
        chunks.push(event(json!({"tool_calls": [begun]}), Value::Null));
        chunks.push(event(
            json!({"tool_calls": [{"index": index, "function": {"arguments": second}}]}),
            Value::Null,
        ));
    }
    let natural = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    chunks.push(event(json!({}), json!(reply.finish.as_deref().unwrap_or(natural))));
    let [input, output] = reply.usage.unwrap_or([10, 5]);
    chunks.push(data(
        &json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": model, "choices": [],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}}),
    ));
    chunks.push(b"data: [DONE]\n\n".to_vec());
    chunks
}

fn anthropic(reply: &Reply, model: &str) -> Vec<Vec<u8>> {
    let [input, output] = reply.usage.unwrap_or([10, 5]);
    let mut chunks = vec![
        named(&json!({"type": "message_start", "message": {"id": "msg_scripted", "type": "message",
            "role": "assistant", "model": model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": 1}}})),
        named(&json!({"type": "ping"})),
    ];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        chunks.push(named(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            chunks.push(named(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        chunks.push(named(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if !reply.reasoning.is_empty() {
        let mut deltas: Vec<Value> = pieces(&reply.reasoning, reply.chunk_chars)
            .into_iter()
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text, reply.chunk_chars);
        let deltas = deltas.into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        block(json!({"type": "text", "text": ""}), deltas);
    }
    for (place, call) in reply.calls.iter().enumerate() {
        let deltas = halves(&call.args).map(|half| json!({"type": "input_json_delta", "partial_json": half}));
        let id = id_of(call, place, "toolu_");
        block(json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}), deltas.to_vec());
    }
    let natural = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    chunks.push(named(&json!({"type": "message_delta",
        "delta": {"stop_reason": reply.finish.as_deref().unwrap_or(natural), "stop_sequence": null},
        "usage": {"output_tokens": output}})));
    chunks.push(named(&json!({"type": "message_stop"})));
    chunks
}

fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

fn named(value: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()).into_bytes()
}

/// A chunk of a chunked body.
pub(super) fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}

pub(super) fn stream_head() -> Step {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
    Step::Head(200, head.into())
}

/// A whole answer of JSON.
pub(super) fn whole(status: u16, body: &Value) -> Vec<u8> {
    http(status, "application/json", &[], body.to_string().as_bytes())
}

pub(super) fn refusal(status: u16, body: &Value) -> Vec<Step> {
    vec![Step::Head(status, Vec::new()), Step::Finish(whole(status, body))]
}

fn of_status(wire: Wire, status: u16, body: &str, headers: &[(String, String)]) -> Step {
    let own = match wire {
        Wire::OpenAi => {
            json!({"error": {"message": format!("scripted {status}"), "type": "server_error", "param": null, "code": null}})
        }
        Wire::Anthropic => {
            json!({"type": "error", "error": {"type": "api_error", "message": format!("scripted {status}")}})
        }
    };
    let body = if body.is_empty() { own.to_string() } else { body.to_owned() };
    Step::Finish(http(status, "application/json", headers, body.as_bytes()))
}

fn http(status: u16, kind: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut head =
        format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").expect("writing to memory cannot fail");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
