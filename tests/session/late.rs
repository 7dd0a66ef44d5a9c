//! A store that answers late, or fails after a stop: the turn continues, or has stopped and says what is not
//! recorded.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Receipt, Session, StopRequest,
    outcome::Persisted,
    receipt::Ending,
    session::{ExitReason, ItemOutcome, SessionEvent, SessionStop},
    store::{MemoryStore, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    tool_gate::ToolGate,
};

use super::world::{open_here, payer, seen};

/// Longer than an append may take, and shorter than a lease holds.
const SLEEP: Duration = Duration::from_secs(6);
/// No wait of these tests is longer.
const BOUND: Duration = Duration::from_secs(60);

async fn open(store: &Arc<FaultStore>, gate: &ToolGate) -> Session<String> {
    open_here(payer(gate), &(Arc::clone(store) as Arc<dyn Store>)).await.unwrap()
}

async fn ended(session: &Session<String>) -> (ItemOutcome, Arc<Receipt>) {
    match seen(session, |event| matches!(event, SessionEvent::TurnEnded { .. })).await {
        SessionEvent::TurnEnded { fate, receipt, .. } => (fate, receipt),
        other => panic!("{other:?}"),
    }
}

/// A turn whose append of this number has this fault; whether the fault was met, and how the session ended.
async fn turn_with(
    fault: OperationFault,
    well: usize,
    later: impl FnOnce(),
) -> (bool, Option<ItemOutcome>, Persisted) {
    let faulty = Arc::new(FaultStore::unarmed(Arc::new(MemoryStore::default()), fault));
    let session = open(&faulty, &ToolGate::open()).await;
    faulty.arm_named("append", well);
    let ticket = session.push("go".to_owned()).unwrap();
    let fate = async {
        tokio::time::sleep(SLEEP).await;
        later();
        ticket.outcome().await
    };
    let fate = tokio::time::timeout(BOUND, fate).await.ok();
    drop(session.stop(SessionStop::at_turn_end()));
    let exit = tokio::time::timeout(BOUND, session.done()).await.unwrap();
    (faulty.was_met(), fate, exit.persisted().clone())
}

/// S3.4: a late append is not yet unknown. The answer of any append may come after its time is over, as on a
/// machine that slept, and everything continues.
#[tokio::test(start_paused = true)]
async fn an_append_that_is_late_is_waited_for_while_the_store_is_asked() {
    for well in 0.. {
        let gate = ToolGate::shut();
        let opened = gate.clone();
        let (was_met, fate, persisted) =
            turn_with(OperationFault::Held(gate), well, move || opened.open_for_all()).await;
        if !was_met {
            assert!(well > 8, "a turn has more appends than {well}");
            return;
        }
        assert!(matches!(fate, Some(ItemOutcome::Completed(_))), "append {well}: {fate:?}");
        assert_eq!(persisted, Persisted::Yes, "append {well}");
    }
}

/// S3.4: an append whose answer never comes is found in the store, by its place and its chain, and everything
/// continues.
#[tokio::test(start_paused = true)]
async fn an_append_whose_answer_is_lost_is_found_in_the_store() {
    for well in 0.. {
        let (was_met, fate, persisted) = turn_with(OperationFault::Mute, well, || ()).await;
        if !was_met {
            assert!(well > 8, "a turn has more appends than {well}");
            return;
        }
        assert!(matches!(fate, Some(ItemOutcome::Completed(_))), "append {well}: {fate:?}");
        assert_eq!(persisted, Persisted::Yes, "append {well}");
    }
}

/// How a turn ended that was stopped, where the first append after that had this fault.
async fn stopped_with(
    fault: OperationFault,
    ends_the_session: bool,
) -> (ItemOutcome, Arc<Receipt>, Persisted, ExitReason) {
    let faulty = Arc::new(FaultStore::unarmed(Arc::new(MemoryStore::default()), fault));
    let gate = ToolGate::shut();
    let session = open(&faulty, &gate).await;
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    faulty.arm_named("append", 0);
    if ends_the_session {
        drop(session.stop(SessionStop::now()));
    } else {
        drop(session.stop_turn(None, StopRequest::now()));
    }
    let (fate, receipt) = tokio::time::timeout(BOUND, ended(&session)).await.unwrap();
    let exit = tokio::time::timeout(BOUND, session.done()).await.unwrap();
    (fate, receipt, exit.persisted().clone(), exit.reason().clone())
}

/// S2.13, S3.1, S3.4: a stop that was asked is a stop, whatever the store says to it then: not recorded, or
/// unknown, with the error in the receipt; and a session that was asked to stop has stopped.
#[tokio::test]
async fn a_store_that_fails_after_a_stop_does_not_make_it_a_failure() {
    for fault in [
        OperationFault::Refused,
        OperationFault::Full,
        OperationFault::Unknown,
        OperationFault::GoneBefore,
        OperationFault::GoneAfter,
    ] {
        for ends_the_session in [true, false] {
            let (fate, receipt, persisted, reason) = stopped_with(fault.clone(), ends_the_session).await;
            assert!(matches!(fate, ItemOutcome::Interrupted(_)), "{fault:?}: {fate:?}");
            assert_eq!(receipt.ending, Ending::Stopped, "{fault:?}");
            assert!(receipt.unrecorded.is_some(), "{fault:?}: {receipt}");
            assert!(receipt.to_string().contains("record    not confirmed"), "{receipt}");
            assert_ne!(persisted, Persisted::Yes, "{fault:?}");
            assert_eq!(reason == ExitReason::Stopped, ends_the_session, "{fault:?}: {reason:?}");
        }
    }
}

/// S2.13: before a stop was asked, a store that fails makes the run fail.
#[tokio::test]
async fn a_store_that_fails_without_a_stop_is_a_failure() {
    let faulty = Arc::new(FaultStore::unarmed(Arc::new(MemoryStore::default()), OperationFault::Full));
    let gate = ToolGate::shut();
    let session = open(&faulty, &gate).await;
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    faulty.arm_named("append", 0);
    gate.open_for_all();
    let (fate, receipt) = tokio::time::timeout(BOUND, ended(&session)).await.unwrap();
    assert!(matches!(fate, ItemOutcome::Failed(_)), "{fate:?}");
    assert!(receipt.unrecorded.as_ref().is_some_and(|why| why.contains("full")), "{receipt}");
}
