//! What comes through the store, where the store or the moment is a bad one.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Reason, Session, StopRequest,
    approval::{DecideError, Decision},
    ids::SessionId,
    outcome::Persisted,
    raw::{
        StoredStop, encode_item,
        store::{ApprovalsToWithdraw, ItemState, StopIntent},
    },
    session::{ItemOutcome, Policy, RejectReason, SessionEvent, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{At, FaultStore, OperationFault},
    script::Reply,
    tool_gate::ToolGate,
    wait,
};
use serde_json::json;

use super::{
    desk::{Desk, Reading, asks},
    world::seen,
};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

fn id() -> SessionId {
    SessionId::from("s")
}

/// S7.5, S8.3, S1.10: another process asks for a stop of the turn while the turn is being suspended. The stop
/// ends the turn once it is suspended, in the words of its requester.
#[tokio::test(start_paused = true)]
async fn a_stop_from_elsewhere_keeps_its_reason() {
    let (store, desk) = (memory(), Desk::new([asks()]));
    // Until its reader has had its time, the turn is not taken up to be ended.
    let session = desk
        .chat()
        .reader(Reading::Never)
        .open(Arc::clone(&store), id(), OwnerProcess::here())
        .await
        .unwrap();
    let item = session.push("may I?".to_owned()).unwrap();
    assert!(matches!(item.outcome().await, ItemOutcome::Suspended(_)));
    let request = StopRequest::now().with_reason(Reason::user("from afar"));
    let bytes = StoredStop::Turn(None, request).to_bytes();
    store.ask_stop(&id(), StopIntent { bytes, approvals: ApprovalsToWithdraw::Stay }).await.unwrap();
    session.check_store();
    let interrupted = |event: &SessionEvent| {
        matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Interrupted(_), .. })
    };
    let SessionEvent::TurnEnded { receipt, .. } = seen(&session, interrupted).await else { unreachable!() };
    assert_eq!(receipt.stop.as_ref().unwrap().reason.text, "from afar");
}

/// A session on a store that goes wrong once, when it is armed.
async fn on(fault: OperationFault, desk: &Desk) -> (Session<String>, Arc<FaultStore>, Arc<dyn Store>) {
    let inner = memory();
    let store = Arc::new(FaultStore::unarmed(Arc::clone(&inner), fault));
    let session =
        desk.chat().open(Arc::clone(&store) as Arc<dyn Store>, id(), OwnerProcess::here()).await.unwrap();
    (session, store, inner)
}

/// S7.6, S7.5: a look at the store that fails for a reason that passes is made again, and the session lives.
#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_made_again() {
    for fault in [OperationFault::Refused, OperationFault::Unknown, OperationFault::Held(ToolGate::shut())] {
        let desk = Desk::new([]);
        let (session, store, inner) = on(fault.clone(), &desk).await;
        store.arm();
        let before = store.asked();
        // The next to ask is the look.
        while store.asked() == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        inner.push(&id(), encode_item(&"hi".to_owned(), Policy::Enqueue, None, 8).unwrap()).await.unwrap();
        let completed = |event: &SessionEvent| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        };
        seen(&session, completed).await;
        assert!(!session.is_done(), "{fault:?}");
    }
}

/// S2.8, S8.2: a store that does not answer a decision holds the session up no longer than it may; then it
/// can be made again.
#[tokio::test(start_paused = true)]
async fn a_decision_does_not_wait_for_the_store_without_end() {
    let desk = Desk::new([asks()]);
    desk.tools.gate().open_for_all();
    let (session, store, inner) = on(OperationFault::Held(ToolGate::shut()), &desk).await;
    let item = session.push("may I?".to_owned()).unwrap();
    assert!(matches!(item.outcome().await, ItemOutcome::Suspended(_)));
    let question = inner.approvals(&id()).await.unwrap()[0].asked.id.clone();
    store.arm();
    let held = tokio::time::timeout(Duration::from_secs(60), session.decide(&question, Decision::Approve));
    assert!(matches!(held.await, Ok(Err(DecideError::NotRecorded(_)))));
    assert_eq!(session.decide(&question, Decision::Approve).await, Ok(()));
    let completed = |event: &SessionEvent| {
        matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
    };
    seen(&session, completed).await;
}

/// S6.12, S6.10: a withdrawal that could not be recorded gives nothing back: the next owner runs the item, once.
#[tokio::test(start_paused = true)]
async fn an_item_whose_withdrawal_is_not_recorded_stays() {
    let desk = Desk::new([Reply::call("pay", json!({}))]);
    let (session, store, inner) = on(OperationFault::Refused, &desk).await;
    let first = session.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let second = session.push("hi".to_owned()).unwrap();
    assert_eq!(second.recorded().await, Some(2));
    store.arm_named("append", 0);
    assert_eq!(session.withdraw(second.id()).await, None);
    assert_eq!((second.outcome().await, second.take_back()), (ItemOutcome::Unhandled, None));
    let exit = session.done().await;
    assert!(matches!(exit.persisted(), Persisted::No(_)));
    assert!(matches!(first.outcome().await, ItemOutcome::Interrupted(_)));
    let waits = inner.inbox(&id()).await.unwrap().into_iter().filter(|row| row.state == ItemState::Waiting);
    assert_eq!(waits.map(|row| row.number).collect::<Vec<_>>(), [2]);
}

/// S6.2: a missing answer is not a failure: an item that the store has is accepted, and runs once.
#[tokio::test(start_paused = true)]
async fn an_item_that_was_stored_without_an_answer_is_accepted() {
    let done = [OperationFault::Unknown, OperationFault::Mute, OperationFault::Panics(At::ItsDrop)];
    for fault in done {
        let desk = Desk::new([]);
        let (session, store, inner) = on(fault.clone(), &desk).await;
        store.arm_named("push", 0);
        let item = session.push("hi".to_owned()).unwrap();
        assert_eq!((item.recorded().await, session.is_done()), (Some(1), false), "{fault:?}");
        assert!(matches!(item.outcome().await, ItemOutcome::Completed(_)), "{fault:?}");
        drop(session.stop(SessionStop::at_turn_end()));
        assert_eq!(session.done().await.unhandled().len(), 0, "{fault:?}");
        assert_eq!(
            (desk.model.requests().len(), inner.inbox(&id()).await.unwrap().len()),
            (1, 0),
            "{fault:?}"
        );
    }
}

/// S6.2, S6.10: an item whose writing fails goes back, and is not stored. If it is not known whether it was
/// written, it does not go back: the session ends, and the next owner runs it once if the store has it.
#[tokio::test(start_paused = true)]
async fn an_item_is_never_both_returned_and_run() {
    let not_written = [OperationFault::Refused, OperationFault::Full];
    let in_doubt = [
        OperationFault::Held(ToolGate::shut()),
        OperationFault::GoneAfter,
        OperationFault::Panics(At::ItsPoll),
    ];
    for fault in not_written {
        let desk = Desk::new([]);
        let (session, store, inner) = on(fault.clone(), &desk).await;
        store.arm_named("push", 0);
        let item = session.push("hi".to_owned()).unwrap();
        assert_eq!(item.outcome().await, ItemOutcome::Returned(RejectReason::NotRecorded), "{fault:?}");
        assert_eq!((item.recorded().await, item.take_back()), (None, Some("hi".to_owned())), "{fault:?}");
        let again = session.push("again".to_owned()).unwrap();
        assert!(matches!(again.outcome().await, ItemOutcome::Completed(_)), "{fault:?}");
        assert_eq!(
            (desk.model.requests().len(), inner.inbox(&id()).await.unwrap().len()),
            (1, 0),
            "{fault:?}"
        );
    }
    for fault in in_doubt {
        let desk = Desk::new([]);
        let (session, store, inner) = on(fault.clone(), &desk).await;
        store.arm_named("push", 0);
        let item = session.push("hi".to_owned()).unwrap();
        assert_eq!(item.outcome().await, ItemOutcome::Unhandled, "{fault:?}");
        assert_eq!((item.recorded().await, item.take_back()), (None, None), "{fault:?}");
        let exit = session.done().await;
        assert_eq!(exit.persisted(), &Persisted::Unknown, "{fault:?}");
        assert_eq!(exit.unhandled().iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["hi"]);
        assert_eq!(desk.model.requests().len(), 0, "{fault:?}");
        let is_there = inner.inbox(&id()).await.unwrap().len();
        let _next = wait::asked("the next owner", async || {
            desk.chat().open(Arc::clone(&inner), id(), OwnerProcess::here()).await.ok()
        })
        .await;
        wait::asked("the item is done", async || inner.inbox(&id()).await.unwrap().is_empty()).await;
        assert_eq!(desk.model.requests().len(), is_there, "{fault:?}: it is run once, if it is there");
    }
}
