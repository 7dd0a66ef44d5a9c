//! History as chat completions want it: each call answered right after its message, by its id.

use std::borrow::Cow;

use safepoint::{
    history::Message,
    message::{AssistantMessage, Block, CallResult, ProviderPart, UserMessage},
};
use serde_json::{Value, json};

use super::Chat;
use crate::{body::json_str, encoded_history::Entries, parts, provider_blocks, wired::Wire as _};

#[derive(Clone, Debug)]
pub(super) struct ChatEncoder {
    /// Whether a message stands before the next one, so that a comma must.
    has_message: bool,
}

pub(super) fn system(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
    json_str(out, text);
    out.push(b'}');
}

impl ChatEncoder {
    /// The list behind these instructions, which are its first message.
    pub(super) fn behind(system: Option<&str>) -> Self {
        Self { has_message: system.is_some() }
    }

    fn comma(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_message, true) {
            out.push(b',');
        }
    }
}

impl Entries for ChatEncoder {
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message) {
        match entry {
            Message::User(message) => {
                self.comma(out);
                out.extend_from_slice(b"{\"role\":\"user\",\"content\":");
                content(out, message);
                out.push(b'}');
            }
            // Nothing in it that this wire can say: reasoning alone, or nothing at all.
            Message::Assistant(message) if message.is_blank() => {}
            Message::Assistant(message) => {
                self.comma(out);
                assistant(out, message);
            }
            Message::Results { results } => {
                let mut shown = Vec::new();
                for result in results {
                    self.comma(out);
                    shown.extend(tool(out, result));
                }
                beside(out, shown);
            }
        }
    }

    fn tail(&self) -> &'static [u8] {
        b"]}"
    }
}

/// A string, or a list where something goes with it.
fn content(out: &mut Vec<u8>, message: &UserMessage) {
    if message.parts.is_empty() {
        return json_str(out, &message.text);
    }
    parts::list(out, ("text", &message.text), parts::taken(&message.parts, parts::chat));
}

fn assistant(out: &mut Vec<u8>, message: &AssistantMessage) {
    out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
    let text = text(message);
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

/// What the model said, with a note where another wire's provider did something itself.
fn text(message: &AssistantMessage) -> Cow<'_, str> {
    // The wire takes nothing back of what a provider did; where its own texts are from is said in them.
    let is_foreign = |block: &Block| match block {
        Block::Provider(own) if own.wire == Chat::NAME && matches!(own.part, ProviderPart::Citations(_)) => {
            None
        }
        block => provider_blocks::foreign(block, ""),
    };
    if !message.blocks.iter().any(|block| is_foreign(block).is_some()) {
        return message.text();
    }
    let mut said = String::new();
    for block in &message.blocks {
        match block {
            Block::Text { text } => said.push_str(text),
            Block::Reasoning(_) | Block::Call(_) | Block::Provider(_) => {
                if let Some(note) = is_foreign(block) {
                    said.push_str(if said.is_empty() || said.ends_with('\n') { "" } else { "\n" });
                    said.push_str(&note);
                    said.push('\n');
                }
            }
        }
    }
    said.truncate(said.trim_end().len());
    said.into()
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
