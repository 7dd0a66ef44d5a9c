//! The hold on a session: ended with the lease, given back with the end, and reported to the owner's
//! commands.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use safepoint::{
    ids::SessionId,
    outcome::Persisted,
    raw::store::uptime,
    receipt::Ending,
    session::{ItemOutcome, SessionEvent, SessionStop},
    store::{self, MemoryStore, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    tool_gate::ToolGate,
    wait,
};

use super::world::{open_here, payer, seen};

/// How long a lease holds.
const LEASE: Duration = Duration::from_secs(10);
/// After how much longer another owner may take the session.
const MARGIN: Duration = Duration::from_secs(5);
/// No wait of these tests is longer.
const BOUND: Duration = Duration::from_secs(60);

async fn records(store: &dyn Store) -> u64 {
    store.open(&SessionId::from("s")).await.unwrap().head
}

/// S7.14, S7.4: an owner that cannot reach its store any more continues until its lease is over, and then
/// stops. The call is ended, by the code `lease`, well before another owner may have the session. Nothing is
/// written, even when the store is back.
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_cut_off_ends_its_effects_with_its_lease() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let away = Arc::new(FaultStore::unarmed(Arc::clone(&inner), OperationFault::Away));
    let gate = ToolGate::shut();
    let session = open_here(payer(&gate), &(Arc::clone(&away) as Arc<dyn Store>)).await.unwrap();
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    away.arm();
    let (began, written) = (tokio::time::Instant::now(), records(&*inner).await);
    let ended = seen(&session, |event| matches!(event, SessionEvent::TurnEnded { .. }));
    let SessionEvent::TurnEnded { fate, receipt, .. } = tokio::time::timeout(BOUND, ended).await.unwrap()
    else {
        panic!("the end of a turn")
    };
    let took = began.elapsed();
    assert!(took < LEASE + MARGIN / 2, "its effects ended after {took:?}");
    assert!(took > LEASE / 2, "a hiccup costs nothing: {took:?}");
    assert!(matches!(fate, ItemOutcome::Interrupted(_)), "{fate:?}");
    let stop = receipt.stop.as_ref().unwrap();
    assert_eq!((receipt.ending, stop.reason.code.as_str()), (Ending::Stopped, "lease"), "{receipt}");
    away.come_back();
    let exit = tokio::time::timeout(BOUND, session.done()).await.unwrap();
    assert!(
        matches!(exit.persisted(), Persisted::No(why) if why.contains("lease")),
        "{:?}",
        exit.persisted()
    );
    assert_eq!(records(&*inner).await, written, "it has written after its lease");
}

/// S7.14: a store that is away for less than the lease costs nothing.
#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_before_the_lease_is_over_costs_nothing() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let away = Arc::new(FaultStore::unarmed(Arc::clone(&inner), OperationFault::Away));
    let gate = ToolGate::shut();
    let session = open_here(payer(&gate), &(Arc::clone(&away) as Arc<dyn Store>)).await.unwrap();
    let ticket = session.push("go".to_owned()).unwrap();
    gate.came(1).await;
    away.arm();
    // Longer than until it is renewed.
    tokio::time::sleep(LEASE / 2).await;
    away.come_back();
    gate.open_for_all();
    let fate = tokio::time::timeout(BOUND, ticket.outcome()).await.unwrap();
    assert!(matches!(fate, ItemOutcome::Completed(_)), "{fate:?}");
}

/// S7.14: the lease callback gets the end of the lease when the lease is taken and at each renewal. The end
/// is in the clock that counts while the machine sleeps.
#[tokio::test(start_paused = true)]
async fn each_renewal_is_reported_with_the_moment_at_which_it_ends() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let ends = Arc::new(Mutex::new(Vec::new()));
    let pushes = Arc::clone(&ends);
    let before = uptime().unwrap();
    let chat = payer(&ToolGate::open()).on_lease(move |until| pushes.lock().unwrap().push(until));
    let session = open_here(chat, &store).await.unwrap();
    let first = ends.lock().unwrap()[0];
    assert!(first >= before + LEASE && first <= uptime().unwrap() + LEASE, "{first:?}");
    tokio::time::sleep(LEASE).await;
    let all = ends.lock().unwrap().clone();
    assert!(all.len() > 2, "held on to in time: {all:?}");
    assert!(all.is_sorted(), "{all:?}");
    drop(session.stop(SessionStop::now()));
    session.done().await;
}

/// S7.4: a session ended while the store did not take it back. It is free as soon as the store works again,
/// and no process waits for its lease, its own least of all.
#[tokio::test]
async fn a_session_that_could_not_be_given_back_is_given_back_later() {
    for fault in [OperationFault::Refused, OperationFault::Full, OperationFault::Unknown] {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&inner), fault.clone()));
        faulty.arm_named("release", 0);
        let store = Arc::clone(&faulty) as Arc<dyn Store>;
        let session = open_here(payer(&ToolGate::open()), &store).await.unwrap();
        drop(session.stop(SessionStop::now()));
        session.done().await;
        assert!(faulty.was_met());
        let began = Instant::now();
        wait::asked(format_args!("{fault:?}: it is open again"), async || {
            let opened = open_here(payer(&ToolGate::open()), &store).await;
            assert!(matches!(opened, Ok(_) | Err(store::Error::Held(..))), "{opened:?}");
            assert!(began.elapsed() < LEASE / 2, "{fault:?}: it is locked out by itself");
            opened.map(drop)
        })
        .await;
    }
}

/// S6.10, S7.4: a session that has ended keeps nothing of its store. A caller may still hold its handle, its
/// exit, its events and its last outcome.
#[tokio::test]
async fn a_session_that_has_ended_lets_go_of_its_store() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let gate = ToolGate::shut();
    let session = open_here(payer(&gate).keep_late_items(), &store).await.unwrap();
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    drop(session.stop(SessionStop::now()));
    let exit = session.done().await;
    assert!(exit.open().is_some_and(|open| open.outcome.is_some()));
    assert!(session.push("late".to_owned()).is_err());
    let holds = || match Arc::strong_count(&store) {
        1 => Ok(()),
        more => Err(format!("{} hold the store", more - 1)),
    };
    wait::so("the store is free", holds).await;
    assert_eq!(exit.take_late(), ["late"]);
}

/// S6.10: a database in a file is closed even while a caller holds the handle and the exit of a session that
/// has ended.
#[tokio::test]
async fn the_file_of_a_session_that_has_ended_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&file).unwrap());
    let is_open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|path| path == file)
    };
    let gate = ToolGate::shut();
    let session = open_here(payer(&gate), &store).await.unwrap();
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    drop(session.stop(SessionStop::now()));
    let exit = session.done().await;
    assert!(is_open());
    drop(store);
    wait::so("the file is closed", || !is_open()).await;
    drop((session, exit));
}

/// S6.10: handle and exit do not hold each other.
#[tokio::test]
async fn a_session_that_has_ended_is_freed() {
    let session = payer(&ToolGate::open()).start();
    drop(session.stop(SessionStop::now()));
    let exit = session.done().await;
    let watched = Arc::downgrade(&exit);
    drop((exit, session));
    wait::so("the exit is not held by the session, nor the session by the exit", || {
        watched.upgrade().is_none()
    })
    .await;
}
