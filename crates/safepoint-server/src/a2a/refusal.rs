//! Why a request is refused, as A2A says it: our code beside theirs.

use axum::{http::StatusCode, response::Response};
use serde_json::{Value, json};

use crate::problem::Problem;

/// The domain of the errors that A2A names.
const DOMAIN: &str = "a2a-protocol.org";

/// An error of the protocol.
struct A2aRefusal {
    /// The code of JSON-RPC.
    code: i64,
    /// The status of `google.rpc`.
    status: &'static str,
    /// The name that A2A has for it; none: it is an error of any protocol.
    reason: Option<&'static str>,
}

/// A task that does not take what was asked of it.
pub(super) fn unsupported(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "unsupported_operation", detail)
}

/// A task that is over.
pub(super) fn not_cancelable(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not_cancelable", detail)
}

/// A part that the agent does not read.
pub(super) fn content_type(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "content_type", detail)
}

pub(super) fn no_push() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "no_push", "this server sends no push notifications")
}

pub(super) fn version(named: &str) -> Problem {
    let detail = format!("A2A {named} is not spoken here: use {}", super::VERSION);
    Problem::new(StatusCode::BAD_REQUEST, "version", detail)
}

/// The refusal of an operation over HTTP+JSON.
pub(super) fn answer(problem: Problem) -> Response {
    let refusal = A2aRefusal::of(&problem);
    let body = json!({"error": {
        "code": problem.status().as_u16(), "status": refusal.status, "message": problem.detail(),
        "details": [refusal.detail(&problem)],
    }});
    problem.answered_by(&body)
}

/// The refusal of a request over JSON-RPC before its id is known.
pub(super) fn rpc_answer(problem: Problem) -> Response {
    let body = rpc_error(&Value::Null, &problem);
    problem.answered_by(&body)
}

/// The error object of JSON-RPC, in its envelope.
pub(super) fn rpc_error(id: &Value, problem: &Problem) -> Value {
    let refusal = A2aRefusal::of(problem);
    let error = json!({
        "code": refusal.code, "message": problem.detail(), "data": [refusal.detail(problem)],
    });
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

impl A2aRefusal {
    fn of(problem: &Problem) -> Self {
        let named = |code, status, reason| Self { code, status, reason: Some(reason) };
        match problem.code() {
            "no_such_task" => named(-32001, "NOT_FOUND", "TASK_NOT_FOUND"),
            "not_cancelable" => named(-32002, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            "no_push" => named(-32003, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            "unsupported_operation" => named(-32004, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            "content_type" | "media_type" => named(-32005, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            "version" => named(-32009, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            code => Self::unnamed(code, problem.status()),
        }
    }

    fn unnamed(code: &str, http: StatusCode) -> Self {
        let of = |code, status| Self { code, status, reason: None };
        match (code, http) {
            ("no_json", _) => of(-32700, "INVALID_ARGUMENT"),
            ("no_request" | "invalid_body", _) => of(-32600, "INVALID_ARGUMENT"),
            ("no_such_method" | "no_such_route", _) => of(-32601, "NOT_FOUND"),
            (_, StatusCode::BAD_REQUEST) => of(-32602, "INVALID_ARGUMENT"),
            (_, StatusCode::CONFLICT) => of(-32602, "FAILED_PRECONDITION"),
            (_, StatusCode::NOT_FOUND) => of(-32600, "NOT_FOUND"),
            (_, StatusCode::UNAUTHORIZED) => of(-32600, "UNAUTHENTICATED"),
            (_, StatusCode::FORBIDDEN) => of(-32600, "PERMISSION_DENIED"),
            (_, StatusCode::TOO_MANY_REQUESTS) => of(-32603, "RESOURCE_EXHAUSTED"),
            (_, http) if http.is_server_error() => of(-32603, "UNAVAILABLE"),
            _ => of(-32600, "INVALID_ARGUMENT"),
        }
    }

    /// What a program reads: the name of the error, and our code.
    fn detail(&self, problem: &Problem) -> Value {
        let own = problem.code().to_ascii_uppercase();
        let (domain, reason) = self.reason.map_or(("safepoint", own.as_str()), |reason| (DOMAIN, reason));
        json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain,
            "metadata": {"code": problem.code()},
        })
    }
}
