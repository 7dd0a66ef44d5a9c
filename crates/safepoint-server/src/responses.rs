//! OpenAI's Responses at `/openai/v1`: a response is one item of one session, or what followed the answer to a question of its turn.
//!
//! **Invariants**: this module translates and keeps nothing; the ids and the numbers of events are those of the store, so that they
//! survive a restart; no status says that a response is over before its turn has settled.

mod alone;
mod calls;
mod create;
mod draft;
mod event;
mod fold;
mod id;
mod input;
mod kept;
mod lists;
mod object;
mod request;
mod stream;

use axum::{http::Method, response::Response};
use serde_json::json;

use crate::{
    access::AccessScope,
    caller::{Caller, sessions::no_such_agent},
    problem::{Answered, Problem},
    routes::table::Route,
    surface::Surface,
};

/// The routes of the protocol.
pub(crate) fn routes() -> Vec<Route> {
    use AccessScope::{Read, Stop, Talk};
    let of = |method, path, run| Route::of_surface(Surface::Responses, (method, path), problem, run);
    vec![
        of(Method::GET, "/openai/v1/models", |call| Box::pin(lists::models(call))).needs(Read),
        of(Method::GET, "/openai/v1/models/{model}", |call| Box::pin(lists::model(call))).needs(Read),
        // An answer to a question needs another scope than what begins work, and no load refuses it.
        of(Method::POST, "/openai/v1/responses", |call| Box::pin(create::create(call))).needs_token(),
        of(Method::GET, "/openai/v1/responses/{response}", |call| Box::pin(kept::retrieve(call))).needs(Read),
        of(Method::POST, "/openai/v1/responses/{response}/cancel", |call| Box::pin(kept::cancel(call)))
            .needs(Stop)
            .always(),
        of(Method::POST, "/openai/v1/conversations", |call| Box::pin(lists::converse(call))).needs(Talk),
        of(Method::GET, "/openai/v1/conversations/{conversation}", |call| {
            Box::pin(lists::conversation(call))
        })
        .needs(Read),
    ]
}

/// A refusal as the protocol has it, with our code.
fn problem(problem: Problem) -> Response {
    let kind = match problem.status().as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let (message, code, param) = (problem.detail(), problem.code(), problem.field("param"));
    problem.answered_by(&json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
}

/// Whether the caller may use this agent by the protocol.
fn offers(by: &Caller, agent: &str) -> bool {
    by.agents_on(Surface::Responses).any(|(name, _)| name == agent)
}

/// The agent of this name; the only one, if none is named.
///
/// # Errors
/// `no_such_agent`, and `bad_request` where one of several is to be named.
fn agent(by: &Caller, named: Option<&str>) -> Answered<String> {
    match named {
        Some(named) if offers(by, named) => Ok(named.to_owned()),
        Some(_) => {
            let usable = by.agents_on(Surface::Responses).map(|(name, _)| name);
            Err(no_such_agent(usable).with("param", "model"))
        }
        None => {
            let mut all = by.agents_on(Surface::Responses).map(|(name, _)| name);
            match (all.next(), all.next()) {
                (Some(only), None) => Ok(only.clone()),
                _ => Err(request::wrong("model", "it names one of several agents")),
            }
        }
    }
}
