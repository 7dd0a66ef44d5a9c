//! What the next owner of a stored session begins by itself, and that there is one.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Session, StopRequest,
    ids::SessionId,
    raw::{StoredStop, encode_item, store::Liveness, store_stop},
    session::{
        ExitReason, ItemOutcome, PendingItems, Policy, QueueAfterStop, SessionEvent, SessionStop, TurnStopAck,
    },
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    server::ModelServer,
    store_suite::{Population, Time, outside, owner},
    wait::{self, InTime as _},
};

use super::world::{agent, chat, seen, server};

fn id() -> SessionId {
    SessionId::from("s")
}

async fn pushed(store: &Arc<dyn Store>, text: &str) {
    store.push(&id(), encode_item(&text.to_owned(), Policy::Enqueue, None, 8).unwrap()).await.unwrap();
}

async fn opening(store: Arc<dyn Store>, server: &ModelServer) -> Result<Session<String>, Error> {
    let chat = chat(agent(server).build()).pending_items(PendingItems::GoOn);
    chat.open(store, id(), OwnerProcess::here()).await
}

async fn opened(store: &Arc<dyn Store>, server: &ModelServer) -> Session<String> {
    opening(Arc::clone(store), server).await.unwrap()
}

/// Waits until the turn of this number is completed.
async fn completed(session: &Session<String>, turn: u64) {
    let is_it = |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(of), .. } if of.number() == turn);
    seen(session, is_it).await;
}

/// Its first turn is stopped while "b" waits behind it, and it is closed.
async fn stopped_and_closed(store: &Arc<dyn Store>, server: &ModelServer) {
    let mut gate = server.gate();
    let session = opened(store, server).await;
    let first = session.push("a".to_owned()).unwrap();
    gate.request().in_time("the request of the first turn").await;
    session.push("b".to_owned()).unwrap().recorded().await.unwrap();
    let asked = session.stop_turn(None, StopRequest::now()).asked().await;
    assert!(matches!(asked, TurnStopAck::Stopping(_)), "{asked:?}");
    assert!(matches!(first.outcome().await, ItemOutcome::Interrupted(_)));
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().in_time("the end").await;
}

/// S5.3, S7.1: what waited behind a turn that was stopped waits at the next owner too, until it is resumed.
#[tokio::test]
async fn what_waited_behind_a_stop_waits_at_the_next_owner_too() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = server([Reply::text("resumed"), Reply::text("of b")]).await;
    stopped_and_closed(&store, &server).await;
    let next = opened(&store, &server).await;
    assert!(next.resume().await, "the turn that was stopped is what it begins with");
    completed(&next, 1).await;
    completed(&next, 2).await;
    assert_eq!(server.requests().len(), 3);
}

/// S5.3, S7.47: what comes after a stop begins a turn, although no process has the session open: at the next owner, with all that waits.
#[tokio::test]
async fn what_comes_after_a_stop_begins_a_turn_at_the_next_owner() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = server([Reply::text("of b"), Reply::text("of c")]).await;
    stopped_and_closed(&store, &server).await;
    pushed(&store, "c").await;
    assert_eq!(store.due(1, Vec::new()).await.unwrap().len(), 1);
    let next = opened(&store, &server).await;
    completed(&next, 2).await;
    completed(&next, 3).await;
}

/// S7.47: an item that comes after a stop of its session wants an owner, also where one process has learned of both at once, which the
/// stop has ended; what came before the stop wants none.
#[tokio::test]
async fn what_comes_after_a_stop_of_the_session_wants_an_owner_once_the_stop_is_done() {
    for comes_after in [true, false] {
        let time = Time::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside(&time, &Population::default())));
        let server = server([Reply::text("of a")]).await;
        let made = opened(&store, &server).await;
        made.stop(SessionStop::at_turn_end());
        made.done().in_time("the end").await;
        let stop = StoredStop::Session(SessionStop::at_turn_end());
        let tick = || time.pass(Duration::from_millis(1));
        if comes_after {
            store_stop(&*store, &id(), &stop).await.unwrap();
            tick();
            pushed(&store, "a").await;
        } else {
            pushed(&store, "a").await;
            tick();
            store_stop(&*store, &id(), &stop).await.unwrap();
        }
        let ended = opened(&store, &server).await;
        ended.done().in_time("its end by the stop").await;
        let is_free = async || store.open(&id()).await.unwrap().holder.is_none();
        wait::asked("its owner has given it back", is_free).await;
        assert_eq!(!store.due(1, Vec::new()).await.unwrap().is_empty(), comes_after);
        let next = opened(&store, &server).await;
        completed(&next, 1).await;
    }
}

/// S7.47, S6.7: the same where the item comes while its session ends.
#[tokio::test]
async fn what_comes_while_a_session_ends_wants_an_owner() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = server([Reply::text("of b")]).await;
    let mut gate = server.gate();
    let session = opened(&store, &server).await;
    let first = session.push("a".to_owned()).unwrap();
    gate.request().in_time("the request of the first turn").await;
    let mut events = session.events();
    let mut wanted = async |is_it: &dyn Fn(&SessionEvent) -> bool| {
        while !is_it(&events.next().await.expect("the session has not ended").kind) {}
    };
    drop(session.stop(SessionStop::at_turn_end()));
    wanted(&|event| matches!(event, SessionEvent::StopRequested { .. })).in_time("the stop").await;
    pushed(&store, "b").await;
    let is_second =
        |event: &SessionEvent| matches!(event, SessionEvent::Accepted(item) if *item != first.id());
    wanted(&is_second).in_time("the second item").await;
    gate.headers();
    gate.script(&Reply::text("of a"));
    gate.finish();
    session.done().in_time("the end").await;
    assert_eq!(store.due(1, Vec::new()).await.unwrap().len(), 1);
    completed(&opened(&store, &server).await, 2).await;
}

/// S7.5: whichever operation its store refuses, a stop that another process asks for reaches the turn, or the session is over.
#[tokio::test]
async fn a_stop_is_not_lost_with_a_look_that_fails() {
    for at in 0.. {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let server = server([]).await;
        let mut gate = server.gate();
        let faulty = Arc::new(FaultStore::over(Arc::clone(&store), at, OperationFault::Refused));
        let Ok(session) = opening(Arc::clone(&faulty) as Arc<dyn Store>, &server).await else { continue };
        let ticket = session.push("a".to_owned()).unwrap();
        let asked = gate.request();
        let begun = async { futures_util::future::select(Box::pin(asked), Box::pin(ticket.outcome())).await };
        drop(begun.in_time("the request of its turn, or its end").await);
        if store.open(&id()).await.unwrap().holder.is_none() || session.is_done() {
            continue;
        }
        let stop = StoredStop::Turn(None, StopRequest::now());
        store_stop(&*store, &id(), &stop).await.unwrap();
        let outcome = ticket.outcome().in_time("the end of the turn").await;
        assert!(!matches!(outcome, ItemOutcome::Completed(_)), "at {at}: {outcome:?}");
        if faulty.asked() <= at {
            break;
        }
    }
}

/// S7.47: whichever operation of an owner its store refuses, what is left in its session wants another owner, within five seconds.
#[tokio::test]
async fn what_is_left_in_a_session_whose_store_failed_wants_an_owner() {
    for at in 0.. {
        let time = Time::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside(&time, &Population::default())));
        let server = server([Reply::text("of a"), Reply::text("of a")]).await;
        let made = opened(&store, &server).await;
        made.stop(SessionStop::at_turn_end());
        made.done().in_time("the end").await;
        pushed(&store, "a").await;
        let faulty = Arc::new(FaultStore::over(Arc::clone(&store), at, OperationFault::Refused));
        let over = Arc::clone(&faulty) as Arc<dyn Store>;
        if let Ok(session) = opening(over, &server).await {
            drop(session.stop(SessionStop::when_idle_for(Duration::ZERO)));
            session.done().in_time("the end").await;
        }
        if faulty.asked() <= at {
            assert!(at > 8, "only {at} operations");
            break;
        }
        let is_free = async || store.open(&id()).await.unwrap().holder.is_none();
        wait::asked("its owner has given it back", is_free).await;
        let rows = store.inbox(&id()).await.unwrap();
        time.pass(Duration::from_secs(5));
        let is_due = !store.due(1, Vec::new()).await.unwrap().is_empty();
        assert_eq!(is_due, !rows.is_empty(), "at {at}: {rows:?}");
    }
}

/// S7.47: the same where the owner has only learned of a stop, of an item that is over, and cannot record that.
#[tokio::test]
async fn a_stop_that_could_not_be_applied_wants_an_owner() {
    let time = Time::default();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside(&time, &Population::default())));
    let server = server([Reply::text("of a")]).await;
    let first = opened(&store, &server).await;
    first.push("a".to_owned()).unwrap().outcome().await;
    first.stop(SessionStop::at_turn_end());
    first.done().in_time("the end").await;
    let stop = StoredStop::Item(1, StopRequest::now(), QueueAfterStop::Continues);
    store_stop(&*store, &id(), &stop).await.unwrap();
    let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&store), OperationFault::Refused));
    faulty.arm_named("append", 0);
    let next = opening(Arc::clone(&faulty) as Arc<dyn Store>, &server).await.unwrap();
    assert!(matches!(next.done().in_time("the end").await.reason(), ExitReason::Failed(_)));
    assert!(store.stops(&id(), 0).await.unwrap().iter().any(|stop| !stop.seen));
    let is_free = async || store.open(&id()).await.unwrap().holder.is_none();
    wait::asked("its owner has given it back", is_free).await;
    time.pass(Duration::from_secs(5));
    assert_eq!(store.due(1, Vec::new()).await.unwrap().len(), 1);
}

/// S7.47, S6.22: an owner dies in its turn, and the next one cannot open the session, whichever operation its store refuses: it wants
/// another owner, within five seconds.
#[tokio::test]
async fn a_turn_that_could_not_be_taken_over_wants_an_owner() {
    for at in 0.. {
        let (time, lives) = (Time::default(), Population::default());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside(&time, &lives)));
        let server = server([Reply::text("of a")]).await;
        let mut gate = server.gate();
        let dies = chat(agent(&server).build()).open(Arc::clone(&store), id(), owner(1)).await.unwrap();
        dies.push("a".to_owned()).unwrap().recorded().await.unwrap();
        gate.request().in_time("the request of its turn").await;
        lives.say(1, Liveness::Dead);
        let faulty = Arc::new(FaultStore::over(Arc::clone(&store), at, OperationFault::Refused));
        let over = Arc::clone(&faulty) as Arc<dyn Store>;
        let next = chat(agent(&server).build()).open(over, id(), owner(2)).await;
        if faulty.asked() <= at {
            assert!(next.is_ok() && at > 4, "only {at} operations");
            break;
        }
        if next.is_ok() {
            continue;
        }
        store.bury().await.unwrap();
        time.pass(Duration::from_secs(5));
        assert_eq!(store.due(1, Vec::new()).await.unwrap().len(), 1, "at {at}");
    }
}

/// S7.47: a list of sessions says that a turn was cut although another process has the session by now, until it runs again.
#[tokio::test]
async fn a_turn_whose_owner_died_is_shown_as_cut_while_another_owner_has_it() {
    let (time, lives) = (Time::default(), Population::default());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside(&time, &lives)));
    let server = server([Reply::text("of a")]).await;
    let mut gate = server.gate();
    let dies = chat(agent(&server).build()).open(Arc::clone(&store), id(), owner(1)).await.unwrap();
    dies.push("a".to_owned()).unwrap().recorded().await.unwrap();
    gate.request().in_time("the request of its turn").await;
    let label = async || store.open(&id()).await.unwrap().label;
    assert_eq!(label().await, "running");
    lives.say(1, Liveness::Dead);
    let next = chat(agent(&server).build()).open(Arc::clone(&store), id(), owner(2)).await.unwrap();
    assert_eq!(label().await, "cut");
    assert!(next.resume().await);
    completed(&next, 1).await;
    assert_eq!(label().await, "idle");
}
