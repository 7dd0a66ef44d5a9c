//! History as Responses want it: a flat list of items, each call answered by its id, and sealed reasoning only where
//! an item of the same message follows it.

use safepoint::{
    history::Message,
    message::{AssistantMessage, Block, CallResult, ToolCall, UserMessage},
};
use serde_json::{Value, json};

use super::{Stateless, own};
use crate::{body::json_str, encoded_history::Entries, parts, provider_blocks, wired::Wire as _};

/// What stands in the list already.
#[derive(Clone, Debug, Default)]
pub(super) struct ItemEncoder {
    has_item: bool,
}

impl Entries for ItemEncoder {
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message) {
        match entry {
            Message::User(message) if message.parts.is_empty() => self.said(out, "user", &message.text),
            Message::User(message) => self.shown(out, message),
            Message::Assistant(message) => self.assistant(out, message),
            Message::Results { results } => {
                for result in results {
                    self.output(out, result);
                }
            }
        }
    }

    fn tail(&self) -> &'static [u8] {
        b"]}"
    }
}

impl ItemEncoder {
    /// Reasoning waits for what it led to: the provider refuses a reasoning item that nothing follows, as a cut
    /// message leaves it.
    fn assistant(&mut self, out: &mut Vec<u8>, message: &AssistantMessage) {
        let mut thoughts: Vec<&Value> = Vec::new();
        for (place, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Reasoning(_) | Block::Provider(_) => {
                    let raw = provider_blocks::raw(block, Stateless::NAME);
                    if let Some(own) = raw.and_then(own::sent) {
                        self.thoughts(out, &mut thoughts);
                        self.item(out, own);
                    } else if let Some(note) = provider_blocks::foreign(block, Stateless::NAME) {
                        self.thoughts(out, &mut thoughts);
                        self.said(out, "assistant", &note);
                    }
                    thoughts.extend(raw.filter(|seal| is_ours(seal)));
                }
                Block::Text { text } if text.trim().is_empty() => {}
                Block::Text { text } => {
                    self.thoughts(out, &mut thoughts);
                    self.text(out, text, own::annotations_of(message.blocks.get(place + 1)));
                }
                Block::Call(call) => {
                    self.thoughts(out, &mut thoughts);
                    self.call(out, call);
                }
            }
        }
    }

    /// A text of the model's, of which the last bytes may have annotations.
    fn text(&mut self, out: &mut Vec<u8>, text: &str, annotations: Option<(usize, &Value)>) {
        let Some((bytes, annotations)) = annotations else { return self.said(out, "assistant", text) };
        let (plain, annotated) =
            text.split_at_checked(text.len().saturating_sub(bytes)).unwrap_or(("", text));
        if !plain.trim().is_empty() {
            self.said(out, "assistant", plain);
        }
        let content = json!([{"type": "output_text", "text": annotated, "annotations": annotations}]);
        self.item(out, &json!({"type": "message", "role": "assistant", "content": content}));
    }

    fn thoughts(&mut self, out: &mut Vec<u8>, thoughts: &mut Vec<&Value>) {
        for thought in thoughts.drain(..) {
            self.item(out, thought);
        }
    }

    fn item(&mut self, out: &mut Vec<u8>, item: &Value) {
        self.comma(out);
        serde_json::to_writer(&mut *out, item).expect("writing JSON to memory cannot fail");
    }

    fn said(&mut self, out: &mut Vec<u8>, role: &str, text: &str) {
        self.comma(out);
        out.extend_from_slice(b"{\"type\":\"message\",\"role\":");
        json_str(out, role);
        out.extend_from_slice(b",\"content\":");
        json_str(out, text);
        out.push(b'}');
    }

    /// What a person says with something beside it.
    fn shown(&mut self, out: &mut Vec<u8>, message: &UserMessage) {
        self.comma(out);
        out.extend_from_slice(b"{\"type\":\"message\",\"role\":\"user\",\"content\":");
        let parts = parts::taken(&message.parts, parts::responses);
        parts::list(out, ("input_text", &message.text), parts);
        out.push(b'}');
    }

    /// Without the item's own id, so that the provider does not look for the item that it did not store.
    fn call(&mut self, out: &mut Vec<u8>, call: &ToolCall) {
        self.comma(out);
        out.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
        json_str(out, call.id.as_str());
        out.extend_from_slice(b",\"name\":");
        json_str(out, &call.name);
        out.extend_from_slice(b",\"arguments\":");
        json_str(out, &call.args);
        out.push(b'}');
    }

    fn output(&mut self, out: &mut Vec<u8>, result: &CallResult) {
        let (text, parts) = parts::of_result(result, parts::responses);
        self.comma(out);
        out.extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
        json_str(out, result.call_id.as_str());
        out.extend_from_slice(b",\"output\":");
        if parts.is_empty() {
            json_str(out, &text);
        } else {
            parts::list(out, ("input_text", &text), parts);
        }
        out.push(b'}');
    }

    fn comma(&mut self, out: &mut Vec<u8>) {
        if self.has_item {
            out.push(b',');
        }
        self.has_item = true;
    }
}

/// Whether a seal is of this wire: a history may come from another.
fn is_ours(seal: &Value) -> bool {
    seal["type"] == "reasoning"
}
