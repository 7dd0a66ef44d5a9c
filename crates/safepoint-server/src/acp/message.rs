//! JSON-RPC as this protocol has it: a message a line, read from an editor and written to it.
//!
//! **Invariants**: a line that is no message is recognised as such; a request gets exactly one answer.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::problem::Problem;

const NO_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_FOUND: i64 = -32002;
const CANCELLED: i64 = -32800;

/// What an editor wrote. Exhaustive: the three kinds of message that there are.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notice {
        method: String,
        params: Value,
    },
    /// The answer to a request of ours; none: it refused.
    Answer {
        id: u64,
        result: Option<Value>,
    },
}

/// An error as the protocol has it.
#[derive(Debug)]
pub(super) struct Refusal {
    code: i64,
    message: String,
    data: Value,
}

impl Message {
    /// What a line says.
    ///
    /// # Errors
    /// How a line that is no message is answered.
    pub(super) fn read(line: &[u8]) -> Result<Self, Refusal> {
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            return Err(Refusal::of(NO_JSON, "the line is no JSON"));
        };
        let no_request = || Refusal::of(NO_REQUEST, "the line is no message of JSON-RPC");
        let Some(fields) = message.as_object_mut() else { return Err(no_request()) };
        let mut take = |name: &str| fields.remove(name);
        match (take("method"), take("id").filter(|id| !id.is_null())) {
            (Some(Value::String(method)), Some(id)) => {
                Ok(Self::Request { id, method, params: take("params").unwrap_or_default() })
            }
            (Some(Value::String(method)), None) => {
                Ok(Self::Notice { method, params: take("params").unwrap_or_default() })
            }
            (None, Some(id)) => {
                let id = id.as_u64().ok_or_else(no_request)?;
                Ok(Self::Answer { id, result: take("result") })
            }
            _ => Err(no_request()),
        }
    }
}

impl Refusal {
    pub(super) fn of(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::of(BAD_PARAMS, message)
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::of(NO_METHOD, format!("this agent has no method `{method}`"))
    }

    /// The request was cancelled, and what it had begun has settled.
    pub(super) fn cancelled(data: Value) -> Self {
        Self { data, ..Self::of(CANCELLED, "the request was cancelled") }
    }

    /// The turn failed.
    pub(super) fn failed(message: impl Into<String>, data: Value) -> Self {
        Self { data, ..Self::of(INTERNAL, message) }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let code = match problem.status() {
            StatusCode::NOT_FOUND => NOT_FOUND,
            StatusCode::BAD_REQUEST => BAD_PARAMS,
            _ => INTERNAL,
        };
        Self { code, message: problem.detail().to_owned(), data: json!({"code": problem.code()}) }
    }
}

/// The answer to a request.
pub(super) fn answer(id: &Value, answered: Result<Value, Refusal>) -> Value {
    match answered {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Refusal { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if !data.is_null() {
                error["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A notice of ours.
pub(super) fn notice(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
