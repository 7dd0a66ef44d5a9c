//! A web server: each request is a run, and its events go to the browser as they happen, as server-sent events.
//!
//! A client that disconnects stops its run, because the response's stream owns the run and is dropped with it. To let runs
//! continue instead, `detach` the run, keep its handle under its id, and send the events of the handle: see `docs/guides/web.md`.

use std::{convert::Infallible, error::Error};

use axum::{
    Router,
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
    routing::post,
};
use futures_util::{Stream, StreamExt as _};
use safepoint::{
    Agent, RunHandle,
    event::{EventEncoder, RunItem},
};
use safepoint_models::openai;

async fn ask(
    State(agent): State<Agent>,
    question: String,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let run = agent.run(question);
    tokio::spawn(report(run.handle()));
    let mut encoder = EventEncoder::of_run(&run.handle());
    let lines = run.into_stream().filter_map(move |item| {
        let line = match item {
            RunItem::Event(event) => encoder.event(&event),
            RunItem::Outcome(outcome) => Some(encoder.outcome(&outcome, outcome.receipt())),
        };
        async move { line.map(|line| Ok(Event::default().event(line.kind()).data(line.to_string()))) }
    });
    Sse::new(lines).keep_alive(KeepAlive::default())
}

/// Says how a run ended, whether or not a reader is left.
async fn report(run: RunHandle) {
    let outcome = run.done().await;
    let why = run.stop_requested().map(|reason| format!("{}: {}", reason.code(), reason.text()));
    println!("{:?} {}", outcome.ending(), why.unwrap_or_default());
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/ask", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/ask", post(ask)).with_state(agent)).await?;
    Ok(())
}
