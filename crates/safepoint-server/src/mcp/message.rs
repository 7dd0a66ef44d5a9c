//! A message over HTTP, before the transport reads it: what is none is refused, and learns what is wrong.

use axum::http::StatusCode;
use rmcp::model::ClientJsonRpcMessage;
use serde_json::Value;

use crate::{
    problem::{Answered, Problem},
    routes::{is_object, is_rpc_id},
};

/// The code of a body that is no JSON.
pub(super) const NO_JSON: &str = "no_json";

/// The message of a body.
///
/// # Errors
/// `no_json`, `invalid_body` and `invalid_request`.
pub(super) fn read(body: &[u8]) -> Answered<Value> {
    let message: Value = serde_json::from_slice(body).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, NO_JSON, format!("the body is no JSON: {error}"))
    })?;
    is_object(body)?;
    let invalid = |detail: String| {
        let id = message["id"].clone();
        let problem = Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail);
        // An id that is none is not said again.
        if is_rpc_id(&id) { problem.with("id", id) } else { problem }
    };
    if let Some(wrong) = wrong(&message) {
        return Err(invalid(wrong.to_owned()));
    }
    // What is left is of one version or another, which the types of the protocol know.
    let read = serde_json::from_slice::<ClientJsonRpcMessage>(body);
    read.map_err(|error| invalid(format!("the body is no message of the protocol: {error}")))?;
    Ok(message)
}

/// What is wrong with it, whatever it asks for.
fn wrong(message: &Value) -> Option<&'static str> {
    let is_answer = message.get("method").is_none();
    match message.get("id") {
        Some(id) if is_rpc_id(id) => {}
        None if !is_answer => {}
        // An error that answers no request that could be read.
        None | Some(Value::Null) if is_answer && message.get("error").is_some() => {}
        _ => return Some("`id` is a text or a whole number that fits in 64 bits; a notification has none"),
    }
    match () {
        () if message["jsonrpc"] != "2.0" => Some("`jsonrpc` is \"2.0\""),
        () if is_answer && message.get("result").is_none() && message.get("error").is_none() => {
            Some("a message has a `method`, a `result` or an `error`")
        }
        () if !is_answer && !message["method"].is_string() => Some("`method` is a text"),
        () if message.get("params").is_some_and(|params| !params.is_object()) => {
            Some("`params` is an object")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S13.48, S13.53: what is no message is refused, and learns what is wrong; what is one is none of these.
    #[test]
    fn what_is_no_message_learns_what_is_wrong() {
        let of = |message: Value| read(message.to_string().as_bytes());
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        for (field, value, about) in [
            ("id", Value::Null, "`id`"),
            ("id", json!(1.5), "`id`"),
            ("id", json!([1]), "`id`"),
            ("jsonrpc", json!("1.0"), "`jsonrpc`"),
            ("method", json!(1), "`method`"),
            ("params", json!([1]), "`params`"),
            ("params", json!("x"), "`params`"),
        ] {
            let mut message = ping.clone();
            message[field] = value;
            let refused = of(message).unwrap_err();
            assert_eq!(refused.code(), "invalid_request");
            assert!(refused.detail().contains(about), "{field}: {}", refused.detail());
            assert_eq!(*refused.field("id"), if field == "id" { Value::Null } else { json!(1) });
        }
        assert_eq!(of(json!({"jsonrpc": "2.0", "id": 1})).unwrap_err().code(), "invalid_request");
        // These are read as numbers that are near them.
        for near in
            ["1e3", "1.0", "0.1", "9223372036854775808", "18446744073709551616", "-9223372036854775809"]
        {
            let refused = read(ping.to_string().replace("\"id\":1", &format!("\"id\":{near}")).as_bytes());
            let refused = refused.unwrap_err();
            assert_eq!((refused.code(), refused.field("id")), ("invalid_request", &Value::Null), "{near}");
            assert!(refused.detail().contains("`id`"), "{near}: {}", refused.detail());
        }
        assert_eq!(of(json!([ping])).unwrap_err().code(), "invalid_body");
        for none in ["", "{", "x"] {
            assert_eq!(read(none.as_bytes()).unwrap_err().code(), NO_JSON);
        }
        for message in [
            ping.clone(),
            json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {}}),
            json!({"jsonrpc": "2.0", "id": i64::MAX, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": i64::MIN, "method": "ping"}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "own/method", "params": {"x": [1]}}),
        ] {
            assert_eq!(of(message.clone()).unwrap(), message);
        }
    }
}
