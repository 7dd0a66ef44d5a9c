//! A world for one scenario: server, agent, ledger, and what must hold at its end (SPEC §13).

use std::sync::{Arc, Mutex};

use safepoint::{
    Agent, AgentBuilder, Outcome, RunHandle,
    approval::Approvals,
    event::{EventKind, Fact},
    ids::CallId,
    receipt::{CallStatus, Effect, Ending, Receipt},
    tool::{self, EffectClass, FnTool},
};
use safepoint_models::{anthropic, openai};
use safepoint_testkit::{
    oracle,
    script::{Reply, Script},
    server::{ModelServer, Wire},
};
use tokio::sync::Semaphore;

pub(crate) const WIRES: [Wire; 2] = [Wire::OpenAi, Wire::Anthropic];

pub(crate) async fn server(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    ModelServer::start(Script::of(replies)).await.unwrap()
}

pub(crate) fn builder(server: &ModelServer, wire: Wire) -> AgentBuilder {
    let patience = safepoint_models::Patience::default();
    match wire {
        Wire::OpenAi => Agent::builder(openai::model("m").base_url(server.url()).patience(patience)),
        Wire::Anthropic => Agent::builder(anthropic::model("m").base_url(server.url()).patience(patience)),
    }
    .approvals(Approvals::Auto)
}

/// What tools wrote down themselves: at their entry and at their commit (I4).
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(CallId, &'static str)>>>);

impl Ledger {
    pub(crate) fn note(&self, call: &CallId, what: &'static str) {
        self.0.lock().unwrap().push((call.clone(), what));
    }
    pub(crate) fn has(&self, call: &CallId, what: &str) -> bool {
        self.0.lock().unwrap().iter().any(|(id, noted)| id == call && *noted == what)
    }
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|(_, noted)| *noted == what).count()
    }
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
    let outcome = handle.done().await;
    let quiet = handle.quiet().await;
    let receipt = Arc::clone(quiet.receipt());
    one_settled(handle, &outcome).await;
    for request in server.requests() {
        let judged = match request.wire {
            Wire::OpenAi => oracle::openai(&request.body),
            Wire::Anthropic => oracle::anthropic(&request.body),
        };
        assert_eq!(judged, Ok(()), "I3: {}", request.body);
    }
    for call in &receipt.calls {
        let id = &call.call_id;
        let told = (call.started_at.is_some(), call.status == CallStatus::Completed);
        if ledger.count("entry") > 0 {
            assert!(told.0 || !ledger.has(id, "entry"), "I4: {id} began and is reported not to have");
            assert!(
                !told.1 || ledger.has(id, "commit"),
                "I4: {id} is reported completed and never committed"
            );
            if ledger.has(id, "commit") {
                assert_ne!((call.effect, call.status), (Effect::None, CallStatus::NotStarted), "I4: {id}");
            }
        }
    }
    assert!(receipt.quiet_at.is_some(), "I5: {:?}", receipt.survivors);
    assert!(handle.alive().is_empty(), "I5");
    if outcome.ending() == Ending::Stopped {
        assert!(outcome.answer().is_none() && receipt.stop.is_some(), "I6");
    }
    (outcome, receipt)
}

/// I1, I2: one `settled`, the last event, equal to the outcome.
async fn one_settled(handle: &RunHandle, outcome: &Outcome) {
    let mut events = handle.events();
    let mut settled = Vec::new();
    let mut last = 0;
    let mut seq = 0;
    while let Some(event) = events.next().await {
        if let EventKind::Missed { count } = event.kind {
            seq += count;
            continue;
        }
        assert_eq!(event.seq, seq, "a gap in the stream");
        seq += 1;
        last = event.seq;
        if let EventKind::Fact(fact) = &event.kind
            && let Fact::Settled { receipt, .. } = &**fact
        {
            settled.push((event.seq, receipt.clone()));
        }
    }
    assert_eq!(settled.len(), 1, "I1");
    assert_eq!(settled[0].0, last, "I2");
    assert_eq!(settled[0].1.ending, outcome.ending(), "I1");
}

/// The next message on the history is accepted by a strict server.
pub(crate) async fn goes_on(agent: &Agent, outcome: &Outcome) {
    let next = agent.run_on(outcome.history().clone(), "and now?").await;
    assert_eq!(next.ending(), Ending::Done, "{next:?}");
}
