//! History as Gemini wants it: as many function responses as calls, in a content of their own directly behind; a
//! signature back on the part that it came with; no two contents of the model in a row.
//!
//! **Invariants**: what is encoded is open at its end (the part list and the content list are not closed), so that the
//! next entry of the same kind joins its content.

use safepoint::{
    history::Message,
    ids::CallId,
    message::{AssistantMessage, Block, CallResult, ResultStatus, ToolCall, UserMessage},
};
use serde_json::Value;

use super::{GenerateContent, own, read::is_made};
use crate::{
    body::{json_object, json_str},
    encoded_history::Entries,
    parts, provider_blocks,
    wired::Wire as _,
};

/// What a first call carries that this wire gave no signature for, such as one of another provider's model: the value
/// that the provider names for it.
const FOREIGN: &str = "skip_thought_signature_validator";

#[derive(Clone, Debug)]
pub(super) struct Contents {
    open: Option<ContentKind>,
    /// Whether the model wants a signature with a first call, and takes what goes with a result inside it: models from
    /// Gemini 3 on do; older ones never ask, and others of this wire have none.
    is_signed: bool,
}

/// What the open content holds. Exhaustive: results stand apart from what the user said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentKind {
    Said,
    Results,
    Model,
}

impl Entries for Contents {
    fn entry(&mut self, out: &mut Vec<u8>, entry: &Message) {
        match entry {
            Message::User(message) => self.said(out, message),
            // A conversation begins with the user; an answer to nothing is not sent.
            Message::Assistant(_) | Message::Results { .. } if self.open.is_none() => {}
            Message::Assistant(message) if message.is_blank() => {}
            Message::Assistant(message) => self.model(out, message),
            Message::Results { results } => {
                let mut beside = Vec::new();
                for result in results {
                    self.part(out, ContentKind::Results);
                    beside.extend(self.response(out, result));
                }
                for part in beside {
                    self.part(out, ContentKind::Said);
                    serde_json::to_writer(&mut *out, &part).expect("writing JSON to memory cannot fail");
                }
            }
        }
    }

    fn tail(&self) -> &'static [u8] {
        if self.open.is_some() { b"]}]}" } else { b"]}" }
    }
}

impl Contents {
    /// No content yet, for the model of this name.
    pub(super) fn for_model(name: &str) -> Self {
        const FIRST_SIGNED: u32 = 3;
        let version = name.strip_prefix("gemini-").unwrap_or_default();
        let digits = version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        let is_signed = digits.parse::<u32>().is_ok_and(|major| major >= FIRST_SIGNED);
        Self { open: None, is_signed }
    }

    fn said(&mut self, out: &mut Vec<u8>, message: &UserMessage) {
        if !message.text.trim().is_empty() {
            self.part(out, ContentKind::Said);
            text_part(out, &message.text, None);
        }
        for part in parts::taken(&message.parts, parts::gemini) {
            self.part(out, ContentKind::Said);
            serde_json::to_writer(&mut *out, &part).expect("writing JSON to memory cannot fail");
        }
    }

    fn model(&mut self, out: &mut Vec<u8>, message: &AssistantMessage) {
        let mut waiting: Option<&str> = None;
        let mut blocks = message.blocks.iter().peekable();
        let mut calls = 0;
        while let Some(block) = blocks.next() {
            match block {
                Block::Reasoning(_) | Block::Provider(_) => {
                    let raw = provider_blocks::raw(block, GenerateContent::NAME);
                    if let Some(part) = raw.and_then(own::sent) {
                        self.part(out, ContentKind::Model);
                        serde_json::to_writer(&mut *out, part).expect("writing JSON to memory cannot fail");
                    } else if let Some(note) = provider_blocks::foreign(block, GenerateContent::NAME) {
                        self.part(out, ContentKind::Model);
                        text_part(out, &note, None);
                    }
                    waiting = raw.and_then(|seal| signature(seal, "call")).or(waiting);
                }
                Block::Text { text } if text.trim().is_empty() => {}
                Block::Text { text } => {
                    let behind = blocks.peek().and_then(|next| match next {
                        Block::Reasoning(reasoning) => signature(reasoning.seal.as_ref()?, "text"),
                        Block::Text { .. } | Block::Call(_) | Block::Provider(_) => None,
                    });
                    self.part(out, ContentKind::Model);
                    text_part(out, text, behind);
                }
                Block::Call(call) => {
                    let foreign = (calls == 0 && self.is_signed).then_some(FOREIGN);
                    calls += 1;
                    self.part(out, ContentKind::Model);
                    call_part(out, call, waiting.take().or(foreign));
                }
            }
        }
    }

    /// A result with what goes with it, or what must go behind all results: models take it inside one from Gemini 3 on.
    fn response(&self, out: &mut Vec<u8>, result: &CallResult) -> Vec<Value> {
        if self.is_signed {
            let (text, parts) = parts::of_result(result, parts::gemini_result);
            response_part(out, result, &text, &parts);
            return Vec::new();
        }
        let (text, parts) = parts::of_result(result, parts::gemini_beside);
        response_part(out, result, &text, &[]);
        parts
    }

    /// Begins a part of this kind: in the content that is open, or in a new one.
    fn part(&mut self, out: &mut Vec<u8>, kind: ContentKind) {
        match self.open {
            Some(open) if open == kind => out.push(b','),
            open => {
                if open.is_some() {
                    out.extend_from_slice(b"]},");
                }
                out.extend_from_slice(match kind {
                    ContentKind::Said | ContentKind::Results => b"{\"role\":\"user\",\"parts\":[".as_slice(),
                    ContentKind::Model => b"{\"role\":\"model\",\"parts\":[".as_slice(),
                });
                self.open = Some(kind);
            }
        }
    }
}

/// The signature in a seal of this wire that came with such a part; a history may come from another wire.
fn signature<'s>(seal: &'s Value, of: &str) -> Option<&'s str> {
    (seal["type"] == "thought_signature" && seal["of"] == of).then(|| seal["signature"].as_str()).flatten()
}

fn text_part(out: &mut Vec<u8>, text: &str, signature: Option<&str>) {
    out.extend_from_slice(b"{\"text\":");
    json_str(out, text);
    signed(out, signature);
}

fn call_part(out: &mut Vec<u8>, call: &ToolCall, signature: Option<&str>) {
    out.extend_from_slice(b"{\"functionCall\":{");
    id(out, &call.id);
    out.extend_from_slice(b"\"name\":");
    json_str(out, &call.name);
    out.extend_from_slice(b",\"args\":");
    json_object(out, &call.args);
    out.push(b'}');
    signed(out, signature);
}

fn response_part(out: &mut Vec<u8>, result: &CallResult, text: &str, parts: &[Value]) {
    out.extend_from_slice(b"{\"functionResponse\":{");
    id(out, &result.call_id);
    out.extend_from_slice(b"\"name\":");
    json_str(out, &result.name);
    out.extend_from_slice(match result.verdict {
        ResultStatus::Ok => b",\"response\":{\"output\":".as_slice(),
        ResultStatus::Error => b",\"response\":{\"error\":".as_slice(),
    });
    match &result.structured {
        Some(value) if value.to_string() == text => out.extend_from_slice(text.as_bytes()),
        Some(_) | None => json_str(out, text),
    }
    out.push(b'}');
    if !parts.is_empty() {
        out.extend_from_slice(b",\"parts\":");
        serde_json::to_writer(&mut *out, parts).expect("writing JSON to memory cannot fail");
    }
    out.extend_from_slice(b"}}");
}

/// An id goes back only where one came; otherwise calls and responses belong together by their order.
fn id(out: &mut Vec<u8>, id: &CallId) {
    if !is_made(id) {
        out.extend_from_slice(b"\"id\":");
        json_str(out, id.as_str());
        out.push(b',');
    }
}

fn signed(out: &mut Vec<u8>, signature: Option<&str>) {
    if let Some(signature) = signature {
        out.extend_from_slice(b",\"thoughtSignature\":");
        json_str(out, signature);
    }
    out.push(b'}');
}
