//! The rules of OpenAI Responses.

use std::collections::HashSet;

use serde_json::Value;

use super::{HistoryRule, Violation};

/// Judges the history of a responses request.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    let items = match &body["input"] {
        Value::String(_) => return Ok(()),
        Value::Array(items) if !items.is_empty() => items,
        Value::Array(_) => return Err(broken(0, HistoryRule::SomeMessages, "Invalid 'input': empty array.")),
        _ => {
            let says = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.";
            return Err(broken(0, HistoryRule::SomeMessages, says));
        }
    };
    let mut calls = Calls::default();
    for (index, item) in items.iter().enumerate() {
        match kind(item) {
            "message" => message(index, item)?,
            "function_call" => calls.ask(index, item)?,
            "function_call_output" => calls.answer(index, item)?,
            "reasoning" => reasoning(index, item, items.get(index + 1), body["store"] == false)?,
            own if OWN.contains(&own) => {}
            other => {
                let says = format!(
                    "Invalid value: '{other}'. Supported values are: 'function_call', 'function_call_output', 'item_reference', 'message', and 'reasoning'."
                );
                return Err(broken(index, HistoryRule::KnownRole, says));
            }
        }
    }
    calls.must_be_answered()
}

/// Items of the provider's own tools, which come back as they were given.
const OWN: [&str; 5] =
    ["web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"];

fn broken(index: usize, rule: HistoryRule, says: impl Into<String>) -> Violation {
    Violation::new(index, rule, says).in_list("input")
}

/// An item without a type is a message.
fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

fn message(index: usize, item: &Value) -> Result<(), Violation> {
    let role = item["role"].as_str().unwrap_or_default();
    if !matches!(role, "user" | "assistant" | "system" | "developer") {
        let says = format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
        );
        return Err(broken(index, HistoryRule::KnownRole, says));
    }
    match &item["content"] {
        Value::String(text) if !(text.is_empty() && role == "assistant") => Ok(()),
        Value::Array(parts) if !parts.is_empty() => Ok(()),
        _ => {
            let says = format!("Missing required parameter: 'input[{index}].content'.");
            Err(broken(index, HistoryRule::SomeContent, says))
        }
    }
}

/// Calls of the whole list: they are answered by id, anywhere behind them.
#[derive(Default)]
struct Calls {
    seen: HashSet<String>,
    open: Vec<(usize, String)>,
}

impl Calls {
    fn ask(&mut self, index: usize, item: &Value) -> Result<(), Violation> {
        let id = call_id(index, item)?;
        if item["name"].as_str().is_none_or(str::is_empty) {
            let says = format!("Missing required parameter: 'input[{index}].name'.");
            return Err(broken(index, HistoryRule::WellFormedCall, says));
        }
        if !item["arguments"].is_string() {
            let says = format!("Invalid type for 'input[{index}].arguments': expected a string.");
            return Err(broken(index, HistoryRule::WellFormedCall, says));
        }
        if !self.seen.insert(id.to_owned()) {
            let says = format!("Duplicate function call with call_id {id}.");
            return Err(broken(index, HistoryRule::OwnId, says));
        }
        self.open.push((index, id.to_owned()));
        Ok(())
    }

    fn answer(&mut self, index: usize, item: &Value) -> Result<(), Violation> {
        let id = call_id(index, item)?;
        let Some(place) = self.open.iter().position(|(_, open)| open == id) else {
            let says = format!("No tool call found for function call output with call_id {id}.");
            return Err(broken(index, HistoryRule::ResultWithoutCall, says));
        };
        self.open.remove(place);
        if let Some(parts) = item["output"].as_array().filter(|parts| !parts.is_empty()) {
            return outputs(index, parts);
        }
        if item["output"].is_string() {
            return Ok(());
        }
        let says = format!("Missing required parameter: 'input[{index}].output'.");
        Err(broken(index, HistoryRule::SomeContent, says))
    }

    fn must_be_answered(&self) -> Result<(), Violation> {
        let Some((index, id)) = self.open.first() else { return Ok(()) };
        let says = format!("No tool output found for function call {id}.");
        Err(broken(*index, HistoryRule::CallUnanswered, says))
    }
}

/// What an output may be made of.
fn outputs(index: usize, parts: &[Value]) -> Result<(), Violation> {
    for (place, part) in parts.iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !matches!(kind, "input_text" | "input_image" | "input_file") {
            let says = format!(
                "Invalid value: '{kind}' at 'input[{index}].output[{place}].type'. Supported values are: 'input_text', 'input_image', and 'input_file'."
            );
            return Err(broken(index, HistoryRule::ResultContent, says));
        }
    }
    Ok(())
}

fn call_id(index: usize, item: &Value) -> Result<&str, Violation> {
    item["call_id"].as_str().filter(|id| !id.is_empty()).ok_or_else(|| {
        let says = format!(
            "Invalid 'input[{index}].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead."
        );
        broken(index, HistoryRule::OwnId, says)
    })
}

/// A reasoning item comes whole, sealed where nothing is stored, and with what it led to.
fn reasoning(index: usize, item: &Value, next: Option<&Value>, stateless: bool) -> Result<(), Violation> {
    let id = item["id"].as_str().unwrap_or_default();
    if !item["summary"].is_array() {
        let says = format!("Missing required parameter: 'input[{index}].summary'.");
        return Err(broken(index, HistoryRule::SignedThinking, says));
    }
    let sealed = item["encrypted_content"].as_str().is_some_and(|seal| !seal.is_empty());
    if stateless && !sealed {
        let says = format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        );
        return Err(broken(index, HistoryRule::SignedThinking, says));
    }
    let followed = next.is_some_and(|next| match kind(next) {
        "reasoning" | "function_call" => true,
        "message" => next["role"] == "assistant",
        own => OWN.contains(&own),
    });
    if followed {
        return Ok(());
    }
    let says = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
    Err(broken(index, HistoryRule::ReasoningFollowed, says))
}
