//! A message's events as deltas: blocks one after the other, each sealed or complete at its stop.

use std::{collections::VecDeque, sync::Arc};

use safepoint::{
    Usage,
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError},
    usage::UsageSource,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::own;
use crate::{
    error,
    http::ReplyReader,
    kept::Citations,
    reply::{self, Ending, ErrorWords, Text, Typed},
    sse::SseEvent,
};

/// An event of a known type.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct MessageEvent<'a> {
    message: Option<Start>,
    content_block: Option<&'a RawValue>,
    delta: Option<BlockDelta<'a>>,
    usage: Option<EventUsage>,
    error: Option<ErrorWords<'a>>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<EventUsage>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct StartBlock<'a> {
    text: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    data: Option<Text<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    input: Option<&'a RawValue>,
}

/// More of a block, or the message's end.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    signature: Option<Text<'a>>,
    partial_json: Option<Text<'a>>,
    citation: Option<&'a RawValue>,
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct EventUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// The events that say something.
const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct MessagesReader {
    block: Open,
    usage: Usage,
    ending: Ending,
}

/// The block that is open.
#[derive(Debug, Default)]
enum Open {
    #[default]
    None,
    Text {
        bytes: usize,
        citations: Citations,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: CallId,
        name: Arc<str>,
        args: String,
        given: String,
    },
    /// A block of a tool that the provider runs itself: its first words, and the input that follows.
    Own {
        begun: String,
        input: String,
    },
}

impl ReplyReader for MessagesReader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let Typed { kind } = serde_json::from_str(&event.data).map_err(error::malformed)?;
        // `ping`, and whatever comes to this wire later.
        if !KNOWN.contains(&&*kind) {
            return Ok(());
        }
        let event: MessageEvent<'_> = serde_json::from_str(&event.data).map_err(error::malformed)?;
        match (&*kind, event.content_block, event.delta) {
            ("message_start", ..) => self.used(event.message.and_then(|message| message.usage), out),
            ("content_block_start", Some(block), _) => self.begin(block, out)?,
            ("content_block_delta", _, Some(delta)) => self.grow(delta, out),
            ("content_block_stop", ..) => self.finish_block(out)?,
            ("message_delta", _, delta) => {
                self.used(event.usage, out);
                if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
                    self.ending.finish = Some(match &*reason {
                        "end_turn" | "tool_use" | "stop_sequence" => Finish::Natural,
                        "pause_turn" => return Err(own::paused()),
                        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
                        "refusal" => Finish::Filtered,
                        other => Finish::Other(error::shown(other)),
                    });
                }
            }
            ("message_stop", ..) => self.ending.is_over = true,
            ("error", ..) => {
                return Err(event.error.unwrap_or_default().into_error());
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        out.extend(self.ending.report()?.map(Delta::Ended));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ending.is_complete()
    }

    fn held(&self) -> usize {
        match &self.block {
            Open::None => 0,
            Open::Text { citations, .. } => citations.bytes(),
            Open::Thinking { text, signature } => text.len() + signature.len(),
            Open::Call { id, name, args, given } => id.as_str().len() + name.len() + args.len() + given.len(),
            Open::Own { begun, input } => begun.len() + input.len(),
        }
    }
}

impl MessagesReader {
    /// Input is named at the start; output is cumulative and replaces what was named before.
    fn used(&mut self, usage: Option<EventUsage>, out: &mut VecDeque<Delta>) {
        let Some(usage) = usage else { return };
        if let Some(input) = usage.input_tokens {
            let read = usage.cache_read_input_tokens.unwrap_or(0);
            let written = usage.cache_creation_input_tokens.unwrap_or(0);
            self.usage.input = input.saturating_add(read).saturating_add(written);
            self.usage.cached_input = read;
            self.usage.cache_write = written;
        }
        if let Some(output) = usage.output_tokens {
            self.usage.output = output;
        }
        self.usage.source = UsageSource::Exact;
        out.push_back(Delta::Usage(self.usage.clone()));
    }

    fn begin(&mut self, raw: &RawValue, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let Typed { kind } = serde_json::from_str(raw.get()).map_err(error::malformed)?;
        if own::is_one(&kind) {
            self.block = Open::Own { begun: raw.get().to_owned(), input: String::new() };
        }
        if !["text", "thinking", "redacted_thinking", "tool_use"].contains(&&*kind) {
            return Ok(());
        }
        let block: StartBlock<'_> = serde_json::from_str(raw.get()).map_err(error::malformed)?;
        let owned = |text: Option<Text<'_>>| text.map(Text::into_owned).unwrap_or_default();
        match &*kind {
            "text" => {
                let text = owned(block.text);
                self.block = Open::Text { bytes: text.len(), citations: Citations::default() };
                if !text.is_empty() {
                    out.push_back(Delta::Text(text));
                }
            }
            "thinking" => {
                self.block = Open::Thinking { text: owned(block.thinking), signature: String::new() };
            }
            "redacted_thinking" => {
                out.push_back(Delta::ReasoningSeal(
                    json!({"type": "redacted_thinking", "data": owned(block.data)}),
                ));
            }
            "tool_use" => {
                let (id, name) = (CallId::from(owned(block.id)), Arc::from(owned(block.name)));
                out.push_back(Delta::CallPreview { name: String::from(&*name) });
                let given = block.input.map_or(String::new(), |input| input.get().to_owned());
                self.block = Open::Call { id, name, args: String::new(), given };
            }
            _ => {}
        }
        Ok(())
    }

    fn grow(&mut self, piece: BlockDelta<'_>, out: &mut VecDeque<Delta>) {
        let BlockDelta { kind, text, thinking, signature, partial_json, citation, .. } = piece;
        match (kind.as_deref().unwrap_or_default(), &mut self.block) {
            ("text_delta", block) => {
                let text = text.map(Text::into_owned).unwrap_or_default();
                if let Open::Text { bytes, .. } = block {
                    *bytes += text.len();
                }
                out.push_back(Delta::Text(text));
            }
            ("thinking_delta", block) => {
                let thinking = thinking.map(Text::into_owned).unwrap_or_default();
                if let Open::Thinking { text, .. } = block {
                    text.push_str(&thinking);
                }
                out.push_back(Delta::Reasoning(thinking));
            }
            ("signature_delta", Open::Thinking { signature: known, .. }) => {
                known.push_str(&signature.unwrap_or_default());
            }
            ("input_json_delta", Open::Call { id, name, args, .. }) => {
                let more = partial_json.unwrap_or_default();
                args.push_str(&more);
                out.extend(reply::arguments(id, name, more));
            }
            ("input_json_delta", Open::Own { input: known, .. }) => {
                known.push_str(&partial_json.unwrap_or_default());
            }
            ("citations_delta", Open::Text { citations, .. }) => {
                citation.iter().for_each(|citation| citations.push(citation.get()));
            }
            _ => {}
        }
    }

    fn finish_block(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match std::mem::take(&mut self.block) {
            Open::None => {}
            Open::Text { citations, .. } if citations.pieces().is_empty() => {}
            Open::Text { bytes, citations } => {
                out.push_back(own::cited(bytes, citations.pieces())?);
            }
            Open::Thinking { text, signature } => {
                // Without its signature the provider refuses it later, so it stays unsealed and is not sent back.
                if !signature.is_empty() {
                    let mut seal = json!({"type": "thinking", "thinking": text});
                    // Moved: as a part of the literal it would be copied (S12.4).
                    seal["signature"] = Value::String(signature);
                    out.push_back(Delta::ReasoningSeal(seal));
                }
            }
            Open::Call { id, name, args, given } => {
                let args = match args.is_empty() {
                    true if given.starts_with('{') => given,
                    true => "{}".to_owned(),
                    false => args,
                };
                out.push_back(Delta::CallReady(ToolCall { id, name: String::from(&*name), args }));
            }
            Open::Own { begun, input } => out.push_back(own::block(&begun, &input)?),
        }
        Ok(())
    }
}
