//! The rules of Gemini's contents.

use serde_json::Value;

use super::{HistoryRule, Violation};

const UNEQUAL: &str = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";

/// Judges the history of a `generateContent` request, as the strictest models take it.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    let contents = match body["contents"].as_array() {
        Some(contents) if !contents.is_empty() => contents,
        _ => {
            let says = "* GenerateContentRequest.contents: contents is not specified\n";
            return Err(broken(0, HistoryRule::SomeMessages, says));
        }
    };
    let mut before = ContentKind::Nothing;
    for (index, content) in contents.iter().enumerate() {
        let turn = turn(index, content)?;
        follows(index, before, turn)?;
        before = turn;
    }
    match before {
        ContentKind::Calls(_) => Err(broken(contents.len() - 1, HistoryRule::CallUnanswered, UNEQUAL)),
        ContentKind::Model => {
            let says =
                "Please ensure that single turn requests end with a user role or the role field is empty.";
            Err(broken(contents.len() - 1, HistoryRule::RolesAlternate, says))
        }
        ContentKind::Nothing | ContentKind::User | ContentKind::Responses(_) => signed(contents),
    }
}

fn broken(index: usize, rule: HistoryRule, says: impl Into<String>) -> Violation {
    Violation::new(index, rule, says).in_list("contents")
}

/// What a content is, to the one behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Nothing,
    User,
    Responses(usize),
    Model,
    Calls(usize),
}

fn follows(index: usize, before: ContentKind, turn: ContentKind) -> Result<(), Violation> {
    match (before, turn) {
        (ContentKind::Calls(calls), ContentKind::Responses(responses)) if calls == responses => Ok(()),
        (ContentKind::Calls(_), _) => Err(broken(index - 1, HistoryRule::CallUnanswered, UNEQUAL)),
        (_, ContentKind::Responses(_)) => {
            let says =
                "Please ensure that function response turn comes immediately after a function call turn.";
            Err(broken(index, HistoryRule::ResultWithoutCall, says))
        }
        (ContentKind::Nothing | ContentKind::Model, ContentKind::Calls(_)) => {
            let says = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
            Err(broken(index, HistoryRule::RolesAlternate, says))
        }
        _ => Ok(()),
    }
}

/// What a content is by itself: its parts are whole, and of its role.
fn turn(index: usize, content: &Value) -> Result<ContentKind, Violation> {
    let role = content["role"].as_str().unwrap_or("user");
    if !matches!(role, "user" | "model") {
        return Err(broken(index, HistoryRule::KnownRole, "Please use a valid role: user, model."));
    }
    let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
    if parts.is_empty() {
        let says =
            format!("* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n");
        return Err(broken(index, HistoryRule::SomeContent, says));
    }
    let (mut calls, mut responses) = (0, 0);
    for (place, part) in parts.iter().enumerate() {
        match kind(part) {
            Some("functionCall") => {
                call(index, place, &part["functionCall"])?;
                calls += 1;
            }
            Some("functionResponse") => {
                response(index, place, &part["functionResponse"])?;
                responses += 1;
            }
            Some(_) => {}
            None => {
                let says = format!(
                    "* GenerateContentRequest.contents[{index}].parts[{place}].data: required oneof field 'data' must have one initialized field\n"
                );
                return Err(broken(index, HistoryRule::SomeText, says));
            }
        }
    }
    Ok(match (role, calls, responses) {
        ("model", 0, _) => ContentKind::Model,
        ("model", calls, _) => ContentKind::Calls(calls),
        (_, _, 0) => ContentKind::User,
        (_, _, responses) => ContentKind::Responses(responses),
    })
}

/// The one thing that a part holds. An empty text holds something only with its signature.
fn kind(part: &Value) -> Option<&'static str> {
    const KINDS: [&str; 7] = [
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "text",
    ];
    KINDS.into_iter().find(|kind| match &part[*kind] {
        Value::Null => false,
        Value::String(text) => !text.is_empty() || part["thoughtSignature"].is_string(),
        _ => true,
    })
}

fn call(index: usize, place: usize, call: &Value) -> Result<(), Violation> {
    named(index, place, call, "function_call")?;
    if call["args"].is_null() || call["args"].is_object() {
        return Ok(());
    }
    let says = format!(
        "Invalid value at 'contents[{index}].parts[{place}].function_call.args' (type.googleapis.com/google.protobuf.Struct), {}",
        call["args"]
    );
    Err(broken(index, HistoryRule::WellFormedCall, says))
}

fn response(index: usize, place: usize, response: &Value) -> Result<(), Violation> {
    named(index, place, response, "function_response")?;
    if response["response"].is_object() {
        return beside(index, place, response);
    }
    let says = format!(
        "Invalid value at 'contents[{index}].parts[{place}].function_response.response' (type.googleapis.com/google.protobuf.Struct), {}",
        response["response"]
    );
    Err(broken(index, HistoryRule::SomeContent, says))
}

/// Beside the response only bytes may stand.
fn beside(index: usize, place: usize, response: &Value) -> Result<(), Violation> {
    let parts = response["parts"].as_array().map_or(&[][..], Vec::as_slice);
    if parts.iter().all(|part| part["inlineData"].is_object()) {
        return Ok(());
    }
    let says = format!(
        "Invalid value at 'contents[{index}].parts[{place}].function_response.parts': only inline_data is supported."
    );
    Err(broken(index, HistoryRule::ResultContent, says))
}

fn named(index: usize, place: usize, of: &Value, what: &str) -> Result<(), Violation> {
    if of["name"].as_str().is_some_and(|name| !name.is_empty()) {
        return Ok(());
    }
    let says = format!(
        "* GenerateContentRequest.contents[{index}].parts[{place}].{what}.name: Name cannot be empty.\n"
    );
    Err(broken(index, HistoryRule::WellFormedCall, says))
}

/// In the turn that is going on, behind the last thing that the user said, the first call of each step is
/// signed.
fn signed(contents: &[Value]) -> Result<(), Violation> {
    let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
    let said = |content: &Value| {
        content["role"] != "model" && parts(content).iter().any(|part| part["functionResponse"].is_null())
    };
    let from = contents.iter().rposition(said).map_or(0, |last| last + 1);
    for (index, content) in contents.iter().enumerate().skip(from) {
        let parts = parts(content);
        let Some(place) = parts.iter().position(|part| part["functionCall"].is_object()) else { continue };
        if parts[place]["thoughtSignature"].as_str().is_some_and(|signature| !signature.is_empty()) {
            continue;
        }
        let says = format!(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}` , position {}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
            parts[place]["functionCall"]["name"].as_str().unwrap_or_default(),
            index + 1
        );
        return Err(broken(index, HistoryRule::SignedThinking, says));
    }
    Ok(())
}
