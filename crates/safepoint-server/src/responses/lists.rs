//! Agents as models, and sessions as conversations.

use axum::{http::StatusCode, response::Response};
use serde_json::{Map, Value, json};

use super::{
    agent, id, offers,
    request::{text, unsupported},
};
use crate::{
    caller::{Kept, SessionMake},
    problem::{Answered, Problem},
    routes::{Call, json},
    surface::Surface,
};

fn described(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "safepoint"})
}

pub(super) async fn models(call: Call) -> Answered<Response> {
    let data: Vec<Value> = call.by.agents_on(Surface::Responses).map(|(name, _)| described(name)).collect();
    json(StatusCode::OK, &json!({"object": "list", "data": data}))
}

pub(super) async fn model(call: Call) -> Answered<Response> {
    let name = agent(&call.by, Some(call.param("model")))?;
    json(StatusCode::OK, &described(&name))
}

/// A session without an item. It keeps its agent: the one that `metadata.model` names, or the only one.
pub(super) async fn converse(call: Call) -> Answered<Response> {
    let mut body: Map<String, Value> = call.body()?;
    let mut metadata = match body.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let model = metadata.remove("model").map(|model| text("metadata.model", model)).transpose()?;
    let is_given = |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
    let left = metadata.iter().map(|(name, _)| format!("metadata.{name}"));
    let left = left.chain(body.iter().filter(|(_, value)| is_given(value)).map(|(name, _)| name.clone()));
    if let Some(name) = left.into_iter().next() {
        return Err(unsupported(&name, "a conversation begins with its first response"));
    }
    let make = SessionMake {
        agent: Some(agent(&call.by, model.as_deref())?),
        key: call.key()?,
        ..SessionMake::default()
    };
    let (kept, _) = call.by.make(make).await?;
    json(StatusCode::OK, &shown(&kept))
}

pub(super) async fn conversation(call: Call) -> Answered<Response> {
    let kept = call.by.session(id::session_of(call.param("conversation"))).await;
    let kept = kept.map_err(no_conversation)?;
    if !offers(&call.by, &kept.setup.agent) {
        return Err(Problem::no_such("conversation"));
    }
    json(StatusCode::OK, &shown(&kept))
}

/// A session that is not found is a conversation that is not.
pub(super) fn no_conversation(problem: Problem) -> Problem {
    if problem.code() == "no_such_session" { Problem::no_such("conversation") } else { problem }
}

fn shown(kept: &Kept) -> Value {
    json!({"id": id::conversation(kept.id().as_str()), "object": "conversation",
           "created_at": kept.row.created.as_second(), "metadata": {"model": kept.setup.agent}})
}
