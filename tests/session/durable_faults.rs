//! A store that fails at one operation, enumerated: the session says so, and the next one finds everything.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Session, ToolContext,
    ids::SessionId,
    outcome::Persisted,
    session::{ChatPlanner, ExitReason, Push, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
    tool::{EffectClass, from_fn},
};
use safepoint_testkit::{
    fault_store::{At, FaultStore, OperationFault},
    ledger::{Ledger, Mark},
    script::{Reply, Script},
    server::ModelServer,
    tool_gate::ToolGate,
    wait,
};
use serde_json::json;

use super::world::agent as builder;

fn script() -> Script {
    Script::of([Reply::call("pay", json!({})).when("go", 0), Reply::text("done").when("go", 1)])
}

fn agent(server: &ModelServer, ledger: &Ledger) -> Agent {
    let ledger = ledger.clone();
    let pay = from_fn("pay", "pays", move |cx: ToolContext, (): ()| {
        let ledger = ledger.clone();
        async move {
            ledger.enter(cx.call_id());
            ledger.commit(cx.call_id());
            Ok("paid")
        }
    });
    builder(server).tool(pay.with(|spec| spec.effect(EffectClass::Unsafe))).build()
}

async fn open(store: Arc<dyn Store>, agent: Agent) -> Result<Session<String>, safepoint::store::Error> {
    Session::builder(ChatPlanner::new(agent)).open(store, SessionId::from("s"), OwnerProcess::here()).await
}

/// Pushes, and continues until nothing is left or the session is over.
async fn drive(session: &Session<String>, eyes: &Arc<dyn Store>) {
    session.resume().await;
    if let Ok(ticket) = session.push(Push::new("go".to_owned()).id("go")) {
        ticket.recorded().await;
    }
    wait::asked("nothing is left, or the session is over", async || {
        let is_resting = session.current_turn().is_none() && !session.resume().await;
        session.is_done() || is_resting && eyes.inbox(&SessionId::from("s")).await.unwrap().is_empty()
    })
    .await;
}

/// How an owner with this fault ended, and whether the fault was met at all.
async fn meets(at: usize, fault: OperationFault) -> (bool, Option<Persisted>) {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = ModelServer::start(script()).await.unwrap();
    let ledger = Ledger::new();
    let faulty = Arc::new(FaultStore::over(Arc::clone(&inner), at, fault));
    let mut persisted = None;
    if let Ok(session) = open(Arc::clone(&faulty) as Arc<dyn Store>, agent(&server, &ledger)).await {
        drive(&session, &inner).await;
        drop(session.stop(SessionStop::now()));
        let exit = session.done().await;
        if let ExitReason::Failed(error) = exit.reason() {
            assert!(!error.message.is_empty());
            persisted = Some(exit.persisted().clone());
        }
    }
    let was_met = faulty.asked() > at;
    // The next owner waits for no lease of a dead process: it was given back, or it lapses.
    let lapsed = OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() };
    let next = Session::builder(ChatPlanner::new(agent(&server, &ledger)));
    let next = match next.open(Arc::clone(&inner), SessionId::from("s"), lapsed).await {
        Ok(next) => next,
        // The answer about the lease was lost: its holder is unknown until it lapses.
        Err(safepoint::store::Error::Held(..)) => return (was_met, persisted),
        Err(error) => panic!("at {at}: {error}"),
    };
    drive(&next, &inner).await;
    assert!(!next.is_done(), "at {at}");
    let requests = server.requests();
    let last = requests.last().unwrap();
    assert!(requests.iter().all(|request| request.fate_now().status != 400), "at {at}");
    let said = last.body["messages"].as_array().unwrap().clone();
    assert_eq!(said.iter().filter(|message| message["content"] == "go").count(), 1, "at {at}");
    assert_eq!(ledger.count(Mark::Entry), ledger.count(Mark::Commit));
    assert!(ledger.count(Mark::Entry) <= 1, "at {at}: paid {} times", ledger.count(Mark::Entry));
    if ledger.count(Mark::Entry) == 0 {
        let text = last.body.to_string();
        assert!(text.contains("effects are unknown"), "at {at}: {text}");
    }
    (was_met, persisted)
}

async fn everywhere(fault: impl Fn() -> OperationFault) -> Vec<Persisted> {
    let mut ends = Vec::new();
    for at in 0.. {
        let (was_met, persisted) = meets(at, fault()).await;
        ends.extend(persisted);
        if !was_met {
            break;
        }
    }
    ends
}

/// S3.4, S7.2 / T10: an operation with an unknown result, whichever it is, repeats nothing and loses no item:
/// the store's word wins at the next start.
#[tokio::test]
async fn an_answer_that_is_lost_anywhere_repeats_nothing() {
    let ends = everywhere(|| OperationFault::Unknown).await;
    assert!(ends.contains(&Persisted::Unknown), "{ends:?}");
}

/// S3.4, S2.8, S7.6, S7.7: a store that hangs, whichever operation it is, delays a stop no longer than the append
/// deadline, and an opening no longer than its own.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_does_not_hold_up_a_stop() {
    const DEADLINES: Duration = Duration::from_secs(30);
    const OPENING: Duration = Duration::from_secs(240);
    let mut stopped = 0;
    for at in 0..40 {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let server = ModelServer::start(script()).await.unwrap();
        let ledger = Ledger::new();
        let faulty = FaultStore::over(Arc::clone(&inner), at, OperationFault::Held(ToolGate::shut()));
        let opened = open(Arc::new(faulty), agent(&server, &ledger));
        let opened = tokio::time::timeout(OPENING, opened).await;
        let Ok(session) = opened.unwrap_or_else(|_| panic!("held at {at}: it never opened")) else {
            continue;
        };
        drop(session.push("go".to_owned()).unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(session.stop(SessionStop::now()));
        let exit = tokio::time::timeout(DEADLINES, session.done()).await;
        assert!(exit.is_ok(), "held at {at}");
        stopped += 1;
    }
    assert!(stopped > 20, "{stopped} openings ended well");
}

/// S3.4, S7.2, S7.6, S7.7 / T10: an operation that the store refuses, whichever it is, repeats nothing, loses
/// no item, and where it had to be recorded ends the session with an error that says so.
#[tokio::test]
async fn a_refusal_anywhere_loses_nothing() {
    let ends = everywhere(|| OperationFault::Refused).await;
    assert!(ends.iter().filter(|end| matches!(end, Persisted::No(_))).count() > 4, "{ends:?}");
}

/// S7.6, S3.4, S7.7: the disk is full, at any operation. Nothing is repeated or lost, and an owner that could
/// not record names the full disk.
#[tokio::test]
async fn a_full_disk_anywhere_loses_nothing() {
    let ends = everywhere(|| OperationFault::Full).await;
    let full = ends.iter().filter(|end| matches!(end, Persisted::No(why) if why.contains("full")));
    assert!(full.count() > 4, "{ends:?}");
}

/// S2.16, S3.4, S7.7: a store panics, at any operation and any moment of it. The session continues or says
/// so; nothing hangs, nothing is repeated, nothing is lost.
#[tokio::test]
async fn a_store_that_panics_anywhere_loses_nothing() {
    for at in [At::ItsCall, At::ItsPoll, At::ItsDrop] {
        let ends = everywhere(|| OperationFault::Panics(at)).await;
        assert!(ends.iter().filter(|end| **end != Persisted::Yes).count() > 4, "{at:?}: {ends:?}");
    }
}
