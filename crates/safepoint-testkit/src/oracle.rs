//! Is this request's history valid for its provider? A second implementation on purpose: it shares nothing with the
//! encoders that it judges (S5.1).

use std::collections::HashSet;

use serde_json::{Value, json};

/// What a provider would refuse, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("messages[{index}]: {message}")]
pub struct Violation {
    /// The message that it found wanting.
    pub index: usize,
    /// The provider's words.
    pub message: String,
}

impl Violation {
    fn new(index: usize, message: impl Into<String>) -> Self {
        Self { index, message: message.into() }
    }

    /// The body of OpenAI's 400.
    #[must_use]
    pub fn openai_body(&self) -> Value {
        json!({"error": {"message": self.message, "type": "invalid_request_error", "param": "messages", "code": null}})
    }

    /// The body of Anthropic's 400.
    #[must_use]
    pub fn anthropic_body(&self) -> Value {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": self.message}})
    }
}

/// Judges a chat-completions body.
///
/// # Errors
/// The first violation.
pub fn openai(body: &Value) -> Result<(), Violation> {
    let messages =
        body["messages"].as_array().ok_or_else(|| Violation::new(0, "'messages' is a required property"))?;
    if messages.is_empty() {
        return Err(Violation::new(0, "[] is too short - 'messages'"));
    }
    let mut waiting: Vec<String> = Vec::new();
    let mut asked_at = 0;
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(place) = waiting.iter().position(|waits| waits == id) else {
                return Err(Violation::new(
                    index,
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                ));
            };
            waiting.remove(place);
            if !message["content"].is_string() && !message["content"].is_array() {
                return Err(Violation::new(
                    index,
                    "Missing required parameter: 'content' of a tool message.",
                ));
            }
            continue;
        }
        unanswered(&waiting, asked_at)?;
        match role {
            "assistant" => {
                waiting = openai_calls(index, message)?;
                asked_at = index;
            }
            "system" | "developer" | "user" => {
                if message["content"].is_null() {
                    return Err(Violation::new(
                        index,
                        "Invalid value for 'content': expected a string, got null.",
                    ));
                }
            }
            other => return Err(Violation::new(index, format!("Invalid value: '{other}' for 'role'."))),
        }
    }
    unanswered(&waiting, asked_at)
}

fn unanswered(waiting: &[String], index: usize) -> Result<(), Violation> {
    if waiting.is_empty() {
        return Ok(());
    }
    Err(Violation::new(
        index,
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            waiting.join(", ")
        ),
    ))
}

fn openai_calls(index: usize, message: &Value) -> Result<Vec<String>, Violation> {
    let mut ids = Vec::new();
    let calls = message["tool_calls"].as_array();
    if calls.is_some_and(Vec::is_empty) {
        return Err(Violation::new(index, "[] is too short - 'tool_calls'"));
    }
    for call in calls.into_iter().flatten() {
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Violation::new(index, "Missing required parameter: 'tool_calls[].id'."))?;
        if ids.iter().any(|known| known == id) {
            return Err(Violation::new(index, format!("Duplicate value for 'tool_call_id' of '{id}'")));
        }
        if call["function"]["name"].as_str().is_none_or(str::is_empty) {
            return Err(Violation::new(index, "Missing required parameter: 'tool_calls[].function.name'."));
        }
        if !call["function"]["arguments"].is_string() {
            return Err(Violation::new(
                index,
                "Invalid type for 'tool_calls[].function.arguments': expected a string.",
            ));
        }
        ids.push(id.to_owned());
    }
    let says = message["content"].as_str().is_some_and(|text| !text.is_empty());
    if ids.is_empty() && !says {
        return Err(Violation::new(index, "Invalid value for 'content': expected a string, got null."));
    }
    Ok(ids)
}

/// Judges a messages body.
///
/// # Errors
/// The first violation.
pub fn anthropic(body: &Value) -> Result<(), Violation> {
    if !body["max_tokens"].is_u64() {
        return Err(Violation::new(0, "max_tokens: Field required"));
    }
    let messages =
        body["messages"].as_array().ok_or_else(|| Violation::new(0, "messages: Field required"))?;
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err(Violation::new(0, "messages: first message must use the \"user\" role"));
    }
    let mut seen = HashSet::new();
    let mut waiting: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "user" | "assistant") {
            return Err(Violation::new(index, format!("messages.{index}.role: Unexpected role \"{role}\"")));
        }
        if index > 0 && messages[index - 1]["role"] == message["role"] {
            return Err(Violation::new(
                index,
                format!(
                    "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row"
                ),
            ));
        }
        let blocks = blocks(message);
        if blocks.is_empty() {
            return Err(Violation::new(
                index,
                format!("messages.{index}: all messages must have non-empty content"),
            ));
        }
        texts(index, &blocks)?;
        if role == "user" {
            results(index, &blocks, &mut waiting)?;
        } else {
            waiting = uses(index, &blocks, &mut seen)?;
            let last = index + 1 == messages.len();
            if last && blocks.last().is_some_and(ends_blank) {
                return Err(Violation::new(
                    index,
                    "messages: final assistant content cannot end with trailing whitespace",
                ));
            }
        }
    }
    left_open(messages.len() - 1, &waiting)
}

fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn ends_blank(block: &Value) -> bool {
    block["text"].as_str().is_some_and(|text| text.ends_with(char::is_whitespace))
}

fn texts(index: usize, blocks: &[Value]) -> Result<(), Violation> {
    for block in blocks.iter().filter(|block| block["type"] == "text") {
        let text = block["text"].as_str().unwrap_or_default();
        if text.is_empty() {
            return Err(Violation::new(index, "messages: text content blocks must be non-empty"));
        }
        if text.trim().is_empty() {
            return Err(Violation::new(
                index,
                "messages: text content blocks must contain non-whitespace text",
            ));
        }
    }
    Ok(())
}

fn results(index: usize, blocks: &[Value], waiting: &mut Vec<String>) -> Result<(), Violation> {
    let mut text_before = false;
    for block in blocks {
        if block["type"] != "tool_result" {
            text_before = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some(place) = waiting.iter().position(|waits| waits == id) else {
            return Err(Violation::new(
                index,
                format!(
                    "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                ),
            ));
        };
        waiting.remove(place);
        if text_before {
            return Err(Violation::new(
                index,
                format!("messages.{index}: `tool_result` blocks must come before text"),
            ));
        }
    }
    left_open(index - usize::from(index > 0), waiting)
}

fn left_open(index: usize, waiting: &[String]) -> Result<(), Violation> {
    if waiting.is_empty() {
        return Ok(());
    }
    Err(Violation::new(
        index,
        format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            waiting.join(", ")
        ),
    ))
}

fn uses(index: usize, blocks: &[Value], seen: &mut HashSet<String>) -> Result<Vec<String>, Violation> {
    let mut ids = Vec::new();
    let mut other_before_thinking = false;
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                if id.is_empty() || !seen.insert(id.clone()) {
                    return Err(Violation::new(
                        index,
                        format!("messages.{index}: `tool_use` ids must be unique"),
                    ));
                }
                if !block["input"].is_object() {
                    return Err(Violation::new(index, "tool_use.input: Input should be a valid dictionary"));
                }
                ids.push(id);
            }
            "thinking" | "redacted_thinking" => {
                if other_before_thinking {
                    return Err(Violation::new(
                        index,
                        format!("messages.{index}: thinking blocks must come first"),
                    ));
                }
                let sealed = block["signature"]
                    .as_str()
                    .or(block["data"].as_str())
                    .is_some_and(|seal| !seal.is_empty());
                if !sealed {
                    return Err(Violation::new(index, "thinking.signature: Field required"));
                }
                continue;
            }
            "text" if !ids.is_empty() => {
                return Err(Violation::new(
                    index,
                    format!("messages.{index}: text after `tool_use` in an assistant message"),
                ));
            }
            _ => {}
        }
        other_before_thinking = true;
    }
    Ok(ids)
}

#[cfg(test)]
mod tests;
