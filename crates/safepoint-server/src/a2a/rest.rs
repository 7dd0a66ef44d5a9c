//! The HTTP+JSON binding: an operation is a method and a path.

use axum::{
    http::{Method, StatusCode},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream as streams;
use serde_json::{Value, json as value};

use super::{
    operation::{Operation, OperationAnswer, spoken},
    stream::{TaskPiece, TaskStream},
};
use crate::{
    problem::{Answered, Problem},
    routes::{Call, json},
    sse::{KEPT_ALIVE, streamed},
};

/// The parameters of a query, as the operations have them.
const QUERY: [&str; 7] = [
    "contextId",
    "status",
    "pageSize",
    "pageToken",
    "historyLength",
    "statusTimestampAfter",
    "includeArtifacts",
];

pub(super) async fn send(call: Call) -> Answered<Response> {
    let params = call.body()?;
    run(&call, Operation::Send, &params).await
}

pub(super) async fn stream(call: Call) -> Answered<Response> {
    let params = call.body()?;
    run(&call, Operation::Stream, &params).await
}

pub(super) async fn list(call: Call) -> Answered<Response> {
    let params = query(&call)?;
    run(&call, Operation::List, &params).await
}

pub(super) async fn extended_card(call: Call) -> Answered<Response> {
    run(&call, Operation::ExtendedCard, &Value::Null).await
}

pub(super) async fn push_config(call: Call) -> Answered<Response> {
    run(&call, Operation::PushConfig, &Value::Null).await
}

/// A task, or what its name says is to be done with it.
pub(super) async fn task(call: Call) -> Answered<Response> {
    let named = call.param("task");
    let (id, verb) = named.split_once(':').unwrap_or((named, ""));
    let operation = match (&call.method, verb) {
        (&Method::GET, "") => Operation::Get,
        (&Method::POST, "cancel") => Operation::Cancel,
        // The specification has it as both.
        (&Method::GET | &Method::POST, "subscribe") => Operation::Subscribe,
        _ => return Err(Problem::no_such("route")),
    };
    let mut params = query(&call)?;
    params["id"] = id.into();
    run(&call, operation, &params).await
}

fn query(call: &Call) -> Answered<Value> {
    let mut params = value!({});
    for name in QUERY {
        if let Some(given) = call.query::<String>(name)? {
            params[name] = given.into();
        }
    }
    Ok(params)
}

async fn run(call: &Call, operation: Operation, params: &Value) -> Answered<Response> {
    spoken(&call.headers, call.query("A2A-Version")?)?;
    match operation.run(&call.by, call.param("agent"), params).await? {
        OperationAnswer::Value(answer) => json(StatusCode::OK, &answer),
        OperationAnswer::Stream(stream) => Ok(events(*stream)),
    }
}

fn events(stream: TaskStream) -> Response {
    streamed(streams::unfold(stream, |mut stream| async move {
        let piece = match stream.next().await? {
            TaskPiece::Value(value) => Bytes::from(format!("data: {value}\n\n")),
            TaskPiece::KeepAlive => Bytes::from_static(KEPT_ALIVE),
        };
        Some((piece, stream))
    }))
}
