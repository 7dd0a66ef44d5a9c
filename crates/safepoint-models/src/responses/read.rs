//! A response's events as deltas: items one after the other, each whole at its `done`.
//!
//! **Invariants**: an event is taken once, also when a broken stream is read on (its number says which it is).

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use safepoint::{
    Usage,
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{handle::Handle, own};
use crate::{
    error,
    few::Few,
    http::ReplyReader,
    reply::{self, Ending, ErrorWords, InputDetails, OutputDetails, Text, Typed},
    sse::SseEvent,
};

#[derive(Deserialize)]
struct ResponseEvent<'a> {
    sequence_number: Option<u64>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    delta: Option<Text<'a>>,
    #[serde(default)]
    summary_index: u64,
    output_index: Option<u64>,
    item: Option<&'a RawValue>,
    response: Option<Response<'a>>,
    error: Option<ErrorWords<'a>>,
    message: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Item<'a> {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    summary: Option<&'a RawValue>,
    content: Option<Few<Content<'a>>>,
    encrypted_content: Option<String>,
}

/// A part of what a message says.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Content<'a> {
    text: Option<Text<'a>>,
    annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Response<'a> {
    id: Option<String>,
    status: Option<String>,
    usage: Option<EventUsage>,
    error: Option<ErrorWords<'a>>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct ResponsesReader {
    handle: Handle,
    seen: Option<u64>,
    /// The calls that arrive: more than one may at a time.
    calls: Vec<OpenCall>,
    ending: Ending,
}

/// A call that arrives.
#[derive(Debug)]
struct OpenCall {
    /// Which item of the response it is; servers that do not say have one at a time.
    index: Option<u64>,
    /// Its id and its tool. One that was not announced is shown when it is whole.
    announced: Option<(CallId, Arc<str>)>,
    args: String,
}

impl ReplyReader for ResponsesReader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(());
        }
        let event: ResponseEvent<'_> = serde_json::from_str(data).map_err(error::malformed)?;
        if let Some(number) = event.sequence_number {
            if self.seen.is_some_and(|seen| number <= seen) {
                return Ok(());
            }
            self.seen = Some(number);
        }
        self.take(event, out)
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        if let Some(finish) = self.ending.report()? {
            self.handle.is_over();
            out.push_back(Delta::Ended(finish));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.ending.is_complete()
    }

    fn held(&self) -> usize {
        let named = |(id, name): &(CallId, Arc<str>)| id.as_str().len() + name.len();
        let size = |call: &OpenCall| {
            size_of::<OpenCall>() + call.announced.as_ref().map_or(0, named) + call.args.len()
        };
        self.calls.iter().map(size).sum()
    }

    fn resume(&self) -> Option<String> {
        let id = self.handle.kept()?;
        let after = self.seen.map_or_else(String::new, |seen| format!("&starting_after={seen}"));
        Some(format!("/{id}?stream=true{after}"))
    }
}

impl ResponsesReader {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, ..Self::default() }
    }

    fn take(&mut self, event: ResponseEvent<'_>, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let delta = event.delta.filter(|delta| !delta.is_empty());
        match (&*event.kind, delta, event.item, event.response) {
            ("response.output_text.delta" | "response.refusal.delta", Some(text), _, _) => {
                out.push_back(Delta::Text(text.into_owned()));
            }
            ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", Some(text), _, _) => {
                out.push_back(Delta::Reasoning(text.into_owned()));
            }
            // Parts of a summary are paragraphs.
            ("response.reasoning_summary_part.added", ..) if event.summary_index > 0 => {
                out.push_back(Delta::Reasoning("\n\n".to_owned()));
            }
            ("response.function_call_arguments.delta", Some(more), _, _) => {
                let call = self.open(event.output_index);
                call.args.push_str(&more);
                out.extend(call.announced.as_ref().and_then(|(id, name)| reply::arguments(id, name, more)));
            }
            ("response.output_item.added", _, Some(item), _) => self.begun(item, event.output_index, out)?,
            ("response.output_item.done", _, Some(item), _) => self.done(item, event.output_index, out)?,
            ("response.created" | "response.queued" | "response.in_progress", _, _, Some(response)) => {
                if let Some(id) = response.id {
                    self.handle.is_named(id);
                }
            }
            ("response.completed" | "response.incomplete", _, _, Some(response))
                if !response.is_cancelled() =>
            {
                self.over(response, out);
            }
            // A response that was cancelled may come as an incomplete one, and is no end of an answer.
            ("response.completed" | "response.incomplete", _, _, response @ Some(_))
            | ("response.failed" | "response.cancelled", _, _, response) => {
                self.handle.is_over();
                return Err(error::in_stream(&failure(response)));
            }
            ("error", ..) => {
                self.handle.is_over();
                let message = event.error.and_then(|error| error.message).or(event.message);
                return Err(ErrorWords { message, ..ErrorWords::default() }.into_error());
            }
            _ => {}
        }
        Ok(())
    }

    fn begun(
        &mut self,
        raw: &RawValue,
        index: Option<u64>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        drop(self.collected(index));
        if let Some(Item { name: Some(name), call_id, .. }) = Item::read(raw, &["function_call"])? {
            let id = CallId::from(call_id.unwrap_or_default());
            self.open(index).announced = Some((id, name.as_str().into()));
            out.push_back(Delta::CallPreview { name });
        }
        Ok(())
    }

    /// The call that is this item.
    fn open(&mut self, index: Option<u64>) -> &mut OpenCall {
        let place = self.calls.iter().position(|call| call.index == index).unwrap_or_else(|| {
            self.calls.push(OpenCall { index, announced: None, args: String::new() });
            self.calls.len() - 1
        });
        &mut self.calls[place]
    }

    /// What has arrived of this item's arguments: it is over.
    fn collected(&mut self, index: Option<u64>) -> String {
        let place = self.calls.iter().position(|call| call.index == index);
        place.map(|place| self.calls.remove(place).args).unwrap_or_default()
    }

    fn done(
        &mut self,
        raw: &RawValue,
        index: Option<u64>,
        out: &mut VecDeque<Delta>,
    ) -> Result<(), ModelError> {
        let collected = self.collected(index);
        let Some(item) = Item::read(raw, &["function_call", "reasoning", "message"])? else {
            // A tool of the provider's own, such as a search: it goes back as it came.
            let own = error::value(raw.get())?;
            if own["type"].as_str().is_some_and(own::is_one) {
                out.extend(own::item(own));
            }
            return Ok(());
        };
        match &*item.kind {
            "function_call" => {
                let args = item.arguments.filter(|args| !args.is_empty()).unwrap_or(collected);
                let (id, name) = (item.call_id.unwrap_or_default(), item.name.unwrap_or_default());
                out.push_back(Delta::CallReady(ToolCall { id: CallId::from(id), name, args }));
            }
            "reasoning" => {
                // Without the encrypted content the provider would look for the item, and has not stored it.
                if let Some(encrypted) = item.encrypted_content.filter(|encrypted| !encrypted.is_empty()) {
                    let summary =
                        item.summary.map_or_else(|| Ok(json!([])), |summary| error::value(summary.get()));
                    out.push_back(Delta::ReasoningSeal(
                        json!({"type": "reasoning", "id": item.id, "summary": summary?,
                        "encrypted_content": encrypted}),
                    ));
                }
            }
            _ => {
                // What stands before the last part is said, but not what it cites: the texts are one here.
                if let Some(content) = item.content.unwrap_or_default().all()?.next_back() {
                    let bytes = content.text.as_ref().map_or(0, |text| text.len());
                    let annotations = content.annotations.map(|all| error::value(all.get())).transpose()?;
                    if let Some(annotations) = annotations {
                        out.extend(own::annotated(bytes, annotations)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn over(&mut self, response: Response<'_>, out: &mut VecDeque<Delta>) {
        if let Some(usage) = response.usage {
            out.push_back(Delta::Usage(exact(&usage)));
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.ending.finish = Some(match (response.status.as_deref(), reason.as_deref()) {
            (_, Some("max_output_tokens" | "max_tokens")) => Finish::Length,
            (_, Some("content_filter")) => Finish::Filtered,
            (_, Some(other)) => Finish::Other(error::shown(other)),
            (Some("incomplete"), None) => Finish::Other("incomplete".to_owned()),
            (_, None) => Finish::Natural,
        });
        self.ending.is_over = true;
    }
}

impl<'a> Item<'a> {
    /// Reads an item that is one of these kinds; none if it is another.
    fn read(raw: &'a RawValue, kinds: &[&str]) -> Result<Option<Self>, ModelError> {
        let Typed { kind } = serde_json::from_str(raw.get()).map_err(error::malformed)?;
        if !kinds.contains(&&*kind) {
            return Ok(None);
        }
        serde_json::from_str(raw.get()).map(Some).map_err(error::malformed)
    }
}

impl Response<'_> {
    fn is_cancelled(&self) -> bool {
        self.status.as_deref() == Some("cancelled")
    }
}

fn failure(response: Option<Response<'_>>) -> String {
    let (error, status) = response.map_or((None, None), |response| (response.error, response.status));
    error.and_then(|error| error.message).map(Text::into_owned).unwrap_or_else(|| match status.as_deref() {
        Some("cancelled") => "the response was cancelled at the provider".to_owned(),
        _ => "no reason was given".to_owned(),
    })
}

fn exact(usage: &EventUsage) -> Usage {
    reply::exact(
        (usage.input_tokens, usage.input_tokens_details.as_ref()),
        (usage.output_tokens, usage.output_tokens_details.as_ref()),
    )
}
