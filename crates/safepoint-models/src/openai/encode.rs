//! History as chat completions want it: each call answered right after its message, by its id.

use safepoint::{
    history::Message,
    message::{AssistantMessage, CallResult, UserMessage},
};
use serde_json::{Value, json};

use crate::{body::json_str, parts};

pub(super) fn system(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
    json_str(out, text);
    out.push(b'}');
}

/// Appends one entry; says whether anything stands in the list now.
pub(super) fn entry(out: &mut Vec<u8>, entry: &Message, started: bool) -> bool {
    match entry {
        Message::User(message) => {
            comma(out, started);
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":");
            content(out, message);
            out.push(b'}');
            true
        }
        // Nothing in it that this wire can say: reasoning alone, or nothing at all.
        Message::Assistant(message) if message.is_blank() => started,
        Message::Assistant(message) => {
            comma(out, started);
            assistant(out, message);
            true
        }
        Message::Results { results } => {
            let mut shown = Vec::new();
            let started = results.iter().fold(started, |started, result| {
                comma(out, started);
                shown.extend(tool(out, result));
                true
            });
            beside(out, shown);
            started
        }
    }
}

/// A string, or a list where something goes with it.
fn content(out: &mut Vec<u8>, message: &UserMessage) {
    if message.parts.is_empty() {
        return json_str(out, &message.text);
    }
    parts::list(out, ("text", &message.text), parts::taken(&message.parts, parts::chat));
}

fn comma(out: &mut Vec<u8>, started: bool) {
    if started {
        out.push(b',');
    }
}

fn assistant(out: &mut Vec<u8>, message: &AssistantMessage) {
    out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
    let text = message.text();
    if text.is_empty() {
        out.extend_from_slice(b"null")
    } else {
        json_str(out, &text)
    }
    for (i, call) in message.calls().enumerate() {
        out.extend_from_slice(if i == 0 { b",\"tool_calls\":[" } else { b"," });
        out.extend_from_slice(b"{\"type\":\"function\",\"id\":");
        json_str(out, call.id.as_str());
        out.extend_from_slice(b",\"function\":{\"name\":");
        json_str(out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        json_str(out, &call.args);
        out.extend_from_slice(b"}}");
    }
    if message.calls().next().is_some() {
        out.push(b']');
    }
    out.push(b'}');
}

/// A tool's message is text alone on this wire. Gives back what must go beside it.
fn tool(out: &mut Vec<u8>, result: &CallResult) -> Vec<Value> {
    let (text, mut parts) = parts::of_result(result, parts::chat);
    out.extend_from_slice(b"{\"role\":\"tool\",\"tool_call_id\":");
    json_str(out, result.call_id.as_str());
    out.extend_from_slice(b",\"content\":");
    json_str(out, &text);
    out.push(b'}');
    if !parts.is_empty() {
        let whose = format!("[what the call {} of {} gave back:]", result.call_id, result.name);
        parts.insert(0, json!({"type": "text", "text": whose}));
    }
    parts
}

/// Images and files of results, behind all of the round's results, where only a user's message can hold them.
fn beside(out: &mut Vec<u8>, shown: Vec<Value>) {
    if !shown.is_empty() {
        out.extend_from_slice(b",{\"role\":\"user\",\"content\":");
        parts::list(out, ("text", ""), shown);
        out.push(b'}');
    }
}
