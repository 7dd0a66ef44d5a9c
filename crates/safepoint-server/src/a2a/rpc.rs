//! The JSON-RPC binding: one place, and the method in the body.

use axum::{http::StatusCode, response::Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json as value};

use super::{
    operation::{Operation, OperationAnswer, spoken},
    refusal::rpc_error,
    stream::{TaskPiece, TaskStream},
};
use crate::{
    problem::{Answered, Problem},
    routes::{Call, is_rpc_id, json},
    sse::{KEPT_ALIVE, streamed},
};

/// Answers a request.
pub(super) async fn answer(call: Call) -> Answered<Response> {
    let request: Value = match call.body() {
        Ok(request) => request,
        Err(problem) if problem.code() == "invalid_body" => return refused(&Value::Null, &problem),
        Err(_no_json) => {
            let problem = Problem::new(StatusCode::BAD_REQUEST, "no_json", "the body is no JSON");
            return refused(&Value::Null, &problem);
        }
    };
    let id = request["id"].clone();
    let id = if is_rpc_id(&id) { id } else { Value::Null };
    match run(&call, &request).await {
        Ok(OperationAnswer::Value(value)) => json(StatusCode::OK, &result(&id, &value)),
        Ok(OperationAnswer::Stream(stream)) => Ok(events(id, *stream)),
        Err(problem) => refused(&id, &problem),
    }
}

async fn run(call: &Call, request: &Value) -> Answered<OperationAnswer> {
    let no_request = |detail: &str| Problem::new(StatusCode::BAD_REQUEST, "no_request", detail);
    if request["jsonrpc"] != "2.0" {
        return Err(no_request("`jsonrpc` is \"2.0\""));
    }
    if request["id"].is_number() && !is_rpc_id(&request["id"]) {
        return Err(no_request("`id` is a text or a whole number that fits in 64 bits"));
    }
    let method = request["method"].as_str().ok_or_else(|| no_request("`method` is missing"))?;
    spoken(&call.headers, call.query("A2A-Version")?)?;
    let operation = Operation::named(method).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "no_such_method", format!("there is no method `{method}`"))
    })?;
    let params = &request["params"];
    if !(params.is_object() || params.is_null()) {
        return Err(Problem::bad_request("`params` is an object"));
    }
    operation.run(&call.by, call.param("agent"), params).await
}

fn result(id: &Value, value: &Value) -> Value {
    value!({"jsonrpc": "2.0", "id": id, "result": value})
}

/// An error of the protocol is an answer; what any server says before it looks at a request has its status.
fn refused(id: &Value, problem: &Problem) -> Answered<Response> {
    let is_ours = !matches!(
        problem.status(),
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let body = rpc_error(id, problem);
    if is_ours { json(StatusCode::OK, &body) } else { Ok(problem.answered_by(&body)) }
}

fn events(id: Value, stream: TaskStream) -> Response {
    streamed(stream::unfold((stream, id), |(mut stream, id)| async move {
        let piece = match stream.next().await? {
            TaskPiece::Value(value) => Bytes::from(format!("data: {}\n\n", result(&id, &value))),
            TaskPiece::KeepAlive => Bytes::from_static(KEPT_ALIVE),
        };
        Some((piece, (stream, id)))
    }))
}
