//! Stores that cannot be read as they were written: clear errors that say where, and nothing is lost.

use std::sync::Arc;

use safepoint::{
    Session,
    ids::SessionId,
    raw::{
        encode_item,
        store::{ApprovalsToWithdraw, Durability, NewItem, Record, StopIntent, Write},
    },
    session::{ChatPlanner, ExitReason, ItemOutcome, Policy, SessionEvent, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::store_suite::{acquire, give_back};

use super::{
    desk::{Desk, turn},
    world::seen,
};

fn id() -> SessionId {
    SessionId::from("s")
}

/// S7.6, S7.7: a session with an unreadable record is not opened: the error says where, the lease is given
/// back, and everything is as it was.
#[tokio::test]
async fn a_session_with_a_record_that_cannot_be_read_is_not_opened() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let open = async || desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await;
    let session = open().await.unwrap();
    session.push("a".to_owned()).unwrap().outcome().await;
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    let put = |bytes: &[u8], version: u32| {
        let record = Record { path: "1".into(), kind: "ended".into(), version, bytes: bytes.to_vec() };
        vec![Write::Record(record)]
    };
    let waiting = encode_item(&"waits".to_owned(), Policy::Enqueue, None, 8).unwrap();
    store.push(&id(), waiting).await.unwrap();
    let ttl = std::time::Duration::from_secs(60);
    let lease = acquire(&*store, &id(), OwnerProcess::here(), ttl).await.unwrap();
    let at = store.append(&lease, put(b"no line of ours", 1), Durability::Durable).await.unwrap().first;
    give_back(&*store, &lease).await.unwrap();
    for _ in 0..2 {
        // Twice: the lease was given back.
        match open().await {
            Err(Error::Damaged(session, damage)) => assert_eq!((session, damage.position), (id(), at)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.inbox(&id()).await.unwrap().len(), 1, "what waits, waits");
    let mut seen_here = Vec::new();
    let each = |past: safepoint::raw::JournalStep| seen_here.push((past.position, past.what.is_ok()));
    safepoint::raw::read_journal(&*store, &id(), each).await.unwrap();
    assert!(seen_here.iter().all(|(position, is_read)| *is_read == (*position != at)), "{seen_here:?}");
}

/// S7.6, S7.7: an item that cannot be decoded is reported, stays where it is, and blocks nothing else. A
/// planner of items that can read it finds it there.
#[tokio::test]
async fn an_item_that_cannot_be_decoded_stays_where_it_is() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let session = desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    let foreign = br#"{"item":{"not":"a text"}}"#.to_vec();
    let push = NewItem { client_id: None, digest: "d".into(), bytes: foreign.clone(), capacity: 8 };
    store.push(&id(), push).await.unwrap();
    session.check_store();
    let seen_here = seen(&session, |event| matches!(event, SessionEvent::Unreadable { .. })).await;
    let SessionEvent::Unreadable { number, why } = seen_here else { unreachable!() };
    assert!(number == 1 && !why.is_empty(), "{number}: {why}");
    assert_eq!(session.push("a".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    let rows = store.inbox(&id()).await.unwrap();
    assert!(rows.len() == 1 && rows[0].bytes == foreign, "{rows:?}");
    let next = desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    seen(&next, |event| matches!(event, SessionEvent::Unreadable { number: 1, .. })).await;
}

/// S7.7, S2.1: stopped before it starts: what waits is there, and nothing ran.
#[tokio::test]
async fn a_stop_before_the_start_loses_nothing() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let session = desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    session.stop(SessionStop::now());
    let late = session.push("a".to_owned());
    session.done().await;
    let kept = store.inbox(&id()).await.unwrap().len();
    assert_eq!(kept, usize::from(late.is_ok()), "what was accepted is in the store");
    let next: Session<String> = Session::builder(ChatPlanner::new(desk.agent()))
        .open(Arc::clone(&store), id(), OwnerProcess::here())
        .await
        .unwrap();
    if late.is_ok() {
        seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
            .await;
    }
    assert_eq!(desk.model.requests().len(), kept);
}

/// S7.6, S7.7: an item whose content was altered in the store is reported as damaged and never delivered; it
/// blocks nothing.
#[tokio::test]
async fn an_item_that_was_altered_is_never_delivered() {
    never_delivered(Policy::Enqueue, |bytes| bytes.replace("one", "two")).await;
}

/// S7.7, S6.6: how an item is to come is under its digest too: altered in the store, it is not delivered in
/// another way.
#[tokio::test]
async fn an_item_whose_policy_was_altered_is_never_delivered() {
    never_delivered(Policy::steer(), |bytes| bytes.replace("queue", "return")).await;
    never_delivered(Policy::steer(), |_| r#"{"item":"pay one"}"#.into()).await;
    never_delivered(Policy::Enqueue, |_| r#"{"item":"pay one","how":{"policy":"rollback"}}"#.into()).await;
}

async fn never_delivered(policy: Policy, alter: fn(&str) -> String) {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let mut altered = encode_item(&"pay one".to_owned(), policy, None, 8).unwrap();
    let before = altered.bytes.clone();
    altered.bytes = alter(std::str::from_utf8(&before).unwrap()).into_bytes();
    assert_ne!(altered.bytes, before);
    let session = desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    store.push(&id(), altered).await.unwrap();
    session.check_store();
    let seen_here = seen(&session, |event| matches!(event, SessionEvent::Unreadable { .. })).await;
    assert!(
        matches!(&seen_here, SessionEvent::Unreadable { number: 1, why } if why.contains("damaged")),
        "{seen_here:?}"
    );
    assert_eq!(session.push("a".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(desk.model.requests().len(), 1);
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    assert_eq!(store.inbox(&id()).await.unwrap().len(), 1, "it stays where it is");
}

/// S7.5, S7.6: a stop that cannot be read is a stop of the session, now, reported as what it is, with an
/// owner or without. The next owner but one continues.
#[tokio::test]
async fn a_stop_that_cannot_be_read_is_a_stop() {
    let (store, desk) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, Desk::new([]));
    let open = async || desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    let garbage = || StopIntent { bytes: b"garbage".to_vec(), approvals: ApprovalsToWithdraw::Stay };
    let mut session = open().await;
    for is_alive in [true, false] {
        store.ask_stop(&id(), garbage()).await.unwrap();
        if is_alive {
            session.check_store();
        } else {
            session = open().await;
        }
        let exit = session.done().await;
        let cause = exit.cause().unwrap();
        assert!(exit.reason() == &ExitReason::Stopped && cause.contains("cannot be read"), "{cause}");
    }
    let next = open().await;
    assert_eq!(next.push("a".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
}
