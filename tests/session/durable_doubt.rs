//! Calls that began and whose end is unknown: reported, or a person decides; the record never says that they
//! did not begin.

use std::{cell::Cell, sync::Arc};

use safepoint::{
    Agent, Session, StopRequest, ToolContext,
    approval::{ApprovalKind, ApprovalMode, ApprovalRequest, Decision, OnUnknownEffect, WithoutApprover},
    ids::SessionId,
    raw::store::{ApprovalState, Liveness},
    receipt::{CallStatus, Ending, SideEffect},
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    store::{OwnerProcess, Store},
    tool::{EffectClass, from_fn},
};
use safepoint_testkit::{
    ledger::{Ledger, Mark},
    script::Reply,
    server::ModelServer,
    store_suite::Population,
    tool_gate::ToolGate,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{agent, mortals, seen, server};

/// A store, a payment that waits for a gate, and processes that can be said to be dead.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    server: ModelServer,
    ledger: Ledger,
    entered: Arc<Semaphore>,
    gate: ToolGate,
}

impl World {
    async fn new() -> Self {
        let (store, lives) = mortals();
        let server = server([Reply::call("pay", json!({"cents": 5})), Reply::text("done")]).await;
        let (entered, gate) = (Arc::new(Semaphore::new(0)), ToolGate::default());
        Self { store, lives, server, ledger: Ledger::new(), entered, gate }
    }

    fn agent(&self, on_unknown: OnUnknownEffect, class: EffectClass) -> Agent {
        let (ledger, entered, gate) = (self.ledger.clone(), Arc::clone(&self.entered), self.gate.clone());
        let pay = from_fn("pay", "pays", move |cx: ToolContext, _: serde_json::Value| {
            let (ledger, entered, gate) = (ledger.clone(), Arc::clone(&entered), gate.clone());
            async move {
                ledger.enter(cx.call_id());
                entered.add_permits(1);
                gate.pass().await;
                ledger.commit(cx.call_id());
                Ok("paid")
            }
        });
        agent(&self.server)
            .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
            .on_unknown(on_unknown)
            .tool(pay.with(|spec| spec.effect(class)))
            .build()
    }

    async fn open(&self, pid: u32, agent: Agent) -> Session<String> {
        let owner = OwnerProcess { pid, ..OwnerProcess::here() };
        let builder = Session::builder(ChatPlanner::new(agent));
        builder.open(Arc::clone(&self.store), SessionId::from("s"), owner).await.unwrap()
    }

    /// A process that dies in the payment.
    async fn dies_in_the_payment(&self, agent: Agent) -> Session<String> {
        let first = self.open(1, agent).await;
        drop(first.push("pay".to_owned()).unwrap());
        self.entered.acquire().await.unwrap().forget();
        self.lives.say(1, Liveness::Dead);
        first
    }

    async fn question(&self) -> ApprovalRequest {
        let rows = self.store.approvals(&SessionId::from("s")).await.unwrap();
        let open: Vec<_> = rows.iter().filter(|row| row.state == ApprovalState::Open).collect();
        assert_eq!(open.len(), 1);
        serde_json::from_slice(&open[0].asked.bytes).unwrap()
    }

    /// The last tool result in the model's last request.
    fn last_result(&self) -> String {
        let requests = self.server.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        messages.iter().rev().find(|message| message["role"] == "tool").unwrap()["content"].to_string()
    }
}

async fn ended(session: &Session<String>, wanted: impl Fn(ItemOutcome) -> bool) {
    seen(session, |event| matches!(event, SessionEvent::TurnEnded { fate, .. } if wanted(*fate))).await;
}

fn suspended(fate: ItemOutcome) -> bool {
    matches!(fate, ItemOutcome::Suspended(_))
}

fn completed(fate: ItemOutcome) -> bool {
    matches!(fate, ItemOutcome::Completed(_))
}

/// What a person says, how often the payment was entered and done then, and the model's last tool result.
async fn comes_to(decision: Decision) -> (usize, usize, String) {
    let world = World::new().await;
    let ask = || world.agent(OnUnknownEffect::Ask, EffectClass::Unsafe);
    let _dead = world.dies_in_the_payment(ask()).await;
    let next = world.open(2, ask()).await;
    assert!(next.resume().await);
    ended(&next, suspended).await;
    let asked = world.question().await;
    assert_eq!((asked.question, &asked.args), (ApprovalKind::AfterUnknownEnd, &json!({"cents": 5})));
    assert_eq!(world.server.requests().len(), 1, "nothing continues before a decision");
    world.gate.open_for_all();
    next.decide(&asked.id, decision).await.unwrap();
    ended(&next, completed).await;
    let entries = world.ledger.count(Mark::Entry);
    (entries, world.server.requests().len(), world.last_result())
}

/// S7.3, S8.1: an agent may have a person asked whether a call that may have happened is to be run again.
#[tokio::test]
async fn a_person_may_have_it_tried_again() {
    let (entries, requests, result) = comes_to(Decision::Approve).await;
    assert_eq!((entries, requests), (2, 2));
    assert!(result.contains("paid"), "{result}");
}

/// S7.3, S8.2: or say that it is done, and with what result.
#[tokio::test]
async fn a_person_may_say_that_it_is_done() {
    let (entries, requests, result) = comes_to(Decision::Respond { result: "receipt 7".into() }).await;
    assert_eq!((entries, requests), (1, 2));
    assert!(result.contains("receipt 7"), "{result}");
}

/// S7.3, S3.8: or give it up: then the model learns that its effect is unknown, and not that nothing was
/// done.
#[tokio::test]
async fn a_person_may_give_it_up() {
    let (entries, requests, result) = comes_to(Decision::Deny { message: "leave it".into() }).await;
    assert_eq!((entries, requests), (1, 2));
    assert!(result.contains("leave it") && result.contains("effects are unknown"), "{result}");
    assert!(!result.contains("Nothing was done"), "{result}");
}

/// S7.3, S8.3, S5.2: a stop while that question is open takes it back, and the call is not said not to have
/// begun; an explicit resume asks again under a new id; a new turn says that its effect is unknown.
#[tokio::test]
async fn a_stop_does_not_make_it_not_started() {
    let world = World::new().await;
    let ask = || world.agent(OnUnknownEffect::Ask, EffectClass::Unsafe);
    let _dead = world.dies_in_the_payment(ask()).await;
    let next = world.open(2, ask()).await;
    assert!(next.resume().await);
    ended(&next, suspended).await;
    let asked = world.question().await;
    drop(next.stop_turn(None, StopRequest::now()));
    ended(&next, |fate| matches!(fate, ItemOutcome::Interrupted(_))).await;
    assert!(next.resume().await);
    let suspensions = Cell::new(0);
    seen(&next, |event| {
        let is_one = matches!(event, SessionEvent::TurnEnded { fate, .. } if suspended(*fate));
        suspensions.set(suspensions.get() + u32::from(is_one));
        suspensions.get() == 2
    })
    .await;
    assert_ne!(world.question().await.id, asked.id);
    drop(next.stop_turn(None, StopRequest::now()));
    let newer = next.push("what came of it?".to_owned()).unwrap();
    assert!(completed(newer.outcome().await));
    let result = world.last_result();
    assert!(result.contains("effects are unknown") && !result.contains("not started"), "{result}");
    assert_eq!(world.ledger.count(Mark::Entry), 1);
}

/// S7.3, S5.2, S3.8 / T10: a stop that comes before a call in doubt is looked at again closes it as unknown,
/// never as not started; after that, too, a keyed one runs again and an unsafe one does not.
#[tokio::test]
async fn a_stop_before_it_is_looked_at_does_not_make_it_new() {
    for (class, ending, entries) in
        [(EffectClass::Keyed, Ending::Done, 2), (EffectClass::Unsafe, Ending::Suspended, 1)]
    {
        let world = World::new().await;
        let agent = world.agent(OnUnknownEffect::Ask, class);
        let run = agent.run("pay").detach();
        world.entered.acquire().await.unwrap().forget();
        run.stop(StopRequest::now());
        let first = run.done().await;
        let again = agent.resume(&first);
        again.handle().stop(StopRequest::now());
        let second = again.await;
        let call = &second.receipt().calls[0];
        assert_eq!((call.status, call.effect), (CallStatus::Stopped, SideEffect::Unknown), "{class:?}");
        world.gate.open_for_all();
        let third = agent.resume(&second).await;
        assert_eq!((third.ending(), world.ledger.count(Mark::Entry)), (ending, entries), "{class:?}");
    }
}

/// S7.3, S8.2: where every call that asks may run, one in doubt may not: no person has checked whether it
/// happened.
#[tokio::test]
async fn no_doubt_is_approved_by_default() {
    let world = World::new().await;
    let _dead = world.dies_in_the_payment(world.agent(OnUnknownEffect::Ask, EffectClass::Unsafe)).await;
    let automatic =
        safepoint::Agent::builder(safepoint_models::openai::model("m").base_url(world.server.url()))
            .approvals(ApprovalMode::Auto)
            .on_unknown(OnUnknownEffect::Ask)
            .tool(from_fn("pay", "pays", |_: ToolContext, _: serde_json::Value| async { Ok("paid twice") }))
            .build();
    let next = world.open(2, automatic).await;
    assert!(next.resume().await);
    ended(&next, completed).await;
    assert!(world.last_result().contains("effects are unknown"), "{}", world.last_result());
}
