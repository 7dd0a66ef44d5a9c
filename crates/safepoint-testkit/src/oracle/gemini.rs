//! The rules of Gemini's contents.

use serde_json::Value;

use super::{
    HistoryRule, Violation,
    answer_schema::{self, SchemaRules},
    list, media, must, text, tools,
};

const UNEQUAL: &str = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";

/// Judges the history of a `generateContent` request, as the strictest models take it.
///
/// # Errors
/// The first violation.
pub fn judge(body: &Value) -> Result<(), Violation> {
    let generation = &body["generationConfig"];
    let schema = &generation["responseJsonSchema"];
    let is_json = schema.is_null() || generation["responseMimeType"] == "application/json";
    let says = "response_json_schema can only be set if response_mime_type is application/json";
    must(is_json, 0, HistoryRule::AnswerSchema, || says)?;
    tools::gemini(body)?;
    answer_schema::judge(schema, "", SchemaRules::Gemini)?;
    judged(list(&body["contents"])).map_err(|violation| violation.in_list("contents"))
}

fn judged(contents: &[Value]) -> Result<(), Violation> {
    let says = "* GenerateContentRequest.contents: contents is not specified\n";
    must(!contents.is_empty(), 0, HistoryRule::SomeMessages, || says)?;
    let mut before = ContentKind::Nothing;
    for (index, content) in contents.iter().enumerate() {
        let turn = turn(index, content)?;
        follows(index, before, turn)?;
        before = turn;
    }
    let last = contents.len() - 1;
    let has_calls = matches!(before, ContentKind::Calls(_));
    must(!has_calls, last, HistoryRule::CallUnanswered, || UNEQUAL)?;
    let says = "Please ensure that single turn requests end with a user role or the role field is empty.";
    must(before != ContentKind::Model, last, HistoryRule::RolesAlternate, || says)?;
    signed(contents)
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
        (ContentKind::Calls(_), _) => Err(Violation::new(index - 1, HistoryRule::CallUnanswered, UNEQUAL)),
        (_, ContentKind::Responses(_)) => {
            let says =
                "Please ensure that function response turn comes immediately after a function call turn.";
            Err(Violation::new(index, HistoryRule::ResultWithoutCall, says))
        }
        (ContentKind::Nothing | ContentKind::Model, ContentKind::Calls(_)) => {
            let says = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
            Err(Violation::new(index, HistoryRule::RolesAlternate, says))
        }
        _ => Ok(()),
    }
}

/// What a content is by itself: its parts are whole, and of its role.
fn turn(index: usize, content: &Value) -> Result<ContentKind, Violation> {
    let role = content["role"].as_str().unwrap_or("user");
    let says = "Please use a valid role: user, model.";
    must(matches!(role, "user" | "model"), index, HistoryRule::KnownRole, || says)?;
    let parts = list(&content["parts"]);
    must(!parts.is_empty(), index, HistoryRule::SomeContent, || {
        format!("* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n")
    })?;
    let (mut calls, mut responses) = (0, 0);
    for (place, part) in parts.iter().enumerate() {
        media::gemini(index, part)?;
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
                return Err(Violation::new(index, HistoryRule::SomeText, says));
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
    const KINDS: [&str; 9] = [
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
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
    let args = &call["args"];
    must(args.is_null() || args.is_object(), index, HistoryRule::WellFormedCall, || {
        format!(
            "Invalid value at 'contents[{index}].parts[{place}].function_call.args' (type.googleapis.com/google.protobuf.Struct), {args}"
        )
    })
}

fn response(index: usize, place: usize, response: &Value) -> Result<(), Violation> {
    named(index, place, response, "function_response")?;
    let answer = &response["response"];
    must(answer.is_object(), index, HistoryRule::SomeContent, || {
        format!(
            "Invalid value at 'contents[{index}].parts[{place}].function_response.response' (type.googleapis.com/google.protobuf.Struct), {answer}"
        )
    })?;
    let is_bytes = list(&response["parts"]).iter().all(|part| part["inlineData"].is_object());
    must(is_bytes, index, HistoryRule::ResultContent, || {
        format!(
            "Invalid value at 'contents[{index}].parts[{place}].function_response.parts': only inline_data is supported."
        )
    })
}

fn named(index: usize, place: usize, of: &Value, what: &str) -> Result<(), Violation> {
    must(!text(&of["name"]).is_empty(), index, HistoryRule::WellFormedCall, || {
        format!(
            "* GenerateContentRequest.contents[{index}].parts[{place}].{what}.name: Name cannot be empty.\n"
        )
    })
}

/// In the turn that is going on, behind the last thing that the user said, the first call of each step is
/// signed.
fn signed(contents: &[Value]) -> Result<(), Violation> {
    let said = |content: &Value| {
        let is_no_response = |part: &Value| part["functionResponse"].is_null();
        content["role"] != "model" && list(&content["parts"]).iter().any(is_no_response)
    };
    let from = contents.iter().rposition(said).map_or(0, |last| last + 1);
    for (index, content) in contents.iter().enumerate().skip(from) {
        let parts = list(&content["parts"]);
        let Some(first) = parts.iter().find(|part| part["functionCall"].is_object()) else { continue };
        must(!text(&first["thoughtSignature"]).is_empty(), index, HistoryRule::SignedThinking, || {
            format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{}` , position {}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                text(&first["functionCall"]["name"]),
                index + 1
            )
        })?;
    }
    Ok(())
}
