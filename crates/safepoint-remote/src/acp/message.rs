//! JSON-RPC, as this protocol uses it: a message a line.
//!
//! **Invariants** A line that is not a message is recognised as such, and is not a failure. An answer without
//! a result or an error is still an answer, so its caller does not wait without end.

use serde_json::{Value, json};

/// What an agent wrote. Exhaustive: the three kinds of message that there are.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Answer { id: u64, result: Result<Value, Refusal> },
    Question { id: Value, method: String, params: Value },
    Notice { method: String, params: Value },
}

/// An error that an agent answered with.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

/// The error codes that are distinguished or sent.
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const NO_METHOD: i64 = -32601;
pub(super) const BAD_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const CANCELLED: i64 = -32800;

impl Message {
    /// What a line says; none if it is no message, or an answer to a question that we cannot have asked.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut message)) = safepoint::raw::json::read(line) else { return None };
        let mut take = |name: &str| message.remove(name).unwrap_or_default();
        let (id, method, params) = (take("id"), take("method"), take("params"));
        if let Value::String(method) = method {
            return Some(match id {
                Value::Null => Self::Notice { method, params },
                id => Self::Question { id, method, params },
            });
        }
        let id = id.as_u64()?;
        let (result, error) = (message.remove("result"), message.remove("error"));
        let result = match (result, error) {
            (_, Some(error)) if !error.is_null() => Err(Refusal::read(&error)),
            (Some(result), _) => Ok(result),
            (None, _) => Err(Refusal::broken("answered with neither a result nor an error")),
        };
        Some(Self::Answer { id, result })
    }
}

impl Refusal {
    fn read(error: &Value) -> Self {
        let code = error["code"].as_i64().unwrap_or(INTERNAL);
        let message = error["message"].as_str().unwrap_or("no reason given").to_owned();
        // Some agents put the useful text beside the message.
        match error["data"]["details"].as_str().or(error["data"].as_str()) {
            Some(details) => Self { code, message: format!("{message}: {details}") },
            None => Self { code, message },
        }
    }

    pub(super) fn broken(message: impl Into<String>) -> Self {
        Self { code: INTERNAL, message: message.into() }
    }
}

/// A question of ours.
pub(super) fn question(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A notice of ours.
pub(super) fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Our answer to a question.
pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Our refusal of a question.
pub(super) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_nothing() {
        for line in
            ["", "Listening on {port", "[1, 2", "\"text\"", "[]", r#"{"jsonrpc":"2.0"}"#, "{\"id\":\"x\"}"]
        {
            assert_eq!(Message::read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn an_answer_without_anything_is_an_answer() {
        let read = Message::read(br#"{"jsonrpc":"2.0","id":3}"#);
        assert!(matches!(read, Some(Message::Answer { id: 3, result: Err(_) })), "{read:?}");
        let read = Message::read(br#"{"jsonrpc":"2.0","id":3,"result":null}"#);
        assert_eq!(read, Some(Message::Answer { id: 3, result: Ok(Value::Null) }));
    }

    #[test]
    fn an_error_keeps_its_details() {
        let read = Message::read(
            br#"{"id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"no key"}}}"#,
        );
        let refusal = Refusal { code: INTERNAL, message: "Internal error: no key".into() };
        assert_eq!(read, Some(Message::Answer { id: 1, result: Err(refusal) }));
    }
}
