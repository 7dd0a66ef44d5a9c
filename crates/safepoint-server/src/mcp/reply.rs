//! What the client reads of a call: its text, what is known of its turn, and why a request is refused.

use axum::{
    body::to_bytes,
    http::{StatusCode, header},
    response::Response,
};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, JsonObject, MetaObject},
};
use safepoint::approval::ApprovalRequest;
use serde_json::{Value, json};

use super::message;
use crate::{
    answer::{CRASHED, crashed_words},
    caller::ended::EndedItem,
    problem::Problem,
};

/// How many bytes of a refusal's text are kept.
const MOST_TEXT: usize = 4_096;

/// The answer of a call whose item is at rest, with the questions that are open.
pub(super) fn of(ended: &EndedItem, questions: &[ApprovalRequest]) -> CallToolResult {
    let mut account = ended.account();
    let session = &ended.rest.session;
    let text = match ended.outcome() {
        "completed" => ended.rest.answer.clone().unwrap_or_default(),
        "suspended" => waits(session, questions),
        "failed" => {
            let (code, message) = ended.failure();
            format!("The turn failed ({code}): {message}")
        }
        "returned" => {
            format!("The item was not taken: {}", ended.rest.returned.unwrap_or("it came back"))
        }
        CRASHED => format!("{}; a new call begins anew", crashed_words(session)),
        outcome => {
            let code = ended.stop_code().unwrap_or(outcome);
            format!("The turn was stopped before it had an answer ({code})")
        }
    };
    if ended.outcome() == "suspended" {
        let asked = |asked: &ApprovalRequest| json!({"id": asked.id.as_str(), "digest": asked.digest, "tool": asked.tool, "args": asked.args});
        account["approvals"] = questions.iter().map(asked).collect();
    }
    let content = vec![ContentBlock::text(text)];
    let mut result = match ended.outcome() {
        "completed" => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    };
    result.meta = unquiet(&account);
    result.structured_content = Some(account);
    result
}

/// What was not quiet; none: all was.
pub(super) fn unquiet(account: &Value) -> Option<MetaObject> {
    let is_quiet = account["quiet"] != false && account["survivors"].as_array().is_none_or(Vec::is_empty);
    let mut meta = JsonObject::new();
    meta.insert(
        "safepoint".to_owned(),
        json!({"quiet": account["quiet"], "survivors": account["survivors"]}),
    );
    (!is_quiet).then_some(MetaObject(meta))
}

fn waits(session: &str, questions: &[ApprovalRequest]) -> String {
    let mut text = String::from("The turn waits for a decision:");
    for asked in questions {
        let (id, tool) = (&asked.id, &asked.tool);
        text.push_str(&format!("\n`{tool}` with {}: `safepoint approve {session} {id}`", asked.args));
    }
    text.push_str("\nor `safepoint deny` with the same. The session continues then; call again with it.");
    text
}

/// A request that is none is answered to the model, which may repair it; what it cannot repair is an error of the protocol.
///
/// # Errors
/// The error of the protocol.
pub(super) fn refused(problem: &Problem) -> Result<CallToolResult, ErrorData> {
    let status = problem.status();
    if !status.is_client_error() || status == StatusCode::FORBIDDEN {
        return Err(error(problem));
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(problem.detail())]);
    result.structured_content = Some(json!({"code": problem.code(), "detail": problem.detail()}));
    Ok(result)
}

/// The protocol's error, with our code.
pub(super) fn error(problem: &Problem) -> ErrorData {
    let code = match problem.status() {
        StatusCode::FORBIDDEN => ErrorCode::INVALID_REQUEST,
        status if status.is_client_error() => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, problem.detail().to_owned(), Some(json!({"code": problem.code()})))
}

/// A refusal before the request was looked at.
pub(super) fn answer(problem: Problem) -> Response {
    let code = match problem.code() {
        message::NO_JSON => ErrorCode::PARSE_ERROR,
        _ => ErrorCode::INVALID_REQUEST,
    };
    let error = json!({"code": code.0, "message": problem.detail(), "data": {"code": problem.code()}});
    problem.answered_by(&json!({"jsonrpc": "2.0", "id": problem.field("id"), "error": error}))
}

/// The response of the transport. It has some refusals as plain text: they get the form of every other one.
///
/// # Cancel safety
/// The response is lost.
pub(super) async fn in_form(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let has_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if has_form || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let code = match status {
        StatusCode::NOT_FOUND => "no_such_session",
        StatusCode::METHOD_NOT_ALLOWED => "method",
        StatusCode::NOT_ACCEPTABLE => "not_acceptable",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "media_type",
        status if status.is_client_error() => "bad_request",
        _ => "transport",
    };
    let (head, body) = response.into_parts();
    let text = to_bytes(body, MOST_TEXT).await.unwrap_or_default();
    let mut response = answer(Problem::new(status, code, String::from_utf8_lossy(&text)));
    for name in [header::ALLOW, header::RETRY_AFTER] {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S13.18: what may be alive is said where it may be, and there alone.
    #[test]
    fn only_what_was_not_quiet_is_said_beside_the_answer() {
        for quiet in [json!({"quiet": true, "survivors": []}), json!({"quiet": null, "survivors": []})] {
            assert_eq!(unquiet(&quiet), None, "{quiet}");
        }
        let alive = json!({"quiet": false, "survivors": ["shell call_2"], "turn": "turn-1"});
        let said = json!(unquiet(&alive).unwrap());
        assert_eq!(said, json!({"safepoint": {"quiet": false, "survivors": ["shell call_2"]}}));
        assert!(unquiet(&json!({"quiet": null, "survivors": ["shell call_2"]})).is_some());
    }
}
