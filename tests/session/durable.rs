//! Sessions in a store: what the next owner finds, and what it does not do twice.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Session,
    ids::SessionId,
    raw::{
        StoredStop, encode_item,
        store::{ApprovalsToWithdraw, StopIntent},
    },
    session::{ChatPlanner, ItemOutcome, Policy, Push, SessionEvent, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
    tool::EffectClass,
};
use safepoint_testkit::script::Reply;
use serde_json::json;
use tokio::sync::Semaphore;

use super::world::{agent, seen, server};

async fn open(store: &Arc<dyn Store>, agent: safepoint::Agent) -> Session<String> {
    let builder = Session::builder(ChatPlanner::new(agent));
    builder.open(Arc::clone(store), SessionId::from("s"), OwnerProcess::here()).await.unwrap()
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

/// S7.1, S6.2: the next owner knows the conversation, and delivers what waits.
#[tokio::test]
async fn the_next_owner_knows_the_conversation() {
    let store = memory();
    let server = server([Reply::text("one"), Reply::text("two")]).await;
    let session = open(&store, agent(&server).build()).await;
    let first = session.push("a".to_owned()).unwrap();
    assert_eq!(first.recorded().await, Some(1));
    assert!(matches!(first.outcome().await, ItemOutcome::Completed(_)));
    session.stop(SessionStop::at_turn_end()).asked().await;
    session.done().await;
    let session = open(&store, agent(&server).build()).await;
    let second = session.push("b".to_owned()).unwrap();
    assert!(matches!(second.outcome().await, ItemOutcome::Completed(turn) if turn.number() == 2));
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("one"), "{sent}");
}

/// S7.10: a session is titled after the first line of what its first turn was given, once; what its program
/// wants to find again stays until it says something else.
#[tokio::test]
async fn a_session_keeps_a_title_and_what_its_program_said() {
    let store = memory();
    let server = server([Reply::text("one"), Reply::text("two")]).await;
    let mut shown = Vec::new();
    for (item, setup) in [("\n  a journey \nto Lisbon", Some("with a map")), ("and back", None)] {
        let mut builder = Session::builder(ChatPlanner::new(agent(&server).build()));
        if let Some(setup) = setup {
            builder = builder.setup(setup);
        }
        let session =
            builder.open(Arc::clone(&store), SessionId::from("s"), OwnerProcess::here()).await.unwrap();
        assert!(matches!(session.push(item.to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
        session.stop(SessionStop::at_turn_end()).asked().await;
        session.done().await;
        let row = store.open(&SessionId::from("s")).await.unwrap();
        shown.push((row.title, row.setup));
    }
    assert_eq!(
        shown,
        [("a journey".to_owned(), "with a map".to_owned()), ("a journey".into(), "with a map".into())]
    );
}

/// S7.4: two owners: the second gets an error that names the holder.
#[tokio::test]
async fn a_second_owner_learns_who_holds_it() {
    let store = memory();
    let server = server([]).await;
    let _first = open(&store, agent(&server).build()).await;
    let builder = Session::<String>::builder(ChatPlanner::new(agent(&server).build()));
    let refused = builder.open(Arc::clone(&store), SessionId::from("s"), OwnerProcess::here()).await;
    assert!(matches!(refused, Err(Error::Held(..))), "{refused:?}");
}

/// S7.2, S7.3, S5.3: a turn that was stopped in its calls is taken up in another session object: what ended
/// is not run again, what never began runs.
#[tokio::test]
async fn a_stopped_turn_is_taken_up_by_the_next_owner() {
    let store = memory();
    let calls = Reply::default().and_call("first", json!({})).and_call("second", json!({}));
    let server = server([calls, Reply::text("both done")]).await;
    let (entered, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let tools = |server: &_| {
        let gated = |name: &'static str| {
            let (entered, gate) = (Arc::clone(&entered), Arc::clone(&gate));
            safepoint::tool::from_fn(name, "waits", move |_cx, (): ()| {
                let (entered, gate) = (Arc::clone(&entered), Arc::clone(&gate));
                async move {
                    entered.add_permits(1);
                    gate.acquire().await?.forget();
                    Ok("ok")
                }
            })
            .with(|spec| spec.effect(EffectClass::Unsafe))
        };
        agent(server).tool(gated("first")).tool(gated("second")).build()
    };
    let session = open(&store, tools(&server)).await;
    let item = session.push("do both".to_owned()).unwrap();
    entered.acquire().await.unwrap().forget();
    drop(session.stop(SessionStop::graceful()));
    gate.add_permits(1);
    assert!(matches!(item.outcome().await, ItemOutcome::Interrupted(_)));
    session.done().await;
    let session = open(&store, tools(&server)).await;
    gate.add_permits(1);
    assert!(session.resume().await);
    seen(&session, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    assert_eq!((entered.available_permits(), server.requests().len()), (1, 2));
}

/// S7.5, S6.2: another process pushes and stops through the store alone; the owner sees to both.
#[tokio::test]
async fn others_push_and_stop_through_the_store() {
    let store = memory();
    let server = server([Reply::text("hello")]).await;
    let session = open(&store, agent(&server).build()).await;
    let id = SessionId::from("s");
    store.push(&id, encode_item(&"hi".to_owned(), Policy::Enqueue, None, 8).unwrap()).await.unwrap();
    session.check_store();
    seen(&session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    let bytes = StoredStop::Session(SessionStop::at_turn_end().with_cause("from afar")).to_bytes();
    store.ask_stop(&id, StopIntent { bytes, approvals: ApprovalsToWithdraw::Stay }).await.unwrap();
    let exit = tokio::time::timeout(Duration::from_secs(5), session.done()).await.unwrap();
    assert_eq!(exit.cause(), Some("from afar"));
    assert!(store.stops(&id, 0).await.unwrap().iter().all(|stop| stop.seen));
}

/// S7.5, S2.1: a stop that was asked while the session had no owner holds for the next owner, once: no model
/// call.
#[tokio::test]
async fn a_stop_asked_before_an_owner_lives_holds() {
    let store = memory();
    let server = server([Reply::text("later")]).await;
    let first = open(&store, agent(&server).build()).await;
    drop(first.stop(SessionStop::now()));
    first.done().await;
    let id = SessionId::from("s");
    store.push(&id, encode_item(&"hi".to_owned(), Policy::Enqueue, None, 8).unwrap()).await.unwrap();
    let bytes = StoredStop::Session(SessionStop::now().with_cause("not yet")).to_bytes();
    store.ask_stop(&id, StopIntent { bytes, approvals: ApprovalsToWithdraw::Stay }).await.unwrap();
    let second = open(&store, agent(&server).build()).await;
    let exit = second.done().await;
    assert_eq!((exit.cause(), server.requests().len(), exit.unhandled().len()), (Some("not yet"), 0, 1));
    let third = open(&store, agent(&server).build()).await;
    seen(&third, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
}

/// S6.2: a client id is known for the session's life, whatever process owns it.
#[tokio::test]
async fn a_client_id_is_known_to_the_next_owner() {
    let store = memory();
    let server = server([Reply::text("once")]).await;
    let session = open(&store, agent(&server).build()).await;
    let first = session.push(Push::new("a".to_owned()).id("1")).unwrap();
    assert!(matches!(first.outcome().await, ItemOutcome::Completed(_)));
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
    let session = open(&store, agent(&server).build()).await;
    let again = session.push(Push::new("a".to_owned()).id("1")).unwrap();
    assert_eq!(
        (again.recorded().await, again.outcome().await),
        (None, ItemOutcome::Returned(safepoint::session::RejectReason::Known))
    );
    assert_eq!(server.requests().len(), 1);
}
