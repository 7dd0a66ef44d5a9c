//! A chat completion's chunks as deltas. A call is ready only when its arguments are certain to be complete: the next
//! one begins, or the provider says why the message ended.

use std::{
    borrow::Cow,
    collections::{HashSet, VecDeque},
};

use safepoint::{
    Usage,
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError},
    usage::UsageSource,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{error, few::Few, http::ReplyReader, sse::SseEvent};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    choices: Few<Choice<'a>>,
    #[serde(default)]
    usage: Option<ChunkUsage>,
    #[serde(default, borrow)]
    error: Option<ChunkError<'a>>,
}

#[derive(Deserialize)]
struct ChunkError<'a> {
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    delta: Option<Piece<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_calls: Option<Few<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ChunkUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    /// Not the provider's own word: that of servers that pass on another provider's figures.
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    /// The call that arrives, and its number.
    open: Option<(u32, ToolCall)>,
    /// The number of the call that began last.
    last: Option<u32>,
    /// The numbers of all that have begun.
    begun: HashSet<u32>,
    finish: Option<Finish>,
    place: ChatEnd,
}

/// How far the reply is.
#[derive(Debug, Default, PartialEq, Eq)]
enum ChatEnd {
    #[default]
    Inside,
    Done,
    Reported,
}

impl ReplyReader for ChatReader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.place = ChatEnd::Done;
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(error::malformed)?;
        if let Some(failed) = chunk.error {
            return Err(error::in_stream(failed.message.as_deref().unwrap_or("no reason was given")));
        }
        if let Some(usage) = chunk.usage {
            out.push_back(Delta::Usage(exact(&usage)));
        }
        // A second choice is never asked for; a server that sends one anyway is not listened to twice.
        if let Some(choice) = chunk.choices.all()?.into_iter().next() {
            if let Some(piece) = choice.delta {
                self.piece(piece, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(match &*reason {
                    "stop" | "tool_calls" | "function_call" => Finish::Natural,
                    "length" => Finish::Length,
                    "content_filter" => Finish::Filtered,
                    other => Finish::Other(error::shown(other)),
                });
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if self.place == ChatEnd::Reported {
            return Ok(());
        }
        // Some servers never say [DONE]; a reason to finish is as good. Without either the stream broke.
        let finish = match (self.finish.take(), &self.place) {
            (Some(finish), _) => finish,
            (None, ChatEnd::Done) => Finish::Natural,
            (None, ChatEnd::Inside | ChatEnd::Reported) => return Err(error::ended_early()),
        };
        self.place = ChatEnd::Reported;
        // The last call may be cut in the middle of its arguments.
        if finish != Finish::Length {
            self.ready(out);
        }
        out.push_back(Delta::Ended(finish));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.place != ChatEnd::Inside
    }

    fn held(&self) -> usize {
        /// About what a number costs that is remembered.
        const NUMBER: usize = 16;
        let open = self.open.as_ref();
        let call = open.map_or(0, |(_, call)| call.id.as_str().len() + call.name.len() + call.args.len());
        call + self.begun.len() * NUMBER
    }
}

impl ChatReader {
    fn piece(&mut self, piece: Piece<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(text) = piece.reasoning_content.or(piece.reasoning).filter(|text| !text.is_empty()) {
            out.push_back(Delta::Reasoning(text.into_owned()));
        }
        for text in [piece.content, piece.refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            out.push_back(Delta::Text(text.into_owned()));
        }
        // Where a text is from. The provider takes none of it back.
        if let Some(annotations) = piece.annotations.filter(|annotations| annotations.get() != "[]") {
            let annotations = error::value(annotations.get())?;
            out.push_back(Delta::ReasoningSeal(
                json!({"type": "chat_annotations", "annotations": annotations}),
            ));
        }
        for call in piece.tool_calls.map_or_else(|| Ok(Vec::new()), Few::all)? {
            self.call_piece(call, out);
        }
        Ok(())
    }

    /// Pieces belong together by index; servers that give none begin a new call with each id.
    fn call_piece(&mut self, piece: CallPiece<'_>, out: &mut VecDeque<Delta>) {
        let index = match (piece.index, &piece.id, self.last) {
            (Some(index), _, _) => index,
            (None, Some(id), Some(last)) if !id.is_empty() => last.wrapping_add(1),
            (None, _, last) => last.unwrap_or(0),
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != index) {
            if !self.begun.insert(index) {
                // It was complete when the next one began.
                return;
            }
            self.ready(out);
            let call = ToolCall { id: CallId::from(""), name: String::new(), args: String::new() };
            self.open = Some((index, call));
            self.last = Some(index);
        }
        let Some((_, call)) = &mut self.open else { return };
        if let Some(id) = piece.id.filter(|id| !id.is_empty() && call.id.as_str().is_empty()) {
            call.id = CallId::from(&*id);
        }
        if let Some(function) = piece.function {
            let begun = call.name.is_empty();
            call.name.push_str(function.name.as_deref().unwrap_or_default());
            call.args.push_str(function.arguments.as_deref().unwrap_or_default());
            if begun && !call.name.is_empty() {
                out.push_back(Delta::CallPreview { name: call.name.clone() });
            }
        }
    }

    /// The call that was arriving is complete.
    fn ready(&mut self, out: &mut VecDeque<Delta>) {
        out.extend(self.open.take().map(|(_, call)| Delta::CallReady(call)));
    }
}

fn exact(usage: &ChunkUsage) -> Usage {
    let details = usage.prompt_tokens_details.as_ref();
    let cached = details.and_then(|details| details.cached_tokens);
    let cache_write = details.and_then(|details| details.cache_write_tokens);
    let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Usage {
        input: usage.prompt_tokens,
        cached_input: cached.unwrap_or(0),
        cache_write: cache_write.unwrap_or(0),
        output: usage.completion_tokens,
        reasoning: reasoning.unwrap_or(0),
        source: UsageSource::Exact,
        ..Usage::default()
    }
}
