//! A2A 1.0, at `/a2a/{agent}`: JSON-RPC and HTTP+JSON, and the agent's card below both.
//!
//! A context is a session, and a task is one item of it. What a task was asked, answered and stopped with is what the session's own
//! API shows; here is only its translation.
//!
//! **Invariants**: a task is canceled once its turn has settled, and not before; only `approve`, or a decision as data, is a yes.

use axum::http::Method;

use crate::{
    access::AccessScope,
    caller::Caller,
    problem::{Answered, Problem},
    routes::table::Route,
    surface::Surface,
};

mod message;
mod refusal;
mod task;

mod cancel;
mod card;
mod list;
mod operation;
mod page;
mod send;
mod stream;

mod rest;
mod rpc;

/// The version that is spoken.
const VERSION: &str = "1.0";

/// Those of A2A.
pub(crate) fn routes() -> Vec<Route> {
    let mut all: Vec<Route> = ["/a2a/{agent}", "/a2a/{agent}/"].map(rpc).into();
    all.extend([
        Route::of_surface(
            Surface::A2a,
            (Method::GET, "/a2a/{agent}/.well-known/agent-card.json"),
            refusal::answer,
            |call| Box::pin(card::card(call)),
        )
        .needs(AccessScope::Read),
        Route::of_surface(
            Surface::A2a,
            (Method::GET, "/.well-known/agent-card.json"),
            refusal::answer,
            |call| Box::pin(card::only_card(call)),
        )
        .needs(AccessScope::Read),
        of((Method::POST, "/a2a/{agent}/message:send"), |call| Box::pin(rest::send(call))),
        of((Method::POST, "/a2a/{agent}/message:stream"), |call| Box::pin(rest::stream(call))),
        of((Method::GET, "/a2a/{agent}/tasks"), |call| Box::pin(rest::list(call))),
        of((Method::GET, "/a2a/{agent}/tasks/{task}"), |call| Box::pin(rest::task(call))),
        of((Method::POST, "/a2a/{agent}/tasks/{task}"), |call| Box::pin(rest::task(call))),
        of((Method::GET, "/a2a/{agent}/extendedAgentCard"), |call| Box::pin(rest::extended_card(call))),
    ]);
    let configs = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs";
    let config = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{config}";
    let pushed =
        [(Method::POST, configs), (Method::GET, configs), (Method::GET, config), (Method::DELETE, config)];
    all.extend(pushed.map(|place| of(place, |call| Box::pin(rest::push_config(call)))));
    all
}

fn rpc(path: &'static str) -> Route {
    let place = (Method::POST, path);
    Route::of_surface(Surface::A2a, place, refusal::rpc_answer, |call| Box::pin(rpc::answer(call)))
        .needs_token()
        .always()
}

/// What it needs is known with the operation: a stop and a decision are never refused for load.
fn of(place: (Method, &'static str), run: crate::routes::Run) -> Route {
    Route::of_surface(Surface::A2a, place, refusal::answer, run).needs_token().always()
}

/// The agent of this name, if it is offered here and the caller may use it.
fn agent(by: &Caller, named: &str) -> Answered<String> {
    let found = by.agents_on(Surface::A2a).find(|(name, _)| *name == named);
    found.map(|(name, _)| name.clone()).ok_or_else(|| Problem::no_such("agent"))
}
