//! The door over HTTP: who asks was checked as for every route, and whose session it is here; the rest is rmcp's.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode},
    response::Response,
};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::sync::watch;

use super::{head, link::LinkState, message, reply, sessions::SessionOwner, tool::AgentTool};
use crate::{
    problem::{Answered, Problem},
    routes::Call,
    surface::Surface,
};

/// Answers a request.
///
/// # Errors
/// `no_such_agent`, `no_such_session`, those of [`message::read`], `unknown_event`, `id_in_use`, and `too_many_sessions`.
///
/// # Cancel safety
/// What it asked for may have begun.
pub(super) async fn answer(call: Call) -> Answered<Response> {
    let named = call.param("agent");
    let mut offered = call.by.agents_on(Surface::Mcp);
    let agent = offered.find(|(name, _)| *name == named).map(|(name, _)| name.clone());
    let agent = agent.ok_or_else(|| Problem::no_such("agent"))?;
    let sessions = &call.by.host.mcp;
    let owner = SessionOwner::of(&agent, &call.by.who);
    let body = call.bytes();
    let is_post = call.method == Method::POST;
    let message = if is_post { message::read(&body)? } else { Value::Null };
    let is_delete = call.method == Method::DELETE;
    let begins = is_post && message["method"] == "initialize";
    let stands_alone =
        is_post && message["method"] == "tools/call" && !call.headers.contains_key("mcp-session-id");
    let id = call.headers.get("mcp-session-id").map(|id| id.to_str().map(ToOwned::to_owned)).transpose();
    let id = id.map_err(|_no_text| Problem::no_such("session"))?;
    let asked = match &id {
        Some(id) => {
            sessions.check(&owner, id)?;
            if is_delete {
                sessions.close(id);
            }
            if let Some(last) = call.headers.get("last-event-id").filter(|_| call.method == Method::GET) {
                sessions.knows(id, last)?;
            }
            sessions.asks(id, &message)?
        }
        None if begins => sessions.has_room(&owner).map(|()| None)?,
        None => None,
    };
    // What a request waits for is answered also while the host ends; the rest ends with it.
    let config = match is_post && !begins {
        true => StreamableHttpServerConfig::default().disable_allowed_hosts(),
        false => sessions.config(),
    };
    let link = watch::Sender::new(LinkState::Single);
    let tool = AgentTool::new(call.by.clone(), agent, link.clone());
    let own = Arc::new(sessions.of(owner, link, (id.as_deref(), asked)));
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = call.method;
    *request.headers_mut() = call.headers;
    request.extensions_mut().insert(call.by.clone());
    let service = StreamableHttpService::new(move || Ok(tool.clone()), own, config);
    let answering = async move { reply::in_form(service.handle(request).await.map(Body::new)).await };
    let mut response = if stands_alone { head::soon(Box::pin(answering)).await } else { answering.await };
    if is_delete && response.status() == StatusCode::ACCEPTED {
        // It is gone: clients take this for a failure.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(response)
}
