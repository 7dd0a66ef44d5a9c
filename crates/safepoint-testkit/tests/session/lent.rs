//! A store that is only lent, for a stop or a look back, panics: that is an answer, and the caller's task goes on.

use std::sync::Arc;

use safepoint::{
    StopRequest,
    session::{SessionStop, StoredStop, read_journal, store_stop},
    store::{Error, MemoryStore, Store},
};
use safepoint_testkit::{
    fault_store::{At, FaultStore, OperationFault},
    script::Reply,
};

use super::{
    desk::{Desk, asks},
    world::open_here,
};

const MOMENTS: [At; 3] = [At::ItsCall, At::ItsPoll, At::ItsDrop];

/// A session whose last turn waits for a person, in a store that panics then.
async fn waiting(moment: At, name: &'static str) -> FaultStore {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([asks(), Reply::text("done")]);
    let session = open_here(desk.chat(), &inner).await.unwrap();
    session.push("may I?".to_owned()).unwrap().outcome().await;
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    let faulty = FaultStore::unarmed(inner, OperationFault::Panics(moment));
    faulty.arm_named(name, 0);
    faulty
}

/// S2.16, S7.5: whatever the store is asked for a stop, and whenever it panics: what only read has failed, and of what wrote
/// nobody knows.
#[tokio::test]
async fn a_stop_through_a_store_that_panics_is_told() {
    let stop = StoredStop::Turn(None, StopRequest::now());
    for moment in MOMENTS {
        for name in ["approvals", "read", "ask_stop"] {
            let store = waiting(moment, name).await;
            let told = store_stop(&store, &"s".into(), &stop).await.unwrap_err();
            assert!(store.was_met(), "{name}");
            assert!(told.to_string().contains("the store panicked"), "{name}, {moment:?}: {told}");
            assert_eq!(told.is_uncertain(), name == "ask_stop", "{name}, {moment:?}: {told:?}");
        }
    }
}

/// S2.16: the same of a look back.
#[tokio::test]
async fn a_look_back_on_a_store_that_panics_is_told() {
    for moment in MOMENTS {
        let store = waiting(moment, "read").await;
        let told = read_journal(&store, &"s".into(), drop).await.unwrap_err();
        assert!(matches!(told, Error::Failed(_)), "{moment:?}: {told:?}");
        assert!(store.was_met() && told.to_string().contains("the store panicked"), "{told}");
    }
}
