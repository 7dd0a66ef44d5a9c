//! What a client asks for when it creates a response. What the server does not do is refused by its name; values that ask for
//! nothing are passed over.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::input::Input;
use crate::problem::{Answered, Problem};

/// A response that is to be created.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The agent; it may be left out where it is known.
    pub(super) model: Option<String>,
    pub(super) input: Input,
    pub(super) behind: Behind,
    pub(super) answer: AnswerForm,
    /// Whether the server keeps it.
    pub(super) is_kept: bool,
}

/// What a response follows. Exhaustive: nothing, a response, or what a conversation has by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    Response(String),
    Conversation(String),
}

/// How the client learns of it. Exhaustive: once it is over, at once, or event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Whole,
    Begun,
    Stream,
}

/// Parameters that ask for nothing that the server would do otherwise.
const IDLE: [&str; 6] = [
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "stream_options",
];

/// A refusal that names the parameter.
pub(super) fn unsupported(name: &str, detail: &str) -> Problem {
    let detail = format!("`{name}` is not supported: {detail}");
    Problem::new(StatusCode::BAD_REQUEST, "unsupported_parameter", detail).with("param", name)
}

pub(super) fn wrong(name: &str, detail: &str) -> Problem {
    Problem::bad_request(format!("`{name}`: {detail}")).with("param", name)
}

impl Wanted {
    /// # Errors
    /// `unsupported_parameter` with its name, and `bad_request`.
    pub(super) fn read(mut body: Map<String, Value>) -> Answered<Self> {
        body.retain(|name, value| !value.is_null() && !IDLE.contains(&name.as_str()));
        let model = body.remove("model").map(|model| text("model", model)).transpose()?;
        let input = Input::read(&body.remove("input").ok_or_else(|| wrong("input", "it is missing"))?)?;
        let previous = body.remove("previous_response_id");
        let previous = previous.map(|id| text("previous_response_id", id)).transpose()?;
        let conversation = body.remove("conversation").map(conversation).transpose()?;
        let behind = match (previous, conversation) {
            (Some(_), Some(_)) => {
                return Err(wrong("conversation", "it does not go with `previous_response_id`"));
            }
            (Some(id), None) => Behind::Response(id),
            (None, Some(id)) => Behind::Conversation(id),
            (None, None) => Behind::Nothing,
        };
        let mut is = |name: &str, default: bool| match body.remove(name) {
            None => Ok(default),
            Some(Value::Bool(given)) => Ok(given),
            Some(_) => Err(wrong(name, "it is true or false")),
        };
        let (is_kept, is_background, streams) =
            (is("store", true)?, is("background", false)?, is("stream", false)?);
        if let Some((name, value)) = body.iter().find(|(name, value)| !is_idle(name, value)) {
            return Err(unsupported(name, &format!("the agent decides that, and not {value}")));
        }
        if is_background && !is_kept {
            return Err(wrong("background", "what runs in the background is kept: `store` is true"));
        }
        if !is_kept && behind != Behind::Nothing {
            return Err(wrong("store", "what continues a conversation is kept: `store` is true"));
        }
        let answer = match (streams, is_background) {
            (true, _) => AnswerForm::Stream,
            (false, true) => AnswerForm::Begun,
            (false, false) => AnswerForm::Whole,
        };
        Ok(Self { model, input, behind, answer, is_kept })
    }
}

/// Whether a parameter asks for what is so anyway.
fn is_idle(name: &str, value: &Value) -> bool {
    match name {
        "tools" | "include" => value.as_array().is_some_and(Vec::is_empty),
        "metadata" | "reasoning" => value.as_object().is_some_and(Map::is_empty),
        "tool_choice" => value == "auto",
        "truncation" => value == "disabled",
        "service_tier" => value == "auto" || value == "default",
        "parallel_tool_calls" => *value == Value::Bool(true),
        "top_logprobs" => *value == 0,
        "text" => value
            .as_object()
            .is_some_and(|text| text.iter().all(|(name, value)| name == "format" && value["type"] == "text")),
        _ => false,
    }
}

pub(super) fn text(name: &str, value: Value) -> Answered<String> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text),
        _ => Err(wrong(name, "it is a text")),
    }
}

/// A conversation, by its id or as an object that has it.
fn conversation(value: Value) -> Answered<String> {
    match value {
        Value::Object(mut fields) => text("conversation", fields.remove("id").unwrap_or_default()),
        other => text("conversation", other),
    }
}
