//! Questions that stay open: neither a crash, wherever it comes, nor a turn that fails takes one back.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, AgentBuilder, Session,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    hook::{HookResult, Hooks},
    ids::SessionId,
    raw::{
        self,
        store::{ApprovalRow, ApprovalState, DecisionResult},
    },
    receipt::CallReport,
    session::{ChatPlanner, ItemOutcome, SessionEvent, SessionStop},
    store::{self, MemoryStore, OwnerProcess, Store},
    tool::{EffectClass, FnTool, from_fn},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::{Reply, Script},
    scripted::ScriptedModel,
    tool_gate::ToolGate,
    wait,
};
use serde_json::{Value, json};

use super::world::seen;

/// No wait of these tests is longer.
const BOUND: Duration = Duration::from_secs(60);

fn tool(name: &str, gate: &ToolGate) -> FnTool {
    let gate = gate.clone();
    from_fn(name, "does it, once it is let", move |_cx, (): ()| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok("ok")
        }
    })
}

/// It calls a run that asks about `charge`, asks itself about `bill`, and `look`s until the gate is open.
fn agent(gate: &ToolGate) -> Agent {
    let model = ScriptedModel::new(Script::of([
        Reply::call("helper", json!({"task": "half"}))
            .and_call("bill", json!({}))
            .and_call("look", json!({}))
            .when("go", 0),
        Reply::text("done").when("go", 3),
        Reply::call("charge", json!({})).when("half", 0),
        Reply::text("half done").when("half", 1),
    ]));
    let asks = |name: &str| tool(name, &ToolGate::open()).with(|spec| spec.approval(ToolApproval::Required));
    let builder =
        || Agent::builder(model.clone()).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend));
    let inside = builder().tool(asks("charge")).build();
    let look = tool("look", gate).with(|spec| spec.effect(EffectClass::ReadOnly));
    builder().child(inside.as_subagent("helper", "does the half")).tool(asks("bill")).tool(look).build()
}

/// Of a process that is dead by the time anybody asks.
async fn open(store: Arc<dyn Store>, gate: &ToolGate) -> Result<Session<String>, store::Error> {
    let owner = OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() };
    Session::builder(ChatPlanner::new(agent(gate))).open(store, SessionId::from("s"), owner).await
}

async fn rows(store: &Arc<dyn Store>) -> Vec<ApprovalRow> {
    store.approvals(&SessionId::from("s")).await.unwrap()
}

/// The facts of the journal.
async fn facts(store: &Arc<dyn Store>) -> Vec<Value> {
    let page = store.read(&SessionId::from("s"), 0, 100_000).await.unwrap();
    let line = |entry: &raw::store::JournalEntry| {
        serde_json::from_slice::<Value>(&entry.record.clone().unwrap().bytes).unwrap()
    };
    page.entries.iter().map(|entry| line(entry)["fact"].clone()).collect()
}

fn count(facts: &[Value], kind: &str) -> usize {
    facts.iter().filter(|fact| fact["fact"] == kind).count()
}

/// A life that asks both questions, and dies while a call of the root runs.
async fn asked_and_died(store: &Arc<dyn Store>) {
    let (faulty, gate) =
        (Arc::new(FaultStore::unarmed(Arc::clone(store), OperationFault::GoneBefore)), ToolGate::shut());
    let first = open(Arc::clone(&faulty) as Arc<dyn Store>, &gate).await.unwrap();
    drop(first.push("go".to_owned()).unwrap());
    wait::asked("both questions", || async { rows(store).await.len() == 2 }).await;
    gate.came(1).await;
    faulty.arm();
    first.check_store();
    tokio::time::timeout(BOUND, first.done()).await.unwrap();
}

/// Approves the question of the run inside, while the session has no owner.
async fn say_yes_inside(store: &Arc<dyn Store>) {
    let rows = rows(store).await;
    let inside =
        rows.iter().find(|row| String::from_utf8_lossy(&row.asked.bytes).contains("charge")).unwrap();
    let bytes = serde_json::to_vec(&Decision::Approve).unwrap();
    let (id, digest) = (inside.asked.id.clone(), inside.asked.digest.clone());
    let yes = raw::store::NewDecision { id, digest, principal: "someone".into(), bytes };
    assert_eq!(store.decide(&SessionId::from("s"), yes).await.unwrap(), DecisionResult::Taken);
}

/// A life that takes the turn up and dies before this operation; whether it did.
async fn took_up_and_died(store: &Arc<dyn Store>, at: usize) -> bool {
    let started = count(&facts(store).await, "call_started");
    let faulty = Arc::new(FaultStore::over(Arc::clone(store), at, OperationFault::GoneBefore));
    let Ok(second) = open(Arc::clone(&faulty) as Arc<dyn Store>, &ToolGate::shut()).await else {
        return true;
    };
    second.resume().await;
    // Both calls that ran before run again, or it is dead before that.
    wait::asked("the second life", || async {
        second.check_store();
        second.is_done() || count(&facts(store).await, "call_started") == started + 2
    })
    .await;
    let has_died = second.is_done();
    faulty.arm();
    second.check_store();
    tokio::time::timeout(BOUND, second.done()).await.unwrap();
    has_died
}

/// S7.2, S8.3, S8.4 / T10: a turn waits with its own question and one of a run inside. It dies, is resumed
/// and dies again, at any place. A decision from meanwhile is used, the other question is open under its own
/// name, and none of it is a failure.
#[tokio::test]
async fn a_decision_taken_between_two_deaths_is_used_and_takes_nothing_back() {
    for at in 0.. {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        asked_and_died(&store).await;
        let has_died = took_up_and_died(&store, at).await;
        say_yes_inside(&store).await;
        let third = open(Arc::clone(&store), &ToolGate::open()).await.unwrap();
        third.resume().await;
        let bill = || async {
            let rows = rows(&store).await;
            assert_eq!(rows.len(), 2, "at {at}: asked anew");
            rows.into_iter().find(|row| row.state == ApprovalState::Open).unwrap()
        };
        let fate = |wanted: fn(ItemOutcome) -> bool| {
            seen(&third, move |event| matches!(event, SessionEvent::TurnEnded { fate, .. } if wanted(*fate)))
        };
        tokio::time::timeout(BOUND, fate(|fate| matches!(fate, ItemOutcome::Suspended(_)))).await.unwrap();
        third.decide(&bill().await.asked.id, Decision::Approve).await.unwrap();
        tokio::time::timeout(BOUND, fate(|fate| matches!(fate, ItemOutcome::Completed(_)))).await.unwrap();
        let facts = facts(&store).await;
        assert_eq!(count(&facts, "approval_asked"), 2, "at {at}");
        assert!(!facts.iter().any(|fact| fact["receipt"]["ending"] == "failed"), "at {at}: {facts:?}");
        if !has_died {
            assert!(at > 8, "a life that takes a turn up has more operations than {at}");
            return;
        }
    }
}

/// Panics when `look` has ended.
struct PanicsAfterLook;

impl Hooks for PanicsAfterLook {
    fn after_call(&self, report: &CallReport) -> HookResult<()> {
        assert!(report.name != "look", "a panic was wanted here");
        None
    }
}

/// An agent that asks about `bill`, and `look`s until the gate is open.
fn asking(gate: &ToolGate) -> AgentBuilder {
    let calls = Reply::call("bill", json!({})).and_call("look", json!({}));
    let model = ScriptedModel::new(Script::of([calls.when("go", 0), Reply::text("done").when("go", 2)]));
    let bill = tool("bill", &ToolGate::open()).with(|spec| spec.approval(ToolApproval::Required));
    let look = tool("look", gate).with(|spec| spec.effect(EffectClass::ReadOnly));
    Agent::builder(model).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend)).tool(bill).tool(look)
}

async fn open_with(store: &Arc<dyn Store>, agent: AgentBuilder) -> Session<String> {
    let owner = OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() };
    let chat = Session::builder(ChatPlanner::new(agent.build()));
    chat.open(Arc::clone(store), SessionId::from("s"), owner).await.unwrap()
}

async fn ended_as(session: &Session<String>, wanted: fn(&ItemOutcome) -> bool) {
    let is_it =
        move |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { fate, .. } if wanted(fate));
    drop(seen(session, is_it).await);
}

/// The turn is taken up: the question that is open is the one that was asked, and its answer is used.
async fn continues_with(store: &Arc<dyn Store>, question: ApprovalRow) {
    let next = open_with(store, asking(&ToolGate::open())).await;
    next.resume().await;
    next.decide(&question.asked.id, Decision::Approve).await.unwrap();
    ended_as(&next, |fate| matches!(fate, ItemOutcome::Completed(_))).await;
    let rows = rows(store).await;
    assert_eq!(rows.len(), 1, "asked anew: {rows:?}");
}

/// S8.3: a turn that fails while its own question waits takes nothing back: the next resume answers that
/// question.
#[tokio::test]
async fn a_turn_that_fails_leaves_its_question_open() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let gate = ToolGate::shut();
    let first = open_with(&store, asking(&gate).hooks(PanicsAfterLook)).await;
    drop(first.push("go".to_owned()).unwrap());
    wait::asked("its question", || async { rows(&store).await.len() == 1 }).await;
    gate.open_for_all();
    ended_as(&first, |fate| matches!(fate, ItemOutcome::Failed(_))).await;
    drop(first.stop(SessionStop::now()));
    tokio::time::timeout(BOUND, first.done()).await.unwrap();
    let question = rows(&store).await.remove(0);
    assert_eq!(question.state, ApprovalState::Open);
    continues_with(&store, question).await;
}

/// S3.4, S8.3: a disk that is slow at everything costs time. Within the time of an append the turn asks,
/// suspends and continues. Beyond it the turn fails, since the record is in doubt, and its question stays
/// open.
#[tokio::test(start_paused = true)]
async fn a_slow_disk_takes_no_question_back() {
    for slowness in [4, 6, 12].map(Duration::from_secs) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let slow = Arc::new(FaultStore::unarmed(Arc::clone(&store), OperationFault::Slow(slowness)));
        let slowed: Arc<dyn Store> = Arc::clone(&slow) as Arc<dyn Store>;
        let gate = ToolGate::shut();
        let first = open_with(&slowed, asking(&gate)).await;
        drop(first.push("go".to_owned()).unwrap());
        wait::asked("its question", || async { rows(&store).await.len() == 1 }).await;
        slow.arm();
        gate.open_for_all();
        // An append has five seconds, and two more while the store is asked whether it was written.
        let is_late = slowness > Duration::from_secs(7);
        let wanted: fn(&ItemOutcome) -> bool = match is_late {
            false => |fate| matches!(fate, ItemOutcome::Suspended(_)),
            true => |fate| matches!(fate, ItemOutcome::Failed(_)),
        };
        ended_as(&first, wanted).await;
        drop(first.stop(SessionStop::now()));
        tokio::time::timeout(Duration::from_secs(3600), first.done()).await.unwrap();
        slow.come_back();
        let question = rows(&store).await.remove(0);
        assert_eq!(question.state, ApprovalState::Open, "{slowness:?}");
        continues_with(&store, question).await;
    }
}
