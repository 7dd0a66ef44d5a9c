//! A world for one scenario of a session: a server, an agent, and what must hold at its end.

use std::sync::Arc;

use safepoint::{
    Agent, AgentBuilder, Session,
    approval::Approvals,
    event::{EventKind, Fact},
    session::{Chat, Exit, SessionBuilder, SessionEvent, SessionHandle},
};
use safepoint_models::openai;
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
    wait::InTime as _,
};

pub(crate) async fn server(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    ModelServer::start(Script::of(replies)).await.unwrap()
}

pub(crate) fn agent(server: &ModelServer) -> AgentBuilder {
    Agent::builder(openai::model("m").base_url(server.url())).approvals(Approvals::Auto)
}

pub(crate) fn chat(agent: Agent) -> SessionBuilder<String> {
    Session::builder(Chat::new(agent))
}

/// Waits for the first event that `wanted` accepts, from the first event on.
pub(crate) async fn seen(
    session: &SessionHandle<String>,
    wanted: impl Fn(&SessionEvent) -> bool,
) -> SessionEvent {
    let mut events = session.events();
    while let Some(event) = events.next().in_time("an event of the session that is waited for").await {
        if wanted(&event.kind) {
            return event.kind;
        }
    }
    panic!("the session ended before what was waited for");
}

/// Waits until the model of this turn is being called for this round.
pub(crate) async fn round(session: &SessionHandle<String>, turn: u64, wanted: u32) {
    seen(session, |event| match event {
        SessionEvent::Run { turn: at, event } if at.number() == turn => {
            matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::ModelStarted { round } if *round == wanted))
        }
        _ => false,
    })
    .await;
}

/// The texts of items, in their order.
pub(crate) fn texts(exit: &Arc<Exit<String>>) -> Vec<String> {
    exit.unhandled().iter().map(|(_, text)| text.clone()).collect()
}
