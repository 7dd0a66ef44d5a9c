//! Replies as Responses gives them: items one after the other, each event numbered.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{
    Rendering, message,
    stream::{halves, named},
};
use crate::{
    script::{self, Reply},
    server::ServedWire,
};

/// A whole response.
pub(super) fn whole(how: &Rendering, reply: &Reply) -> Value {
    let output = items(how, reply).into_iter().map(|(item, _)| item).collect();
    response(how, id(how), reply, output)
}

/// The events of a streamed response.
pub(super) fn chunks(how: &Rendering, reply: &Reply) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let id = id(how);
    let begun = json!({"id": id, "object": "response", "created_at": message::CREATED, "model": how.model,
        "status": "in_progress", "background": how.is_kept(), "output": [], "usage": null, "error": null,
        "incomplete_details": null});
    events.push(json!({"type": "response.created", "response": begun}));
    events.push(json!({"type": "response.in_progress", "response": begun}));
    let mut output = Vec::new();
    for (index, (item, inner)) in items(how, reply).into_iter().enumerate() {
        let mut added = item.clone();
        added["status"] = json!("in_progress");
        for field in ["content", "summary"] {
            if added[field].is_array() {
                added[field] = json!([]);
            }
        }
        if added["arguments"].is_string() {
            added["arguments"] = json!("");
        }
        if added["encrypted_content"].is_string() {
            added["encrypted_content"] = Value::Null;
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        for mut event in inner {
            event["output_index"] = json!(index);
            event["item_id"] = item["id"].clone();
            events.push(event);
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        output.push(item);
    }
    let over = response(how, id, reply, output);
    let kind = format!("response.{}", over["status"].as_str().unwrap_or_default());
    events.push(json!({"type": kind, "response": over}));
    events
        .into_iter()
        .enumerate()
        .map(|(number, mut event)| {
            event["sequence_number"] = json!(number);
            named(&event)
        })
        .collect()
}

/// An error in the middle of a stream.
pub(super) fn error() -> Vec<u8> {
    named(&json!({"type": "error", "code": "server_error", "message": "scripted 500", "param": null}))
}

fn response(how: &Rendering, id: String, reply: &Reply, output: Vec<Value>) -> Value {
    let finish = message::finish(ServedWire::Responses, reply);
    let (status, details) = match finish.as_str() {
        "completed" => ("completed", Value::Null),
        reason => ("incomplete", json!({ "reason": reason })),
    };
    json!({"id": id, "object": "response", "created_at": message::CREATED, "model": how.model, "status": status,
        "background": how.is_kept(), "error": null, "incomplete_details": details, "output": output,
        "usage": message::usage(ServedWire::Responses, reply)})
}

/// A kept response has its own id on every server.
fn id(how: &Rendering) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if how.is_kept() {
        // Relaxed: each number is given once, and orders nothing.
        format!("resp_{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
    } else {
        how.id("resp_")
    }
}

/// The items of a reply, each with the events inside it.
fn items(how: &Rendering, reply: &Reply) -> Vec<(Value, Vec<Value>)> {
    let mut items = Vec::new();
    if !reply.reasoning.is_empty() {
        items.push(reasoning(how, &reply.reasoning, reply.chunk_chars));
    }
    if !reply.redacted.is_empty() {
        let item = json!({"id": how.id("rs_sealed_"), "type": "reasoning", "summary": [],
            "encrypted_content": reply.redacted});
        items.push((item, Vec::new()));
    }
    if !reply.whole_text().is_empty() {
        items.push(text(how, reply));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call.id_or_fresh("call_", index);
        let args = call.arguments();
        let mut events: Vec<Value> = halves(call)
            .map(|half| json!({"type": "response.function_call_arguments.delta", "delta": half}))
            .to_vec();
        events.push(json!({"type": "response.function_call_arguments.done", "arguments": args}));
        let item = json!({"id": how.id(&format!("fc_{index}_")), "type": "function_call", "status": "completed",
            "call_id": id, "name": call.name, "arguments": args});
        items.push((item, events));
    }
    items
}

fn reasoning(how: &Rendering, text: &str, chars: usize) -> (Value, Vec<Value>) {
    let part = json!({"type": "summary_text", "text": text});
    let mut events = vec![json!({"type": "response.reasoning_summary_part.added", "summary_index": 0,
        "part": {"type": "summary_text", "text": ""}})];
    for piece in script::cut(text, chars) {
        events.push(
            json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece}),
        );
    }
    events.push(json!({"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": text}));
    events.push(json!({"type": "response.reasoning_summary_part.done", "summary_index": 0, "part": part}));
    let item = json!({"id": how.id("rs_"), "type": "reasoning", "summary": [part],
        "encrypted_content": message::SEAL});
    (item, events)
}

fn text(how: &Rendering, reply: &Reply) -> (Value, Vec<Value>) {
    let whole = reply.whole_text();
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let mut events =
        vec![json!({"type": "response.content_part.added", "content_index": 0, "part": part("")})];
    for piece in reply.texts() {
        events.push(json!({"type": "response.output_text.delta", "content_index": 0, "delta": piece}));
    }
    events.push(json!({"type": "response.output_text.done", "content_index": 0, "text": whole}));
    events.push(json!({"type": "response.content_part.done", "content_index": 0, "part": part(&whole)}));
    let item = json!({"id": how.id("msg_"), "type": "message", "role": "assistant", "status": "completed",
        "content": [part(&whole)]});
    (item, events)
}
