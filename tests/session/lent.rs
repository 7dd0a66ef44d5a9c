//! A store that is only lent, for a stop or a look back, panics: the caller gets an error, and its task
//! continues.

use std::sync::Arc;

use safepoint::{
    StopRequest,
    raw::{StoredStop, read_journal, store_stop},
    session::SessionStop,
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

/// S2.16, S7.5: the store panics at any operation of a stop and any moment of it: what only read has failed,
/// and what wrote is in doubt.
#[tokio::test]
async fn a_stop_through_a_store_that_panics_is_reported() {
    let stop = StoredStop::Turn(None, StopRequest::now());
    for moment in MOMENTS {
        for name in ["approvals", "read", "ask_stop"] {
            let store = waiting(moment, name).await;
            let error = store_stop(&store, &"s".into(), &stop).await.unwrap_err();
            assert!(store.was_met(), "{name}");
            assert!(error.to_string().contains("the store panicked"), "{name}, {moment:?}: {error}");
            assert_eq!(error.is_uncertain(), name == "ask_stop", "{name}, {moment:?}: {error:?}");
        }
    }
}

/// S2.16: the same of a look back.
#[tokio::test]
async fn a_look_back_on_a_store_that_panics_is_reported() {
    for moment in MOMENTS {
        let store = waiting(moment, "read").await;
        let error = read_journal(&store, &"s".into(), drop).await.unwrap_err();
        assert!(matches!(error, Error::Failed(_)), "{moment:?}: {error:?}");
        assert!(store.was_met() && error.to_string().contains("the store panicked"), "{error}");
    }
}
