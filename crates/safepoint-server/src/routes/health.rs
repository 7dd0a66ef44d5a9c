//! Whether the server lives and is ready, what it counts, its document, and its drain.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use tokio::time::timeout;

use super::{Call, json};
use crate::{answer::DoneAnswer, audit::AuditLog, openapi, problem::Answered};

/// How long the store of a server that is ready takes to answer.
const STORE_ANSWERS: Duration = Duration::from_secs(1);

pub(crate) async fn live(_call: Call) -> Answered<Response> {
    json(StatusCode::OK, &DoneAnswer { status: "live" })
}

pub(crate) async fn ready(call: Call) -> Answered<Response> {
    let (status, word) = if call.by.host.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if call.audit.as_ref().is_some_and(AuditLog::is_broken) {
        (StatusCode::SERVICE_UNAVAILABLE, "audit")
    } else if matches!(timeout(STORE_ANSWERS, call.by.store().list(1, None)).await, Ok(Ok(_))) {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "store")
    };
    json(status, &DoneAnswer { status: word })
}

pub(crate) async fn metrics(call: Call) -> Answered<Response> {
    let text = call.by.load.text(call.by.host.count_open());
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

pub(crate) async fn document(_call: Call) -> Answered<Response> {
    json(StatusCode::OK, &openapi::document())
}

/// Asks for the drain, which ends the server that serves this: the answer is what the client can still get.
pub(crate) async fn drain(call: Call) -> Answered<Response> {
    Arc::clone(&call.by.host).ask_drain();
    json(StatusCode::ACCEPTED, &DoneAnswer { status: "draining" })
}
