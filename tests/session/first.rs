//! A session and the item that it is created with: both are there, or neither.

use std::sync::Arc;

use safepoint::{
    Session,
    ids::SessionId,
    raw::store::{ItemState, Withdrawn},
    session::{ItemOutcome, Push, PushError, RejectReason, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    wait,
};

use super::desk::{Desk, turn};

fn id() -> SessionId {
    SessionId::from("s")
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

/// A process that is dead, for every other one.
fn dead() -> OwnerProcess {
    OwnerProcess { pid: u32::MAX, ..OwnerProcess::here() }
}

fn go() -> Push<String> {
    Push::new("go".to_owned()).id("go")
}

async fn begin(desk: &Desk, store: &Arc<dyn Store>) -> (Session<String>, Push<String>) {
    desk.chat().open_with(Arc::clone(store), id(), OwnerProcess::here(), go()).await.unwrap()
}

async fn end(session: &Session<String>) {
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
}

/// The numbers of the items that wait.
async fn waiting(store: &Arc<dyn Store>) -> Vec<u64> {
    let items = store.inbox(&id()).await.unwrap();
    items.iter().filter(|item| item.state == ItemState::Waiting).map(|item| item.number).collect()
}

/// Opens a new session with an item, and dies at this operation. Whether the operation was met, and whether
/// there is a session.
async fn dies(at: usize, fault: OperationFault) -> (bool, bool) {
    let (inner, what) = (memory(), format!("{fault:?} at operation {at}"));
    let faulty = Arc::new(FaultStore::over(Arc::clone(&inner), at, fault));
    let desk = Desk::new([Reply::text("gone")]);
    let opened = desk.chat().open_with(Arc::clone(&faulty) as Arc<dyn Store>, id(), dead(), go()).await;
    let was_met = faulty.was_met();
    let is_stored = opened.as_ref().is_ok_and(|(_, go)| go.is_stored());
    // The item is never pushed here.
    drop(opened);
    let exists = match inner.open(&id()).await {
        Ok(_) => true,
        Err(Error::NoSession(_)) => false,
        Err(error) => panic!("{what}: {error}"),
    };
    assert!(exists || !is_stored, "{what}: no session");
    if !exists {
        return (was_met, exists);
    }
    assert_eq!(waiting(&inner).await, [1], "{what}: a session without its item");
    let next = desk.chat().open(Arc::clone(&inner), id(), OwnerProcess::here()).await.unwrap();
    wait::asked("the item is done", async || inner.inbox(&id()).await.unwrap().is_empty()).await;
    let again = next.push(go()).unwrap().outcome().await;
    assert_eq!(again, ItemOutcome::Returned(RejectReason::Known), "{what}");
    assert_eq!(desk.model.requests().len(), 1, "{what}");
    (was_met, exists)
}

/// S7.16, S7.2: whichever operation of the store is the last one, a session that exists has the item that it
/// was created with, and the next owner delivers it, once.
#[tokio::test]
async fn a_session_never_exists_without_the_item_that_it_is_created_with() {
    for fault in [
        OperationFault::Refused,
        OperationFault::Unknown,
        OperationFault::GoneBefore,
        OperationFault::GoneAfter,
    ] {
        let mut found = Vec::new();
        for at in 0.. {
            let (was_met, exists) = dies(at, fault.clone()).await;
            if !was_met {
                break;
            }
            found.push(exists);
        }
        assert!(found.contains(&true) && found.contains(&false), "{fault:?}: {found:?}");
    }
}

/// S7.16, S6.2: the item is recorded when its session is; pushing it gives its ticket, and its client id is known.
#[tokio::test]
async fn the_item_of_a_new_session_is_pushed_once() {
    let (store, desk) = (memory(), Desk::new([Reply::text("gone")]));
    let (session, first) = begin(&desk, &store).await;
    assert!(first.is_stored());
    assert_eq!((waiting(&store).await, desk.model.requests().len()), (vec![1], 0));
    let (other, ticket) = (first.clone(), session.push(first).unwrap());
    assert_eq!(ticket.recorded().await, Some(1));
    assert_eq!(session.push(other).unwrap().id(), ticket.id(), "a clone of it is the same item");
    assert_eq!(session.push(go()).unwrap().id(), ticket.id(), "and so is one of the same id");
    let conflict = session.push(Push::new("other".to_owned()).id("go"));
    assert!(matches!(conflict, Err(PushError::OtherContent(_))), "{conflict:?}");
    assert_eq!(ticket.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!((desk.model.requests().len(), store.inbox(&id()).await.unwrap().len()), (1, 0));
}

/// S7.16: in a session that exists, and in one of another program, the item is pushed as any other.
#[tokio::test]
async fn a_session_that_exists_gets_the_item_when_it_is_pushed() {
    let (store, desk) = (memory(), Desk::new([]));
    end(&desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap()).await;
    let (session, first) = begin(&desk, &store).await;
    assert!(!first.is_stored());
    assert_eq!(waiting(&store).await, [0_u64; 0]);
    assert_eq!(session.push(first).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
    let elsewhere = memory();
    let (_new, stored) = begin(&desk, &elsewhere).await;
    let stray = session.push(stored.id("another")).unwrap();
    assert_eq!(stray.recorded().await, Some(2), "not the number that it has elsewhere");
    assert_eq!(stray.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(waiting(&elsewhere).await, [1]);
}

/// S7.16, S6.10: a session that ends before the item is pushed keeps it in the store, for the next owner.
#[tokio::test]
async fn an_item_that_is_pushed_too_late_waits_for_the_next_owner() {
    let (store, desk) = (memory(), Desk::new([Reply::text("gone")]));
    let (session, first) = begin(&desk, &store).await;
    end(&session).await;
    let late = session.push(first).unwrap();
    assert_eq!((late.recorded().await, late.outcome().await), (Some(1), ItemOutcome::Unhandled));
    assert_eq!((waiting(&store).await, desk.model.requests().len()), (vec![1], 0));
    let _next = desk.chat().open(Arc::clone(&store), id(), OwnerProcess::here()).await.unwrap();
    wait::asked("the item is done", async || store.inbox(&id()).await.unwrap().is_empty()).await;
    assert_eq!(desk.model.requests().len(), 1);
}

/// S7.16, S6.12: an item that another process withdraws before it is pushed has no turn.
#[tokio::test]
async fn an_item_that_is_withdrawn_before_it_is_pushed_has_no_turn() {
    let (store, desk) = (memory(), Desk::new([]));
    let (session, first) = begin(&desk, &store).await;
    assert!(matches!(store.withdraw(&id(), 1).await.unwrap(), Withdrawn::Item(_)));
    assert_eq!(session.push(first).unwrap().outcome().await, ItemOutcome::Withdrawn);
    assert_eq!(desk.model.requests().len(), 0);
}

/// S7.16, S6.2: an item that a push returns is in no session.
#[tokio::test]
async fn an_item_that_is_refused_is_not_stored() {
    let (store, desk) = (memory(), Desk::new([]));
    let open = |inbox: usize, item: &str| {
        let builder = desk.chat().inbox(inbox);
        builder.open_with(Arc::clone(&store), item.into(), OwnerProcess::here(), item.to_owned())
    };
    let (session, blank) = open(8, " ").await.unwrap();
    assert!(matches!(session.push(blank), Err(PushError::Blank(_))));
    let (session, full) = open(0, "a").await.unwrap();
    assert!(matches!(session.push(full), Err(PushError::Full(_))));
    for id in [" ", "a"] {
        assert_eq!(store.inbox(&id.into()).await.unwrap().len(), 0, "{id:?}");
    }
}
