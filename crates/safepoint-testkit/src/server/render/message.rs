//! Replies of chat completions and Anthropic messages that are not streamed, and what all wires share.

use serde_json::{Value, json};

use super::Rendering;
use crate::{script::Reply, server::ServedWire};

/// When every reply was made, in seconds: the same bytes each time.
pub(super) const CREATED: u64 = 1_700_000_000;
/// Input and output tokens where none are named.
pub(super) const USAGE: [u64; 2] = [10, 5];
/// The signature of scripted thoughts.
pub(super) const SEAL: &str = "c2NyaXB0ZWQ=";

pub(super) fn openai(how: &Rendering, reply: &Reply) -> Value {
    let text = reply.whole_text();
    let content = if text.is_empty() && !reply.calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reply.reasoning.is_empty() {
        message["reasoning_content"] = json!(reply.reasoning);
    }
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        json!({"id": call.id_or_fresh("call_", index), "type": "function",
            "function": {"name": call.name, "arguments": call.arguments()}})
    });
    if !reply.calls.is_empty() {
        message["tool_calls"] = calls.collect();
    }
    json!({"id": how.id("chatcmpl-"), "object": "chat.completion", "created": CREATED, "model": how.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(how.wire, reply)}],
        "usage": usage(how.wire, reply)})
}

pub(super) fn anthropic(how: &Rendering, reply: &Reply) -> Value {
    let mut content = Vec::new();
    if !reply.reasoning.is_empty() {
        content.push(json!({"type": "thinking", "thinking": reply.reasoning, "signature": SEAL}));
    }
    if !reply.redacted.is_empty() {
        content.push(json!({"type": "redacted_thinking", "data": reply.redacted}));
    }
    let text = reply.whole_text();
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id_or_fresh("toolu_", index);
        content.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": call.args}));
    }
    json!({"id": how.id("msg_"), "type": "message", "role": "assistant", "model": how.model, "content": content,
        "stop_reason": finish(how.wire, reply), "stop_sequence": null, "usage": usage(how.wire, reply)})
}

/// Why it ended, in the wire's words.
pub(super) fn finish(wire: ServedWire, reply: &Reply) -> String {
    let natural = match (wire, reply.calls.is_empty()) {
        (ServedWire::OpenAi, true) => "stop",
        (ServedWire::OpenAi, false) => "tool_calls",
        (ServedWire::Anthropic, true) => "end_turn",
        (ServedWire::Anthropic, false) => "tool_use",
        (ServedWire::Responses, _) => "completed",
        (ServedWire::Gemini, _) => "STOP",
    };
    reply.finish.clone().unwrap_or_else(|| natural.to_owned())
}

pub(super) fn usage(wire: ServedWire, reply: &Reply) -> Value {
    let [input, output] = reply.usage.unwrap_or(USAGE);
    match wire {
        ServedWire::OpenAi => {
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
        }
        ServedWire::Anthropic => json!({"input_tokens": input, "output_tokens": output}),
        ServedWire::Responses => json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output}),
        ServedWire::Gemini => {
            json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output})
        }
    }
}
