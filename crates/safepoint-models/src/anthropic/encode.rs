//! History as messages want it: roles alternate, results come first in the very next user message, nothing stands
//! after a `tool_use`, no text is empty, and reasoning goes back only with its seal.
//!
//! **Invariants**: what is encoded is open at its end (the last block's brace, the block list and the message list
//! are not closed), so that the next entry of the same role joins its message and a cache mark can still be set.

use safepoint::{
    history::Message,
    message::{AssistantMessage, Block, CallResult, ResultStatus, ToolCall},
};
use serde_json::Value;

use super::{CacheTime, Messages, own};
use crate::{
    body::{json_object, json_str},
    encoded_history::Entries,
    parts, provider_blocks,
    wired::Wire as _,
};

#[derive(Clone, Debug)]
pub(super) struct MessageEncoder {
    open: Option<Role>,
    /// For how long the newest block is marked for the cache, if it is.
    marks_newest: Option<CacheTime>,
}

/// Whose message is open. Exhaustive: this wire has two roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

impl Entries for MessageEncoder {
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message) {
        match entry {
            Message::User(message) => {
                if !message.text.trim().is_empty() {
                    self.block(out, Role::User);
                    text_block(out, &message.text);
                }
                for part in message.parts.iter().filter_map(|part| parts::anthropic(part).ok()) {
                    self.block(out, Role::User);
                    // Without its closing brace, as any block.
                    sealed_block(out, &part);
                }
            }
            // A damaged history may begin with calls: they are not sent, so neither are their results.
            Message::Results { .. } if self.open.is_none() => {}
            Message::Results { results } => {
                for result in results {
                    self.block(out, Role::User);
                    result_block(out, result);
                }
            }
            Message::Assistant(message) => self.assistant(out, message),
        }
    }

    fn tail(&self) -> &'static [u8] {
        match (self.open, self.marks_newest) {
            (None, _) => b"]}",
            (Some(_), None) => b"}]}]}",
            (Some(_), Some(CacheTime::FiveMinutes)) => b",\"cache_control\":{\"type\":\"ephemeral\"}}]}]}",
            (Some(_), Some(CacheTime::Hour)) => {
                b",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}]}]}"
            }
        }
    }
}

impl MessageEncoder {
    pub(super) fn new(marks_newest: Option<CacheTime>) -> Self {
        Self { open: None, marks_newest }
    }

    /// Sealed reasoning first, then text and what the provider did itself, in their order, then calls: the one order that
    /// this wire takes in every case.
    fn assistant(&mut self, out: &mut Vec<u8>, message: &AssistantMessage) {
        if message.is_blank() || self.open.is_none() {
            // A conversation begins with the user; an answer to nothing is not sent.
            return;
        }
        for block in &message.blocks {
            if let Block::Reasoning(reasoning) = block
                && let Some(seal) = reasoning.seal.as_ref().filter(|seal| is_ours(seal))
            {
                self.block(out, Role::Assistant);
                sealed_block(out, seal);
            }
        }
        let whole = own::whole(message);
        for (place, block) in message.blocks.iter().enumerate() {
            match block {
                Block::Text { text } => {
                    self.text(out, text, own::citations_of(message.blocks.get(place + 1)))
                }
                Block::Reasoning(_) | Block::Call(_) | Block::Provider(_) => {
                    if let Some(own) = own::sent(block, &whole) {
                        self.block(out, Role::Assistant);
                        sealed_block(out, own);
                    } else if let Some(note) = provider_blocks::foreign(block, Messages::NAME) {
                        self.text(out, &note, None);
                    }
                }
            }
        }
        for call in message.calls() {
            self.block(out, Role::Assistant);
            call_block(out, call);
        }
    }

    /// A text, of which the last bytes may be cited: these are a block of their own, as they were.
    fn text(&mut self, out: &mut Vec<u8>, text: &str, citations: Option<(usize, &Value)>) {
        let plain = match citations {
            Some((bytes, _)) => text.len().saturating_sub(bytes),
            None => text.len(),
        };
        let (plain, cited) = text.split_at_checked(plain).unwrap_or((text, ""));
        for (text, citations) in [(plain, None), (cited, citations)] {
            if text.trim().is_empty() {
                continue;
            }
            self.block(out, Role::Assistant);
            text_block(out, text.trim_end());
            if let Some((_, citations)) = citations {
                out.extend_from_slice(b",\"citations\":");
                serde_json::to_writer(&mut *out, citations).expect("writing JSON to memory cannot fail");
            }
        }
    }

    /// Opens a block of this role: in the message that is open, or in a new one.
    fn block(&mut self, out: &mut Vec<u8>, role: Role) {
        match self.open {
            Some(open) if open == role => out.extend_from_slice(b"},"),
            open => {
                if open.is_some() {
                    out.extend_from_slice(b"}]},");
                }
                out.extend_from_slice(match role {
                    Role::User => b"{\"role\":\"user\",\"content\":[".as_slice(),
                    Role::Assistant => b"{\"role\":\"assistant\",\"content\":[".as_slice(),
                });
                self.open = Some(role);
            }
        }
    }
}

/// Whether a seal is of this wire: a history may come from another.
fn is_ours(seal: &Value) -> bool {
    seal["type"] == "thinking" || seal["type"] == "redacted_thinking"
}

// Each of these writes a block without its closing brace.

fn text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    json_str(out, text);
}

fn sealed_block(out: &mut Vec<u8>, seal: &Value) {
    serde_json::to_writer(&mut *out, seal).expect("writing JSON to memory cannot fail");
    out.pop();
}

fn call_block(out: &mut Vec<u8>, call: &ToolCall) {
    out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
    json_str(out, call.id.as_str());
    out.extend_from_slice(b",\"name\":");
    json_str(out, &call.name);
    out.extend_from_slice(b",\"input\":");
    json_object(out, &call.args);
}

fn result_block(out: &mut Vec<u8>, result: &CallResult) {
    out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    json_str(out, result.call_id.as_str());
    if result.verdict == ResultStatus::Error {
        out.extend_from_slice(b",\"is_error\":true");
    }
    // Of an error the provider takes text alone.
    let write =
        if result.verdict == ResultStatus::Error { parts::none_with_an_error } else { parts::anthropic };
    let (text, parts) = parts::of_result(result, write);
    if !parts.is_empty() {
        out.extend_from_slice(b",\"content\":");
        parts::list(out, ("text", &text), parts);
    } else if !text.trim().is_empty() {
        out.extend_from_slice(b",\"content\":");
        json_str(out, &text);
    }
}
