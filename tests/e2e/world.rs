//! A world for one scenario: server, agent, ledger, and what must hold at its end (SPEC §13).

use std::sync::Arc;

use safepoint::{
    Agent, AgentBuilder, Outcome, Receipt, RunHandle,
    approval::ApprovalMode,
    event::{EventKind, Fact},
    ids::CallId,
    receipt::Ending,
    tool::{self, EffectClass, FnTool},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    invariants::Invariants,
    ledger::{self, Mark},
    script::{Reply, Script},
    server::{ModelServer, ServedWire},
};
use tokio::sync::Semaphore;

pub(crate) const WIRES: [ServedWire; 4] =
    [ServedWire::OpenAi, ServedWire::Anthropic, ServedWire::Responses, ServedWire::Gemini];

pub(crate) async fn server(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    ModelServer::start(Script::of(replies)).await.unwrap()
}

pub(crate) fn builder(server: &ModelServer, wire: ServedWire) -> AgentBuilder {
    let patience = safepoint_models::Patience::default();
    match wire {
        ServedWire::OpenAi => Agent::builder(openai::model("m").base_url(server.url()).patience(patience)),
        ServedWire::Anthropic => {
            Agent::builder(anthropic::model("m").base_url(server.url()).patience(patience))
        }
        ServedWire::Responses => {
            Agent::builder(responses::model("m").base_url(server.url()).patience(patience))
        }
        ServedWire::Gemini => Agent::builder(gemini::model("m").base_url(server.url()).patience(patience)),
    }
    .approvals(ApprovalMode::Auto)
}

/// What tools wrote down themselves: at their entry and at their commit (I4).
#[derive(Clone, Default)]
pub(crate) struct Ledger(ledger::Ledger);

impl Ledger {
    pub(crate) fn note(&self, call: &CallId, what: &'static str) {
        self.0.write(call, mark(what));
    }
    pub(crate) fn book(&self) -> &ledger::Ledger {
        &self.0
    }
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.count(mark(what))
    }
}

fn mark(what: &str) -> Mark {
    if what == "entry" { Mark::Entry } else { Mark::Commit }
}

/// A tool that enters the ledger, waits for a gate, and commits to it.
pub(crate) fn gated(name: &str, effect: EffectClass, ledger: &Ledger, gate: &Arc<Semaphore>) -> FnTool {
    let (ledger, gate) = (ledger.clone(), Arc::clone(gate));
    tool::from_fn(name, "waits for its gate", move |cx, (): ()| {
        let (ledger, gate) = (ledger.clone(), Arc::clone(&gate));
        async move {
            ledger.note(cx.call_id(), "entry");
            gate.acquire().await?.forget();
            ledger.note(cx.call_id(), "commit");
            Ok("paid")
        }
    })
    .with(|spec| spec.effect(effect))
}

/// Waits until `count` calls of the run have started, and names them.
pub(crate) async fn started(handle: &RunHandle, count: usize) -> Vec<CallId> {
    let mut calls = Vec::new();
    let mut events = handle.events();
    while calls.len() < count {
        let event = events.next().await.expect("the run ended before its calls started");
        if let EventKind::Fact(fact) = &event.kind
            && let Fact::CallStarted { call_id, .. } = &**fact
        {
            calls.push(call_id.clone());
        }
    }
    calls
}

/// Waits for the first streamed text.
pub(crate) async fn first_text(handle: &RunHandle) {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::Text(_)) {
            return;
        }
    }
    panic!("the run ended before any text");
}

/// What must hold after every scenario, whatever it was about.
pub(crate) async fn close(
    server: &ModelServer,
    handle: &RunHandle,
    ledger: &Ledger,
) -> (Outcome, Arc<Receipt>) {
    let closed = Invariants::of(handle).server(server).ledger(&ledger.0).check().await;
    let closed = closed.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(closed.receipt.quiet_at.is_some(), "I5: {:?}", closed.receipt.survivors);
    (closed.outcome, closed.receipt)
}

/// The next message on the history is accepted by a strict server.
pub(crate) async fn continues(agent: &Agent, outcome: &Outcome) {
    let next = agent.run_on(outcome.history().clone(), "and now?").await;
    assert_eq!(next.ending(), Ending::Done, "{next:?}");
}
