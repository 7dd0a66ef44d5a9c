//! A message's events as deltas: blocks one after the other, each sealed or complete at its stop.

use std::{borrow::Cow, collections::VecDeque};

use safepoint::{
    ids::CallId,
    message::ToolCall,
    model::{Delta, Finish, ModelError},
    usage::{Usage, UsageSource},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{error, http::Wire, sse::SseEvent};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        #[serde(borrow)]
        content_block: StartBlock<'a>,
    },
    ContentBlockDelta {
        #[serde(borrow)]
        delta: BlockDelta<'a>,
    },
    ContentBlockStop,
    MessageDelta {
        #[serde(borrow)]
        delta: MessageEnd<'a>,
        #[serde(default)]
        usage: Option<EventUsage>,
    },
    MessageStop,
    Error {
        #[serde(borrow)]
        error: ErrorEvent<'a>,
    },
    /// `ping`, and whatever comes to this wire later.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<EventUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StartBlock<'a> {
    Text {
        #[serde(default, borrow)]
        text: Cow<'a, str>,
    },
    Thinking {
        #[serde(default, borrow)]
        thinking: Cow<'a, str>,
    },
    RedactedThinking {
        #[serde(borrow)]
        data: Cow<'a, str>,
    },
    ToolUse {
        #[serde(default, borrow)]
        id: Cow<'a, str>,
        #[serde(default, borrow)]
        name: Cow<'a, str>,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta<'a> {
    TextDelta {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    ThinkingDelta {
        #[serde(borrow)]
        thinking: Cow<'a, str>,
    },
    SignatureDelta {
        #[serde(borrow)]
        signature: Cow<'a, str>,
    },
    InputJsonDelta {
        #[serde(borrow)]
        partial_json: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageEnd<'a> {
    #[serde(default, borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ErrorEvent<'a> {
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct EventUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    block: Open,
    usage: Usage,
    finish: Option<Finish>,
    place: Place,
}

/// The block that is open.
#[derive(Debug, Default)]
enum Open {
    #[default]
    None,
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        args: String,
        given: Value,
    },
}

/// How far the reply is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Inside,
    Stopped,
    Told,
}

impl Wire for Reader {
    fn event(&mut self, event: &SseEvent, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        let event: Event<'_> = serde_json::from_str(&event.data).map_err(error::malformed)?;
        match event {
            Event::MessageStart { message } => self.used(message.usage, out),
            Event::ContentBlockStart { content_block } => self.begin(content_block, out),
            Event::ContentBlockDelta { delta } => self.grow(delta, out),
            Event::ContentBlockStop => self.finish_block(out),
            Event::MessageDelta { delta, usage } => {
                self.used(usage, out);
                if let Some(reason) = delta.stop_reason {
                    self.finish = Some(match &*reason {
                        "end_turn" | "tool_use" | "stop_sequence" | "pause_turn" => Finish::Natural,
                        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
                        "refusal" => Finish::Filtered,
                        other => Finish::Other(other.to_owned()),
                    });
                }
            }
            Event::MessageStop => self.place = Place::Stopped,
            Event::Error { error } => {
                return Err(error::in_stream(error.message.as_deref().unwrap_or("no reason was given")));
            }
            Event::Other => {}
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelError> {
        match (&self.place, self.finish.take()) {
            (Place::Told, _) => Ok(()),
            (Place::Stopped, finish) => {
                self.place = Place::Told;
                out.push_back(Delta::Ended(finish.unwrap_or(Finish::Natural)));
                Ok(())
            }
            (Place::Inside, Some(finish)) => {
                self.place = Place::Told;
                out.push_back(Delta::Ended(finish));
                Ok(())
            }
            (Place::Inside, None) => Err(error::ended_early()),
        }
    }

    fn is_complete(&self) -> bool {
        self.place != Place::Inside
    }
}

impl Reader {
    /// Input is named at the start; output is cumulative and replaces what was named before.
    fn used(&mut self, usage: Option<EventUsage>, out: &mut VecDeque<Delta>) {
        let Some(usage) = usage else { return };
        if let Some(input) = usage.input_tokens {
            let read = usage.cache_read_input_tokens.unwrap_or(0);
            self.usage.input = input + read + usage.cache_creation_input_tokens.unwrap_or(0);
            self.usage.cached_input = read;
        }
        if let Some(output) = usage.output_tokens {
            self.usage.output = output;
        }
        self.usage.source = UsageSource::Exact;
        out.push_back(Delta::Usage(self.usage.clone()));
    }

    fn begin(&mut self, block: StartBlock<'_>, out: &mut VecDeque<Delta>) {
        match block {
            StartBlock::Text { text } => {
                if !text.is_empty() {
                    out.push_back(Delta::Text(text.into_owned()));
                }
            }
            StartBlock::Thinking { thinking } => {
                self.block = Open::Thinking { text: thinking.into_owned(), signature: String::new() };
            }
            StartBlock::RedactedThinking { data } => {
                out.push_back(Delta::Sealed(json!({"type": "redacted_thinking", "data": data})));
            }
            StartBlock::ToolUse { id, name, input } => {
                out.push_back(Delta::CallBegun { name: name.clone().into_owned() });
                let (id, name) = (id.into_owned(), name.into_owned());
                self.block = Open::Call { id, name, args: String::new(), given: input };
            }
            StartBlock::Other => {}
        }
    }

    fn grow(&mut self, delta: BlockDelta<'_>, out: &mut VecDeque<Delta>) {
        match (delta, &mut self.block) {
            (BlockDelta::TextDelta { text }, _) => out.push_back(Delta::Text(text.into_owned())),
            (BlockDelta::ThinkingDelta { thinking }, block) => {
                if let Open::Thinking { text, .. } = block {
                    text.push_str(&thinking);
                }
                out.push_back(Delta::Reasoning(thinking.into_owned()));
            }
            (BlockDelta::SignatureDelta { signature: more }, Open::Thinking { signature, .. }) => {
                signature.push_str(&more);
            }
            (BlockDelta::InputJsonDelta { partial_json }, Open::Call { args, .. }) => {
                args.push_str(&partial_json)
            }
            (
                BlockDelta::SignatureDelta { .. } | BlockDelta::InputJsonDelta { .. } | BlockDelta::Other,
                _,
            ) => {}
        }
    }

    fn finish_block(&mut self, out: &mut VecDeque<Delta>) {
        match std::mem::take(&mut self.block) {
            Open::None => {}
            Open::Thinking { text, signature } => {
                // Without its signature the provider refuses it later, so it stays unsealed and is not sent back.
                if !signature.is_empty() {
                    let seal = json!({"type": "thinking", "thinking": text, "signature": signature});
                    out.push_back(Delta::Sealed(seal));
                }
            }
            Open::Call { id, name, args, given } => {
                let args = match (args.is_empty(), given) {
                    (true, Value::Object(given)) => Value::Object(given).to_string(),
                    (true, _) => "{}".to_owned(),
                    (false, _) => args,
                };
                out.push_back(Delta::CallReady(ToolCall { id: CallId::from(id), name, args }));
            }
        }
    }
}
