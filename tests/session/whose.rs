//! Whose stop it was: what is asked through the store, or by a tool, stands in the receipt as it was asked.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Reason, Receipt, Session, StopRequest, ToolContext,
    approval::ApprovalMode,
    ids::SessionId,
    raw::{StoredStop, store_stop},
    receipt::ReasonReport,
    session::{ChatPlanner, SessionEvent, SessionStop},
    stop::{Actor, Code},
    store::{MemoryStore, OwnerProcess, Store},
    tool::from_fn,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    tool_gate::ToolGate,
};
use serde_json::json;

use super::world::seen;

/// No wait of these tests is longer.
const BOUND: Duration = Duration::from_secs(60);

async fn receipt(session: &Session<String>) -> Arc<Receipt> {
    let ended = seen(session, |event| matches!(event, SessionEvent::TurnEnded { .. }));
    match tokio::time::timeout(BOUND, ended).await.unwrap() {
        SessionEvent::TurnEnded { receipt, .. } => receipt,
        other => panic!("{other:?}"),
    }
}

async fn open(store: &Arc<dyn Store>, agent: Agent) -> Session<String> {
    Session::builder(ChatPlanner::new(agent))
        .open(Arc::clone(store), SessionId::from("s"), OwnerProcess::here())
        .await
        .unwrap()
}

fn pays() -> ScriptedModel {
    ScriptedModel::new(Script::of([Reply::call("pay", json!({})), Reply::text("done")]))
}

/// S1.10, S7.5: a stop of the turn, or of the session, asked through the store: the receipt says who asked,
/// by name, why, when, and what it began with.
#[tokio::test]
async fn a_stop_through_the_store_says_who_asked() {
    let root = Reason::user("the alarm").with_actor(Actor::Named("bob".into()));
    let asked = Reason::new(Code::SHUTDOWN)
        .with_actor(Actor::Remote("alice".into()))
        .with_text("deploy")
        .caused_by(&root);
    let intents = [
        StoredStop::Turn(None, StopRequest::now().with_reason(asked.clone())),
        StoredStop::Session(SessionStop::now().with_reason(asked.clone())),
    ];
    for intent in intents {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let gate = ToolGate::shut();
        let waits = gate.clone();
        let pay = from_fn("pay", "pays, once it is let", move |_cx, (): ()| {
            let gate = waits.clone();
            async move {
                gate.pass().await;
                Ok("paid")
            }
        });
        let session =
            open(&store, Agent::builder(pays()).approvals(ApprovalMode::Auto).tool(pay).build()).await;
        drop(session.push("go".to_owned()).unwrap());
        gate.came(1).await;
        store_stop(&*store, &SessionId::from("s"), &intent).await.unwrap();
        session.check_store();
        let receipt = receipt(&session).await;
        let stop = receipt.stop.as_ref().unwrap();
        assert_eq!(stop.reason, ReasonReport::from(&asked));
        assert_eq!(
            (stop.reason.actor.as_str(), stop.reason.root().actor.as_str()),
            ("remote alice", "person bob")
        );
        assert_eq!(stop.requests[0].reason, stop.reason);
        let text = receipt.to_string();
        assert!(
            text.contains("shutdown (remote alice): deploy; caused by user (person bob): the alarm"),
            "{text}"
        );
    }
}

/// S1.10, S2.14: a tool that asks for a stop and says no reason has asked itself, and not the program.
#[tokio::test]
async fn a_stop_that_a_tool_asks_without_a_reason_is_the_tools() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let pay = from_fn("pay", "pays, and has the run stop", |cx: ToolContext, (): ()| async move {
        cx.stop_run(StopRequest::graceful_unbounded());
        Ok("paid")
    });
    let session = open(&store, Agent::builder(pays()).approvals(ApprovalMode::Auto).tool(pay).build()).await;
    drop(session.push("go".to_owned()).unwrap());
    let receipt = receipt(&session).await;
    let reason = &receipt.stop.as_ref().unwrap().reason;
    assert_eq!((reason.code.as_str(), reason.actor.as_str()), ("tool", "tool pay"));
}
