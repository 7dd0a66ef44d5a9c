//! A world for one scenario of a session: a server, an agent, and what must hold at its end.

use std::sync::Arc;

use safepoint::{
    Agent, AgentBuilder, Session, SessionHandle,
    approval::ApprovalMode,
    event::{EventKind, Fact},
    ids::SessionId,
    raw::store::Environment,
    session::{ChatPlanner, SessionBuilder, SessionEvent, SessionExit},
    store::{self, MemoryStore, OwnerProcess, Store},
    tool::{EffectClass, from_fn},
};
use safepoint_models::openai;
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ModelServer,
    store_suite::{Population, Time, outside},
    tool_gate::ToolGate,
    wait::InTime as _,
};
use serde_json::json;

pub(crate) async fn server(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    ModelServer::start(Script::of(replies)).await.unwrap()
}

pub(crate) fn agent(server: &ModelServer) -> AgentBuilder {
    Agent::builder(openai::model("m").base_url(server.url())).approvals(ApprovalMode::Auto)
}

/// A store whose owners are processes that can be said to be dead.
pub(crate) fn mortals() -> (Arc<dyn Store>, Population) {
    let lives = Population::default();
    let clock = Environment::default().clock;
    let store = MemoryStore::new(Environment { clock, ..outside(&Time::default(), &lives) });
    (Arc::new(store), lives)
}

/// Sessions whose one payment waits at this gate: what was said first is answered by it, and then "done".
pub(crate) fn payer(gate: &ToolGate) -> SessionBuilder<String> {
    let gate = gate.clone();
    let pay = from_fn("pay", "pays, once it is let", move |_cx, (): ()| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok("paid")
        }
    });
    let pay = pay.with(|spec| spec.effect(EffectClass::Unsafe));
    let model = ScriptedModel::new(Script::of([Reply::call("pay", json!({})), Reply::text("done")]));
    chat(Agent::builder(model).approvals(ApprovalMode::Auto).tool(pay).build())
}

/// The session "s", opened by this process.
pub(crate) async fn open_here(
    chat: SessionBuilder<String>,
    store: &Arc<dyn Store>,
) -> Result<Session<String>, store::Error> {
    chat.open(Arc::clone(store), SessionId::from("s"), OwnerProcess::here()).await
}

pub(crate) fn chat(agent: Agent) -> SessionBuilder<String> {
    Session::builder(ChatPlanner::new(agent))
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
pub(crate) fn texts(exit: &Arc<SessionExit<String>>) -> Vec<String> {
    exit.unhandled().iter().map(|(_, text)| text.clone()).collect()
}
