//! A chat completion's chunks as deltas. A call is ready only when its arguments are certain to be complete: the next
//! one begins, or the provider says why the message ended.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use safepoint::{
    Usage,
    ids::CallId,
    message::{Citation, ProviderPart, ToolCall},
    model::{Delta, Finish, ModelError},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::Chat;
use crate::{
    error,
    few::Few,
    http::ReplyReader,
    provider_blocks,
    reply::{self, Ending, ErrorWords, InputDetails, OutputDetails, Text},
    sse::SseEvent,
    wired::Wire as _,
};

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Chunk<'a> {
    choices: Few<Choice<'a>>,
    usage: Option<ChunkUsage>,
    error: Option<ErrorWords<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Choice<'a> {
    delta: Option<Piece<'a>>,
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Piece<'a> {
    content: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    reasoning_content: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    annotations: Option<&'a RawValue>,
    tool_calls: Option<Few<CallPiece<'a>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct CallPiece<'a> {
    index: Option<u32>,
    id: Option<Text<'a>>,
    function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct FunctionPiece<'a> {
    name: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    open: Option<OpenCall>,
    /// The number of the call that began last.
    last: Option<u32>,
    begun: Begun,
    ending: Ending,
}

/// The call that arrives.
#[derive(Debug)]
struct OpenCall {
    number: u32,
    call: ToolCall,
    /// The name that its fragments are shown with.
    shown: Arc<str>,
    /// The id that they are shown with: the one that it had as the first of them came.
    shown_id: Option<CallId>,
}

impl OpenCall {
    fn new(number: u32) -> Self {
        let call = ToolCall { id: CallId::from(""), name: String::new(), args: String::new() };
        Self { number, call, shown: Arc::default(), shown_id: None }
    }
}

/// The numbers of all calls that have begun: servers count from nought, if they count.
#[derive(Debug, Default)]
struct Begun {
    /// All below this one have.
    below: u64,
    others: HashSet<u32>,
}

impl Begun {
    /// Adds a number, if it is new.
    fn insert(&mut self, number: u32) -> bool {
        let is_next = u64::from(number) == self.below && !self.others.contains(&number);
        self.below += u64::from(is_next);
        is_next || u64::from(number) >= self.below && self.others.insert(number)
    }

    fn len(&self) -> usize {
        usize::try_from(self.below).unwrap_or(usize::MAX).saturating_add(self.others.len())
    }
}

impl ReplyReader for ChatReader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.ending.is_over = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(error::malformed)?;
        if let Some(failed) = chunk.error {
            return Err(failed.into_error());
        }
        if let Some(usage) = chunk.usage {
            out.push_back(Delta::Usage(exact(&usage)));
        }
        // A second choice is never asked for; a server that sends one anyway is not listened to twice.
        if let Some(choice) = chunk.choices.all()?.next() {
            if let Some(piece) = choice.delta {
                self.piece(piece, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.ending.finish = Some(match &*reason {
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
        // Some servers never say [DONE]; a reason to finish is as good.
        let Some(finish) = self.ending.report()? else { return Ok(()) };
        // The last call may be cut in the middle of its arguments.
        if finish != Finish::Length {
            self.ready(out);
        }
        out.push_back(Delta::Ended(finish));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ending.is_complete()
    }

    fn held(&self) -> usize {
        /// About what a number costs that is remembered.
        const NUMBER: usize = 16;
        let held = |call: &ToolCall| call.id.as_str().len() + call.name.len() + call.args.len();
        let call = self.open.as_ref().map_or(0, |open| held(&open.call));
        self.begun.len().saturating_mul(NUMBER).saturating_add(call)
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
            let cited = citations(&annotations)?;
            let raw = json!({"type": "chat_annotations", "annotations": annotations});
            out.push_back(provider_blocks::delta(Chat::NAME, ProviderPart::Citations(cited), raw));
        }
        for call in piece.tool_calls.unwrap_or_default().all()? {
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
        if self.open.as_ref().is_none_or(|open| open.number != index) {
            if !self.begun.insert(index) {
                // It was complete when the next one began.
                return;
            }
            self.ready(out);
            self.open = Some(OpenCall::new(index));
            self.last = Some(index);
        }
        let Some(OpenCall { call, shown, shown_id, .. }) = &mut self.open else { return };
        if let Some(id) = piece.id.filter(|id| !id.is_empty() && call.id.as_str().is_empty()) {
            call.id = CallId::from(&*id);
        }
        if let Some(function) = piece.function {
            let begun = call.name.is_empty();
            if let Some(name) = function.name.filter(|name| !name.is_empty()) {
                call.name.push_str(&name);
                *shown = Arc::from(call.name.as_str());
            }
            let more = function.arguments.unwrap_or_default();
            call.args.push_str(&more);
            if begun && !call.name.is_empty() {
                out.push_back(Delta::CallPreview { name: call.name.clone() });
            }
            if !more.is_empty() {
                let id = shown_id.get_or_insert_with(|| call.id.clone());
                out.extend(reply::arguments(id, shown, more));
            }
        }
    }

    /// The call that was arriving is complete.
    fn ready(&mut self, out: &mut VecDeque<Delta>) {
        out.extend(self.open.take().map(|open| Delta::CallReady(open.call)));
    }
}

/// Where a text is from: an annotation has its fields under the name of its type, or, from some servers, beside it. One of
/// a kind that is not known here is kept, with what of it can be read.
fn citations(annotations: &Value) -> Result<Vec<Citation>, ModelError> {
    let all = annotations.as_array().ok_or_else(|| provider_blocks::malformed(annotations))?;
    let read = |one: &Value| {
        let named = one["type"].as_str().map(|kind| &one[kind]).filter(|fields| !fields.is_null());
        let fields = named.unwrap_or(one);
        let read = provider_blocks::citation(fields, ("url", &["title", "filename"], "quote"))?;
        let lacks_page = one["type"] == "url_citation" && read.url.is_none();
        if lacks_page { Err(provider_blocks::malformed(one)) } else { Ok(read) }
    };
    all.iter().map(read).collect()
}

fn exact(usage: &ChunkUsage) -> Usage {
    reply::exact(
        (usage.prompt_tokens, usage.prompt_tokens_details.as_ref()),
        (usage.completion_tokens, usage.completion_tokens_details.as_ref()),
    )
}
