//! The rules of OpenAI chat completions.

use serde_json::Value;

use super::{HistoryRule, Violation, answer_schema, list, media, must, text, tools};

/// Calls of the last assistant message that no tool message has answered yet.
#[derive(Default)]
struct OpenCalls {
    at: usize,
    ids: Vec<String>,
}

/// Judges the history of a chat-completions request.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    tools::openai(body)?;
    answer_schema::format(&body["response_format"], "json_schema")?;
    let messages = list(&body["messages"]);
    let says = "Missing required parameter: 'messages'.";
    must(body["messages"].is_array(), 0, HistoryRule::SomeMessages, || says)?;
    let says = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    must(!messages.is_empty(), 0, HistoryRule::SomeMessages, || says)?;
    let mut open = OpenCalls::default();
    let mut begun = false;
    for (index, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        if role == "tool" {
            open.answer(index, message)?;
            continue;
        }
        open.must_be_empty()?;
        match role {
            "system" | "developer" if begun => {
                let says = "System message must be at the beginning.";
                return Err(Violation::new(index, HistoryRule::SystemFirst, says).at("role"));
            }
            "user" => {
                says_something(index, message)?;
                media::openai(index, &message["content"])?;
            }
            "system" | "developer" => says_something(index, message)?,
            "assistant" => open = OpenCalls { at: index, ids: asks(index, message)? },
            other => return Err(unknown_role(index, other)),
        }
        begun |= matches!(role, "user" | "assistant");
    }
    open.must_be_empty()
}

impl OpenCalls {
    fn answer(&mut self, index: usize, message: &Value) -> Result<(), Violation> {
        let Some(id) = message["tool_call_id"].as_str() else {
            let says = format!("Missing required parameter: 'messages[{index}].tool_call_id'.");
            return Err(Violation::new(index, HistoryRule::ResultWithoutCall, says).at("tool_call_id"));
        };
        let Some(place) = self.ids.iter().position(|waits| waits == id) else {
            let says = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
            return Err(Violation::new(index, HistoryRule::ResultWithoutCall, says).at("role"));
        };
        self.ids.remove(place);
        says_something(index, message)?;
        let is_text = list(&message["content"]).iter().all(|part| part["type"] == "text");
        let judged = must(is_text, index, HistoryRule::ResultContent, || {
            format!(
                "Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."
            )
        });
        judged.map_err(|broken| broken.at("content"))
    }

    fn must_be_empty(&self) -> Result<(), Violation> {
        let judged = must(self.ids.is_empty(), self.at, HistoryRule::CallUnanswered, || {
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                self.ids.join(", ")
            )
        });
        judged.map_err(|broken| broken.at("role"))
    }
}

/// A string (of a user or tool it may be empty), or some parts.
fn says_something(index: usize, message: &Value) -> Result<(), Violation> {
    match &message["content"] {
        Value::String(_) => Ok(()),
        Value::Array(parts) if !parts.is_empty() => Ok(()),
        other => Err(no_content(index, other)),
    }
}

fn no_content(index: usize, found: &Value) -> Violation {
    let found = match found {
        Value::Null => "null",
        Value::String(_) => "an empty string",
        Value::Array(_) => "an empty array",
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => "another type",
    };
    let says = format!("Invalid value for 'content': expected a string, got {found}.");
    Violation::new(index, HistoryRule::SomeContent, says).at("content")
}

/// The ids of an assistant message's calls; where it has none, it says something.
fn asks(index: usize, message: &Value) -> Result<Vec<String>, Violation> {
    let ids = call_ids(index, &message["tool_calls"]).map_err(|broken| broken.at("tool_calls"))?;
    let content = &message["content"];
    let says = match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => message["refusal"].is_string(),
    };
    if ids.is_empty() && !says { Err(no_content(index, content)) } else { Ok(ids) }
}

fn call_ids(index: usize, calls: &Value) -> Result<Vec<String>, Violation> {
    must(calls.is_null() || !list(calls).is_empty(), index, HistoryRule::WellFormedCall, || {
        format!(
            "Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
    })?;
    let mut ids: Vec<String> = Vec::new();
    for (place, call) in list(calls).iter().enumerate() {
        let id = call_id(index, place, call)?;
        must(!ids.contains(&id), index, HistoryRule::OwnId, || {
            format!("Duplicate value for 'tool_call_id' of '{id}' in message with role 'assistant'.")
        })?;
        ids.push(id);
    }
    Ok(ids)
}

fn call_id(index: usize, place: usize, call: &Value) -> Result<String, Violation> {
    let part = |field: &str| format!("messages[{index}].tool_calls[{place}].{field}");
    let missing = |field: &str| format!("Missing required parameter: '{}'.", part(field));
    let (function, id) = (&call["function"], text(&call["id"]));
    let is_named = !text(&function["name"]).is_empty();
    must(call["type"] == "function", index, HistoryRule::WellFormedCall, || missing("type"))?;
    must(is_named, index, HistoryRule::WellFormedCall, || missing("function.name"))?;
    must(function["arguments"].is_string(), index, HistoryRule::WellFormedCall, || {
        format!("Invalid type for '{}': expected a string.", part("function.arguments"))
    })?;
    must(!id.is_empty(), index, HistoryRule::OwnId, || missing("id"))?;
    Ok(id.to_owned())
}

fn unknown_role(index: usize, role: &str) -> Violation {
    let says = format!(
        "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
    );
    Violation::new(index, HistoryRule::KnownRole, says).at("role")
}
