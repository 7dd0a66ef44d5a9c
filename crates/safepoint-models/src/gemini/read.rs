//! A reply's chunks as deltas: each part is whole in its chunk, and a signature seals the part that it came with.

use std::{borrow::Cow, collections::VecDeque};

use safepoint::{
    Usage,
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError},
    usage::UsageSource,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::own::OwnReader;
use crate::{
    error,
    few::Few,
    http::ReplyReader,
    reply::{self, Ending, ErrorWords, Text},
    sse::SseEvent,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Chunk<'a> {
    candidates: Few<Candidate<'a>>,
    usage_metadata: Option<ChunkUsage>,
    prompt_feedback: Option<Feedback<'a>>,
    response_id: Option<Text<'a>>,
    error: Option<ErrorWords<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Feedback<'a> {
    block_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Candidate<'a> {
    content: Option<Content<'a>>,
    finish_reason: Option<Text<'a>>,
    grounding_metadata: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Content<'a> {
    parts: Few<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    text: Option<Text<'a>>,
    thought: bool,
    function_call: Option<FunctionCall<'a>>,
    thought_signature: Option<Text<'a>>,
    executable_code: Option<&'a RawValue>,
    code_execution_result: Option<&'a RawValue>,
    tool_call: Option<&'a RawValue>,
    tool_response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<Text<'a>>,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    args: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChunkUsage {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct GeminiReader {
    response: String,
    calls: usize,
    own: OwnReader,
    ending: Ending,
    /// Whether usage came with the reason to finish or behind it.
    has_bill: bool,
}

impl ReplyReader for GeminiReader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = serde_json::from_str(event.data.trim()).map_err(error::malformed)?;
        if let Some(failed) = chunk.error {
            return Err(failed.into_error());
        }
        if let Some(response) = chunk.response_id {
            self.response = error::shown(&response);
        }
        // A second candidate is never asked for.
        if let Some(candidate) = chunk.candidates.all()?.next() {
            for part in candidate.content.map(|content| content.parts).unwrap_or_default().all()? {
                self.part(part, out)?;
            }
            if let Some(grounding) = candidate.grounding_metadata {
                out.extend(self.own.grounded(error::value(grounding.get())?)?);
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                self.ending.finish = Some(finish(&reason)?);
            }
        }
        if chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.ending.finish = Some(Finish::Filtered);
        }
        if let Some(usage) = chunk.usage_metadata {
            out.push_back(Delta::Usage(exact(&usage)));
            self.has_bill |= self.ending.finish.is_some();
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        out.extend(self.ending.report()?.map(Delta::Ended));
        Ok(())
    }

    /// This wire names no end; a reason to finish and the bill are all that can come.
    fn is_complete(&self) -> bool {
        self.ending.is_complete() || (self.ending.finish.is_some() && self.has_bill)
    }

    fn held(&self) -> usize {
        0
    }
}

impl GeminiReader {
    fn part(&mut self, raw: &RawValue, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let part: Part<'_> = serde_json::from_str(raw.get()).map_err(error::malformed)?;
        // What the provider ran itself goes back as it came, its signature included.
        let own = [part.executable_code, part.code_execution_result, part.tool_call, part.tool_response];
        if own.iter().any(Option::is_some) {
            out.push_back(self.own.part(error::value(raw.get())?));
            return Ok(());
        }
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            let text = text.into_owned();
            out.push_back(if part.thought { Delta::Reasoning(text) } else { Delta::Text(text) });
        }
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(signature) = signature {
            let of = if part.function_call.is_some() { "call" } else { "text" };
            out.push_back(Delta::ReasoningSeal(
                json!({"type": "thought_signature", "of": of, "signature": &*signature}),
            ));
        }
        if let Some(call) = part.function_call {
            let id =
                call.id.filter(|id| !id.is_empty()).map_or_else(|| self.make_id(), |id| CallId::from(&*id));
            self.calls += 1;
            let args = call.args.map_or("{}", RawValue::get).to_owned();
            out.push_back(Delta::CallPreview { name: call.name.clone().into_owned() });
            out.extend(reply::arguments(&id, &call.name.as_ref().into(), args.clone().into()));
            out.push_back(Delta::CallReady(ToolCall { id, name: call.name.into_owned(), args }));
        }
        Ok(())
    }

    /// Calls of this wire have no ids of their own: the reply's id and the call's place make one that is always the
    /// same for this reply. Without a reply's id the engine gives one.
    fn make_id(&self) -> CallId {
        if self.response.is_empty() {
            return CallId::from("");
        }
        CallId::from(format!("{MADE}{}_{}", self.response, self.calls))
    }
}

const MADE: &str = "gemini_";

/// Whether an id is one that this wire never gave.
pub(super) fn is_made(id: &CallId) -> bool {
    id.as_str().starts_with(MADE)
}

fn finish(reason: &str) -> Result<Finish, ModelError> {
    Ok(match reason {
        "STOP" => Finish::Natural,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => Finish::Filtered,
        // The model wrote a call that its own provider could not read: there is no message to continue.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => {
            return Err(error::in_stream(&format!("it finished with {reason}")));
        }
        other => Finish::Other(error::shown(other)),
    })
}

/// Each chunk names the figures so far; the last are the bill.
fn exact(usage: &ChunkUsage) -> Usage {
    Usage::new(
        usage.prompt_token_count + usage.tool_use_prompt_token_count,
        usage.candidates_token_count + usage.thoughts_token_count,
    )
    .with_cached_input(usage.cached_content_token_count)
    .with_reasoning(usage.thoughts_token_count)
    .with_source(UsageSource::Exact)
}
