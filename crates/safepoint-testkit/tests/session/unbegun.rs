//! A stop of a turn of which very many calls have yet to begin: each has its record, and together they cost the store what one
//! costs.

use std::{sync::Arc, time::Instant};

use safepoint::{
    ids::SessionId,
    session::{Chat, Fate, Session, SessionStop},
    store::{Owner, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{script::Reply, tools::GateTools};
use serde_json::{Value, json};

use super::world::{agent, server};

/// As many as one message may have.
const CALLS: usize = 1024;

/// The ids of the calls that ended, as they stand in the journal: those that never began.
async fn recorded(store: &SqliteStore, session: &SessionId) -> Vec<String> {
    let mut calls = Vec::new();
    let mut from = Some(0);
    while let Some(position) = from {
        let page = store.read(session, position, CALLS).await.unwrap();
        for entry in page.entries {
            let line: Value = serde_json::from_slice(&entry.record.unwrap().bytes).unwrap();
            let report = &line["fact"]["report"];
            if line["fact"]["fact"] == "call_ended" && report["status"] == "not_started" {
                calls.push(report["call_id"].as_str().unwrap().to_owned());
            }
        }
        from = page.next;
    }
    calls
}

/// S12.5: the calls that a stop keeps from beginning are recorded one by one, in their order, and in one transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_never_began_are_recorded_in_one() {
    // The end of the one that ran, those of the others, the receipt, the turn's end and quiet; and what the lease takes.
    const MOST_COMMITS: u64 = 16;
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap());
    let calls = (0..CALLS).fold(Reply::default(), |reply, n| reply.and_call_as(format!("c{n}"), "pay", json!({})));
    let server = server([calls]).await;
    let pays = GateTools::new();
    let agent = agent(&server).tool(pays.gated("pay")).build();
    let id = SessionId::from("s");
    let kept: Arc<dyn Store> = Arc::clone(&store) as _;
    let session = Session::builder(Chat::new(agent)).open(kept, id.clone(), Owner::here()).await.unwrap();
    let item = session.push("go".to_owned()).unwrap();
    pays.valve().came(1).await;
    let (before, began) = (store.commits(), Instant::now());
    session.stop(SessionStop::now());
    assert!(matches!(item.fate().await, Fate::Interrupted(_)));
    let (took, after) = (began.elapsed(), store.commits());
    let commits = after.all - before.all;
    println!("{commits} commits, {} of them synced, {took:?}", after.durable - before.durable);
    assert!(commits <= MOST_COMMITS, "{commits} commits for {CALLS} calls");
    session.done().await;
    let expected: Vec<String> = (1..CALLS).map(|n| format!("c{n}")).collect();
    assert_eq!(recorded(&store, &id).await, expected);
    assert!(matches!(store.check(&id).await.unwrap(), safepoint::store::Verdict::Sound(_)));
}
