//! A conversation in a browser: tokens as they come, a stop button, and a payment that a person approves there.

use std::{convert::Infallible, error::Error};

use axum::{
    Router, extract, extract::State, http::HeaderMap, http::StatusCode, response, response::sse, routing,
};
use futures_util::{Stream, StreamExt as _};
use safepoint::{
    Agent, Session, SessionHandle, StopRequest, approval, event::EventEncoder, ids::ApprovalId, secs,
    session::ChatPlanner, tool,
};
use safepoint_models::openai;

type Chat = State<SessionHandle<String>>;
type Refused = (StatusCode, String);

/// Pays a supplier.
#[tool(effect = "unsafe", approval = "required")]
async fn pay(supplier: String, cents: u64) -> String {
    format!("paid {cents} cents to {supplier}")
}

async fn say(State(session): Chat, text: String) -> Result<String, Refused> {
    session.push(text).map(|ticket| ticket.id().to_string()).map_err(refused)
}

async fn stop(State(session): Chat) {
    session.stop_turn(None, StopRequest::graceful(secs(3)));
}

async fn decide(State(session): Chat, id: extract::Path<String>, body: String) -> Result<(), Refused> {
    let decision: approval::Decision = serde_json::from_str(&body).map_err(refused)?;
    session.decide(&ApprovalId::from(id.0), decision.by("the browser")).await.map_err(refused)
}

fn refused(error: impl ToString) -> Refused {
    (StatusCode::CONFLICT, error.to_string())
}

async fn events(chat: Chat, sent: HeaderMap) -> sse::Sse<impl Stream<Item = Result<sse::Event, Infallible>>> {
    let last = sent.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let lines = EventEncoder::lines_of_session(&chat, last);
    let lines = lines.map(|line| Ok(sse::Event::default().id(line.id()).data(line.to_string())));
    sse::Sse::new(lines).keep_alive(sse::KeepAlive::default())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let asks = approval::ApprovalMode::Ask(None, approval::WithoutApprover::Wait);
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(pay).approvals(asks).build();
    let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start(); // ends when it is dropped
    let page = response::Html(include_str!("axum_chat.html"));
    let routes = Router::new().route("/", routing::get(page)).route("/events", routing::get(events));
    let routes = routes.route("/say", routing::post(say)).route("/stop", routing::post(stop));
    let routes = routes.route("/decide/{id}", routing::post(decide)).with_state(session.handle());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}
