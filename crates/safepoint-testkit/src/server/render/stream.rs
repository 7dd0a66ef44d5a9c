//! Replies of chat completions and Anthropic messages as events, one chunk each, and how every wire writes an event.

use serde_json::{Value, json};

use super::{Rendering, Shape, message};
use crate::script::{self, Call, Reply};

/// A call's arguments in two pieces, as providers send them.
pub(super) fn halves(call: &Call) -> [String; 2] {
    let text = call.arguments();
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    [text[..middle].to_owned(), text[middle..].to_owned()]
}

pub(super) fn openai(how: &Rendering, reply: &Reply) -> Vec<Vec<u8>> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({"id": how.id("chatcmpl-"), "object": "chat.completion.chunk",
            "created": message::CREATED, "model": how.model, "choices": choices});
        if how.shape == Shape::StreamWithUsage {
            chunk["usage"] = usage;
        }
        data(&chunk)
    };
    let event = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), Value::Null)
    };
    let text = reply.texts();
    let content = if text.is_empty() && !reply.calls.is_empty() { Value::Null } else { json!("") };
    let mut chunks =
        vec![event(json!({"role": "assistant", "content": content, "refusal": null}), Value::Null)];
    for piece in script::cut(&reply.reasoning, reply.chunk_chars) {
        chunks.push(event(json!({"reasoning_content": piece}), Value::Null));
    }
    for piece in text {
        chunks.push(event(json!({"content": piece}), Value::Null));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id_or_fresh("call_", index);
        let [first, second] = halves(call);
        let mut begun =
            json!({"index": index, "type": "function", "function": {"name": call.name, "arguments": first}});
        if !id.is_empty() {
            begun["id"] = json!(id);
        }
        chunks.push(event(json!({"tool_calls": [begun]}), Value::Null));
        let more = json!({"index": index, "function": {"arguments": second}});
        chunks.push(event(json!({"tool_calls": [more]}), Value::Null));
    }
    chunks.push(event(json!({}), json!(message::finish(how.wire, reply))));
    if how.shape == Shape::StreamWithUsage {
        chunks.push(chunk(json!([]), message::usage(how.wire, reply)));
    }
    chunks.push(b"data: [DONE]\n\n".to_vec());
    chunks
}

pub(super) fn anthropic(how: &Rendering, reply: &Reply) -> Vec<Vec<u8>> {
    let [input, output] = reply.usage.unwrap_or(message::USAGE);
    let mut chunks = vec![
        named(&json!({"type": "message_start", "message": {"id": how.id("msg_"), "type": "message",
            "role": "assistant", "model": how.model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 1}}})),
        named(&json!({"type": "ping"})),
    ];
    for (index, (start, deltas)) in blocks(reply).into_iter().enumerate() {
        chunks.push(named(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            chunks.push(named(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        chunks.push(named(&json!({"type": "content_block_stop", "index": index})));
    }
    chunks.push(named(&json!({"type": "message_delta",
        "delta": {"stop_reason": message::finish(how.wire, reply), "stop_sequence": null},
        "usage": {"output_tokens": output}})));
    chunks.push(named(&json!({"type": "message_stop"})));
    chunks
}

/// The content blocks of a message, each with its deltas.
fn blocks(reply: &Reply) -> Vec<(Value, Vec<Value>)> {
    let mut blocks = Vec::new();
    if !reply.reasoning.is_empty() {
        let thoughts = script::cut(&reply.reasoning, reply.chunk_chars);
        let mut deltas: Vec<Value> =
            thoughts.into_iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": message::SEAL}));
        blocks.push((json!({"type": "thinking", "thinking": "", "signature": ""}), deltas));
    }
    if !reply.redacted.is_empty() {
        blocks.push((json!({"type": "redacted_thinking", "data": reply.redacted}), Vec::new()));
    }
    let text = reply.texts();
    if !text.is_empty() {
        let deltas = text.into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        blocks.push((json!({"type": "text", "text": ""}), deltas));
    }
    for (place, call) in reply.calls.iter().enumerate() {
        let deltas = halves(call).map(|half| json!({"type": "input_json_delta", "partial_json": half}));
        let id = call.id_or_fresh("toolu_", place);
        blocks.push((json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}), deltas.to_vec()));
    }
    blocks
}

pub(super) fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

pub(in crate::server) fn named(value: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()).into_bytes()
}
