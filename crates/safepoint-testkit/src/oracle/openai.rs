//! The rules of OpenAI chat completions.

use serde_json::Value;

use super::{HistoryRule, Violation};

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
    let no_messages = |says: &str| Violation::new(0, HistoryRule::SomeMessages, says);
    let messages =
        body["messages"].as_array().ok_or_else(|| no_messages("Missing required parameter: 'messages'."))?;
    if messages.is_empty() {
        return Err(no_messages(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ));
    }
    let mut open = OpenCalls::default();
    let mut begun = false;
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            open.answer(index, message)?;
            continue;
        }
        open.must_be_empty()?;
        match role {
            "system" | "developer" if begun => {
                return Err(Violation::new(
                    index,
                    HistoryRule::SystemFirst,
                    "System message must be at the beginning.",
                )
                .at("role"));
            }
            "system" | "developer" | "user" => says_something(index, message)?,
            "assistant" => open = OpenCalls { at: index, ids: calls(index, message)? },
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
            return Err(Violation::new(
                index,
                HistoryRule::ResultWithoutCall,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            )
            .at("role"));
        };
        self.ids.remove(place);
        says_something(index, message)?;
        let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        if parts.iter().all(|part| part["type"] == "text") {
            return Ok(());
        }
        let says = format!(
            "Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL."
        );
        Err(Violation::new(index, HistoryRule::ResultContent, says).at("content"))
    }

    fn must_be_empty(&self) -> Result<(), Violation> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let says = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            self.ids.join(", ")
        );
        Err(Violation::new(self.at, HistoryRule::CallUnanswered, says).at("role"))
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

/// The ids of an assistant message's calls.
fn calls(index: usize, message: &Value) -> Result<Vec<String>, Violation> {
    let asked = match &message["tool_calls"] {
        Value::Null => &[][..],
        Value::Array(calls) if !calls.is_empty() => calls,
        _ => {
            let says = format!(
                "Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
            );
            return Err(Violation::new(index, HistoryRule::WellFormedCall, says).at("tool_calls"));
        }
    };
    let mut ids: Vec<String> = Vec::new();
    for (place, call) in asked.iter().enumerate() {
        let id = call_id(index, place, call)?;
        if ids.contains(&id) {
            let says =
                format!("Duplicate value for 'tool_call_id' of '{id}' in message with role 'assistant'.");
            return Err(Violation::new(index, HistoryRule::OwnId, says).at("tool_calls"));
        }
        ids.push(id);
    }
    let content = &message["content"];
    let says = match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => message["refusal"].is_string(),
    };
    if ids.is_empty() && !says {
        return Err(no_content(index, content));
    }
    Ok(ids)
}

fn call_id(index: usize, place: usize, call: &Value) -> Result<String, Violation> {
    let part = |field: &str| format!("messages[{index}].tool_calls[{place}].{field}");
    let missing = |rule, field: &str| {
        Violation::new(index, rule, format!("Missing required parameter: '{}'.", part(field)))
            .at("tool_calls")
    };
    let function = &call["function"];
    if call["type"] != "function" {
        return Err(missing(HistoryRule::WellFormedCall, "type"));
    }
    if function["name"].as_str().is_none_or(str::is_empty) {
        return Err(missing(HistoryRule::WellFormedCall, "function.name"));
    }
    if !function["arguments"].is_string() {
        let says = format!("Invalid type for '{}': expected a string.", part("function.arguments"));
        return Err(Violation::new(index, HistoryRule::WellFormedCall, says).at("tool_calls"));
    }
    let id = call["id"].as_str().filter(|id| !id.is_empty());
    id.map(ToOwned::to_owned).ok_or_else(|| missing(HistoryRule::OwnId, "id"))
}

fn unknown_role(index: usize, role: &str) -> Violation {
    let says = format!(
        "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
    );
    Violation::new(index, HistoryRule::KnownRole, says).at("role")
}
