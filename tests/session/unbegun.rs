//! A stop of a turn of which very many calls have yet to begin: each has its records, and together they cost
//! the store what one costs.

use std::{sync::Arc, time::Instant};

use safepoint::{
    Agent, Session,
    approval::{ApprovalMode, Rule, RuleAction, WithoutApprover},
    ids::SessionId,
    raw::store::ChainCheck,
    session::{ChatPlanner, ItemOutcome, SessionStop},
    store::{OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    tools::GateTools,
    wait::InTime as _,
};
use serde_json::{Value, json};

/// As many as one message may have.
const CALLS: usize = 1024;
/// The end of the one that runs, those of the others, the receipt, the turn's end and quiet; and what the
/// lease takes.
const MOST_COMMITS: u64 = 16;

/// Stops a turn in the first of its calls; the others are of this tool. How often was committed for that, and
/// what the journal then says of the others, in its order.
async fn stopped(tool: &str, calls: usize) -> (u64, Vec<(String, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap());
    let first = Reply::default().and_call_as("c0", "pay", json!({}));
    let calls = (1..calls).fold(first, |reply, n| reply.and_call_as(format!("c{n}"), tool, json!({})));
    let tools = GateTools::new();
    let agent = Agent::builder(ScriptedModel::new(Script::of([calls])))
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .rule(Rule::on("pay", RuleAction::Allow))
        .rule(Rule::on("ask", RuleAction::Ask))
        .tool(tools.gated("pay"))
        .tool(tools.gated("ask"))
        .build();
    let id = SessionId::from("s");
    let kept: Arc<dyn Store> = Arc::clone(&store) as _;
    let session = Session::<String>::builder(ChatPlanner::new(agent));
    let session = session.open(kept, id.clone(), OwnerProcess::here()).await.unwrap();
    let item = session.push("go".to_owned()).unwrap();
    tools.gate().came(1).await;
    let (before, began) = (store.commits(), Instant::now());
    session.stop(SessionStop::now());
    assert!(matches!(item.outcome().in_time("the turn ends").await, ItemOutcome::Interrupted(_)));
    let (took, after) = (began.elapsed(), store.commits());
    let commits = after.all - before.all;
    println!("{commits} commits, {} of them synced, {took:?}", after.durable - before.durable);
    session.done().in_time("the session ends").await;
    assert!(matches!(store.check(&id).await.unwrap(), ChainCheck::Intact(_)));
    (commits, recorded(&store, &id).await)
}

/// What the journal says of calls that never began: that a question about it is closed, or that it has ended.
async fn recorded(store: &SqliteStore, session: &SessionId) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let mut from = Some(0);
    while let Some(position) = from {
        let page = store.read(session, position, CALLS).await.unwrap();
        for entry in page.entries {
            let line: Value = serde_json::from_slice(&entry.record.unwrap().bytes).unwrap();
            let fact = &line["fact"];
            let call = match fact["fact"].as_str() {
                Some("call_ended") if fact["report"]["status"] == "not_started" => &fact["report"]["call_id"],
                Some("approval_closed") => &fact["call_id"],
                _ => continue,
            };
            let [what, call] = [&fact["fact"], call].map(|text| text.as_str().unwrap().to_owned());
            calls.push((call, what));
        }
        from = page.next;
    }
    calls
}

fn expected(calls: usize, what: &[&str]) -> Vec<(String, String)> {
    let of = |n: usize| what.iter().map(move |what| (format!("c{n}"), (*what).to_owned()));
    (1..calls).flat_map(of).collect()
}

/// S12.5: the calls that a stop keeps from beginning are recorded one by one, in their order, and in one
/// transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_never_began_are_recorded_in_one() {
    let (commits, recorded) = stopped("pay", CALLS).await;
    assert!(commits <= MOST_COMMITS, "{commits} commits for {CALLS} calls");
    assert_eq!(recorded, expected(CALLS, &["call_ended"]));
}

/// S12.5, S8.3: so are those about which a person was asked, with the ends of their questions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unanswered_questions_are_taken_back_in_one() {
    const ASKED: usize = 64;
    let (commits, recorded) = stopped("ask", ASKED).await;
    assert!(commits <= MOST_COMMITS, "{commits} commits for {ASKED} calls");
    assert_eq!(recorded, expected(ASKED, &["approval_closed", "call_ended"]));
}
