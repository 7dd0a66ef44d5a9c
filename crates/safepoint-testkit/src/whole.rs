//! Replies that are not streamed.

use serde_json::{Value, json};

use crate::{script::Reply, server::Wire};

pub(crate) fn message(wire: Wire, reply: &Reply, model: &str) -> Value {
    let [input, output] = reply.usage.unwrap_or([10, 5]);
    match wire {
        Wire::OpenAi => {
            let calls: Vec<Value> = reply
                .calls
                .iter()
                .enumerate()
                .map(|(index, call)| {
                    json!({"id": call.id.clone().unwrap_or_else(|| format!("call_{index}")), "type": "function",
                        "function": {"name": call.name, "arguments": text(&call.args)}})
                })
                .collect();
            let natural = if calls.is_empty() { "stop" } else { "tool_calls" };
            let mut message = json!({"role": "assistant", "content": reply.text});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            json!({"id": "chatcmpl-scripted", "object": "chat.completion", "created": 1_700_000_000, "model": model,
                "choices": [{"index": 0, "message": message,
                    "finish_reason": reply.finish.as_deref().unwrap_or(natural)}],
                "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
        }
        Wire::Anthropic => {
            let mut content = Vec::new();
            if !reply.text.is_empty() {
                content.push(json!({"type": "text", "text": reply.text}));
            }
            for (index, call) in reply.calls.iter().enumerate() {
                let id = call.id.clone().unwrap_or_else(|| format!("toolu_{index}"));
                content.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": call.args}));
            }
            let natural = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
            json!({"id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": reply.finish.as_deref().unwrap_or(natural), "stop_sequence": null,
                "usage": {"input_tokens": input, "output_tokens": output}})
        }
    }
}

fn text(args: &Value) -> String {
    args.as_str().map_or_else(|| args.to_string(), ToOwned::to_owned)
}
