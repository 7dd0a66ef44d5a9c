//! What a run in the background asks: answered beside the turns, and taken back with the process that it
//! lived in.

use std::sync::Arc;

use safepoint::{
    Agent, Session, ToolContext,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    ids::{ApprovalId, SessionId},
    raw::store::{ApprovalState, Liveness},
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    store::Store,
    tool::{EffectClass, FnTool, from_fn},
};
use safepoint_testkit::{
    ledger::{Ledger, Mark},
    script::{Reply, Script},
    server::ModelServer,
    store_suite::{Population, owner},
    wait,
};
use serde_json::json;

use super::world::{agent as builder, mortals, seen};

/// A session whose first turn begins a run in the background, which asks before it pays.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    server: ModelServer,
    ledger: Ledger,
}

impl World {
    async fn new() -> Self {
        let (store, lives) = mortals();
        let script = Script::of([
            Reply::call("helper", json!({"task": "half"})).when("go", 0),
            Reply::text("begun").when("go", 1),
            Reply::call("pay", json!({})).when("half", 0),
            Reply::text("paid").when("half", 1),
            Reply::call("send", json!({})).when("then", 0),
            Reply::text("sent").when("then", 1),
        ]);
        let server = ModelServer::start(script).await.unwrap();
        Self { store, lives, server, ledger: Ledger::new() }
    }

    fn tool(&self, name: &str) -> FnTool {
        let ledger = self.ledger.clone();
        let tool = from_fn(name, "asks first", move |cx: ToolContext, (): ()| {
            let ledger = ledger.clone();
            async move {
                ledger.enter(cx.call_id());
                ledger.commit(cx.call_id());
                Ok("ok")
            }
        });
        tool.with(|spec| spec.effect(EffectClass::Unsafe).approval(ToolApproval::Required))
    }

    fn agent(&self) -> Agent {
        let asks = || builder(&self.server).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend));
        let inside = asks().tool(self.tool("pay")).build();
        asks().tool(self.tool("send")).child(inside.as_subagent("helper", "pays").background()).build()
    }

    async fn open(&self, pid: u32) -> Session<String> {
        let builder = Session::builder(ChatPlanner::new(self.agent()));
        builder.open(Arc::clone(&self.store), SessionId::from("s"), owner(pid)).await.unwrap()
    }

    /// The open question about this tool, once it is asked.
    async fn question(&self, tool: &str) -> ApprovalId {
        let is_it =
            |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap()["tool"] == tool;
        wait::asked(format_args!("{tool} is asked about"), async || {
            let rows = self.store.approvals(&SessionId::from("s")).await.unwrap();
            let open =
                rows.into_iter().find(|row| row.state == ApprovalState::Open && is_it(&row.asked.bytes));
            open.map(|row| row.asked.id)
        })
        .await
    }

    async fn paid(&self, times: usize) {
        wait::so("it is paid", || self.ledger.count(Mark::Commit) >= times).await;
    }
}

/// S9.1, S8.1, S8.2: the answer reaches the run although its turn ended long before.
#[tokio::test]
async fn an_answer_reaches_a_run_in_the_background() {
    let world = World::new().await;
    let session = world.open(1).await;
    assert!(matches!(session.push("go".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
    let asked = world.question("pay").await;
    assert_eq!(session.decide(&asked, Decision::Approve).await, Ok(()));
    world.paid(1).await;
}

/// S8.5, S9.1: a turn that waits for its own answer is not touched by the answer to another question.
#[tokio::test]
async fn an_answer_to_the_background_leaves_a_suspended_turn_alone() {
    let world = World::new().await;
    let session = world.open(1).await;
    assert!(matches!(session.push("go".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
    let behind = world.question("pay").await;
    let then = session.push("then".to_owned()).unwrap();
    assert!(matches!(then.outcome().await, ItemOutcome::Suspended(_)));
    assert_eq!(session.decide(&behind, Decision::Approve).await, Ok(()));
    world.paid(1).await;
    let own = world.question("send").await;
    assert_eq!(session.decide(&own, Decision::Approve).await, Ok(()));
    world.paid(2).await;
    let ended = seen(&session, |event| {
        matches!(event, SessionEvent::TurnEnded { turn, fate, .. }
            if turn.number() == 2 && !matches!(fate, ItemOutcome::Suspended(_)))
    })
    .await;
    assert!(matches!(ended, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }), "{ended:?}");
}

/// S8.3, S7.2, S9.1: the process dies, and its run in the background with it: the next owner takes the
/// question back, an answer that came in between starts nothing and fails nothing, and a later one is
/// refused.
#[tokio::test]
async fn what_died_in_the_background_asks_nothing_any_more() {
    for answered in [Answered::No, Answered::InBetween] {
        let world = World::new().await;
        let first = world.open(1).await;
        assert!(matches!(first.push("go".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
        let behind = world.question("pay").await;
        let then = first.push("then".to_owned()).unwrap();
        assert!(matches!(then.outcome().await, ItemOutcome::Suspended(_)));
        world.lives.say(1, Liveness::Dead);
        if answered == Answered::InBetween {
            let row = world.store.approval(&SessionId::from("s"), &behind).await.unwrap().unwrap();
            let bytes = serde_json::to_vec(&Decision::Approve).unwrap();
            let yes = safepoint::raw::store::NewDecision {
                id: behind.clone(),
                digest: row.asked.digest,
                principal: "ann".into(),
                bytes,
            };
            world.store.decide(&SessionId::from("s"), yes).await.unwrap();
        }
        let next = world.open(2).await;
        assert!(next.decide(&behind, Decision::Approve).await.is_err(), "{answered:?}");
        let own = world.question("send").await;
        assert_eq!(next.decide(&own, Decision::Approve).await, Ok(()));
        let ended = seen(&next, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
        assert!(
            matches!(ended, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }),
            "{ended:?}"
        );
        assert_eq!(world.ledger.count(Mark::Entry), 1, "{answered:?}: sent, and not paid");
        drop(first);
    }
}

/// Whether an answer came while no process lived. Exhaustive: one did, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    No,
    InBetween,
}
