//! The store in memory is a store: S6.2, S6.12, S7.4-S7.7, S8.1-S8.3 as far as they speak of what is kept.

use std::{collections::BTreeSet, sync::Arc};

use safepoint::{
    raw::store::Environment,
    store::{MemoryStore, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    store_suite::{
        self, BrokenStore, Population, Time, outside,
        play::{Player, script},
    },
};

fn fresh(outside: Environment) -> [Arc<dyn Store>; 2] {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside));
    [Arc::clone(&store), store]
}

#[tokio::test]
async fn sessions_are_made_listed_and_removed() -> Result<(), BrokenStore> {
    store_suite::sessions(&fresh).await
}

/// S7.4
#[tokio::test]
async fn one_holds_a_session_at_a_time() -> Result<(), BrokenStore> {
    store_suite::leases(&fresh).await
}

/// S7.6, S7.7
#[tokio::test]
async fn journals_are_whole_and_chained() -> Result<(), BrokenStore> {
    store_suite::journal(&fresh).await
}

/// S6.2, S6.12
#[tokio::test]
async fn items_are_in_one_place() -> Result<(), BrokenStore> {
    store_suite::inbox(&fresh).await
}

/// S6.2: a hundred thousand items that wait make nothing slow but what is about all of them.
#[tokio::test]
async fn an_inbox_may_be_deep() -> Result<(), BrokenStore> {
    store_suite::deep_inbox(&fresh, 100_000).await
}

/// S7.5
#[tokio::test]
async fn wishes_hold_until_they_are_seen_to() -> Result<(), BrokenStore> {
    store_suite::stops(&fresh).await
}

/// S8.1-S8.3, S8.5
#[tokio::test]
async fn approvals_are_decided_once() -> Result<(), BrokenStore> {
    store_suite::approvals(&fresh).await
}

/// S1.5, S7.5
#[tokio::test]
async fn what_others_do_is_noticed() -> Result<(), BrokenStore> {
    store_suite::notices(&fresh).await
}

/// S7.6, S7.7
#[tokio::test]
async fn a_fault_leaves_all_of_it_or_nothing() -> Result<(), BrokenStore> {
    store_suite::faults(&fresh).await
}

/// S7.6, S7.7: every operation of the trait goes wrong somewhere in the suite: a new one cannot be forgotten.
#[tokio::test]
async fn the_suite_asks_for_every_operation_there_is() {
    let source = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/safepoint/src/contract/store.rs"
    ))
    .unwrap();
    let (_, of_the_trait) = source.split_once("pub trait Store").unwrap();
    let methods = of_the_trait.lines().filter_map(|line| line.strip_prefix("    fn ")?.split_once('('));
    let mut all: BTreeSet<&str> = methods.map(|(name, _)| name).collect();
    assert!(all.len() >= 20, "{all:?}");
    // A stream of hints: it answers nothing that could go wrong. `notices` cuts it.
    assert!(all.remove("changes"));
    let (time, lives) = (Time::default(), Population::default());
    let [store, _] = fresh(outside(&time, &lives));
    let watched = Arc::new(FaultStore::over(store, usize::MAX, OperationFault::Refused));
    let mut player = Player::of(Arc::clone(&watched) as Arc<dyn Store>, &time, &lives);
    for step in script() {
        // Some are refused, and asked all the same.
        drop(player.play(&step).await);
    }
    assert_eq!(watched.names(), all);
}
