//! The rules of OpenAI Responses.

use std::collections::HashSet;

use serde_json::Value;

use super::{HistoryRule, Violation, answer_schema, list, media, must, text, tools};

/// Judges the history of a responses request.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    judged(body).map_err(|violation| violation.in_list("input"))
}

fn judged(body: &Value) -> Result<(), Violation> {
    tools::responses(body)?;
    answer_schema::format(&body["text"]["format"], "")?;
    let (input, items) = (&body["input"], list(&body["input"]));
    let says =
        "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.";
    must(input.is_string() || input.is_array(), 0, HistoryRule::SomeMessages, || says)?;
    let says = "Invalid 'input': empty array.";
    must(input.is_string() || !items.is_empty(), 0, HistoryRule::SomeMessages, || says)?;
    let mut calls = Calls::default();
    for (index, item) in items.iter().enumerate() {
        match kind(item) {
            "message" => {
                message(index, item)?;
                media::responses(index, &item["content"])?;
            }
            "function_call" => calls.ask(index, item)?,
            "function_call_output" => calls.answer(index, item)?,
            "reasoning" => reasoning(index, item, items.get(index + 1), body["store"] == false)?,
            other => must(OWN.contains(&other), index, HistoryRule::KnownRole, || {
                format!(
                    "Invalid value: '{other}'. Supported values are: 'function_call', 'function_call_output', 'item_reference', 'message', and 'reasoning'."
                )
            })?,
        }
    }
    calls.must_be_answered()
}

/// Items that come back as they were given: those of the provider's own tools, and of tools that no wire of ours declares
/// (those of `openai` 3.57 on PyPI).
const OWN: [&str; 27] = [
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "configuration_update",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// An item without a type is a message.
fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

fn message(index: usize, item: &Value) -> Result<(), Violation> {
    let role = text(&item["role"]);
    must(
        matches!(role, "user" | "assistant" | "system" | "developer"),
        index,
        HistoryRule::KnownRole,
        || {
            format!(
                "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            )
        },
    )?;
    let has_content = match &item["content"] {
        Value::String(text) => !(text.is_empty() && role == "assistant"),
        parts => !list(parts).is_empty(),
    };
    must(has_content, index, HistoryRule::SomeContent, || {
        format!("Missing required parameter: 'input[{index}].content'.")
    })
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
        must(!text(&item["name"]).is_empty(), index, HistoryRule::WellFormedCall, || {
            format!("Missing required parameter: 'input[{index}].name'.")
        })?;
        must(item["arguments"].is_string(), index, HistoryRule::WellFormedCall, || {
            format!("Invalid type for 'input[{index}].arguments': expected a string.")
        })?;
        must(self.seen.insert(id.to_owned()), index, HistoryRule::OwnId, || {
            format!("Duplicate function call with call_id {id}.")
        })?;
        self.open.push((index, id.to_owned()));
        Ok(())
    }

    fn answer(&mut self, index: usize, item: &Value) -> Result<(), Violation> {
        let id = call_id(index, item)?;
        let Some(place) = self.open.iter().position(|(_, open)| open == id) else {
            let says = format!("No tool call found for function call output with call_id {id}.");
            return Err(Violation::new(index, HistoryRule::ResultWithoutCall, says));
        };
        self.open.remove(place);
        let output = &item["output"];
        must(output.is_string() || !list(output).is_empty(), index, HistoryRule::SomeContent, || {
            format!("Missing required parameter: 'input[{index}].output'.")
        })?;
        outputs(index, list(output))
    }

    fn must_be_answered(&self) -> Result<(), Violation> {
        let Some((index, id)) = self.open.first() else { return Ok(()) };
        let says = format!("No tool output found for function call {id}.");
        Err(Violation::new(*index, HistoryRule::CallUnanswered, says))
    }
}

/// What an output may be made of.
fn outputs(index: usize, parts: &[Value]) -> Result<(), Violation> {
    for (place, part) in parts.iter().enumerate() {
        let kind = text(&part["type"]);
        let is_known = matches!(kind, "input_text" | "input_image" | "input_file");
        must(is_known, index, HistoryRule::ResultContent, || {
            format!(
                "Invalid value: '{kind}' at 'input[{index}].output[{place}].type'. Supported values are: 'input_text', 'input_image', and 'input_file'."
            )
        })?;
    }
    Ok(())
}

fn call_id(index: usize, item: &Value) -> Result<&str, Violation> {
    let id = text(&item["call_id"]);
    must(!id.is_empty(), index, HistoryRule::OwnId, || {
        format!(
            "Invalid 'input[{index}].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead."
        )
    })?;
    Ok(id)
}

/// A reasoning item comes whole, sealed where nothing is stored, and with what it led to.
fn reasoning(index: usize, item: &Value, next: Option<&Value>, stateless: bool) -> Result<(), Violation> {
    let id = text(&item["id"]);
    must(item["summary"].is_array(), index, HistoryRule::SignedThinking, || {
        format!("Missing required parameter: 'input[{index}].summary'.")
    })?;
    let is_sealed = !text(&item["encrypted_content"]).is_empty();
    must(is_sealed || !stateless, index, HistoryRule::SignedThinking, || {
        format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        )
    })?;
    let is_followed = next.is_some_and(|next| match kind(next) {
        "reasoning" | "function_call" => true,
        "message" => next["role"] == "assistant",
        own => OWN.contains(&own),
    });
    must(is_followed, index, HistoryRule::ReasoningFollowed, || {
        format!("Item '{id}' of type 'reasoning' was provided without its required following item.")
    })
}
