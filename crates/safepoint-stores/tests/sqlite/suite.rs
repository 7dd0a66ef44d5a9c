//! The store in a file is a store: S6.2, S6.12, S7.4-S7.7, S8.1-S8.3 as far as they speak of what is kept.

use safepoint_testkit::store_suite::{self, BrokenStore};

use super::support::fresh;

#[tokio::test]
async fn sessions_are_made_listed_and_removed() -> Result<(), BrokenStore> {
    store_suite::sessions(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S7.4
#[tokio::test]
async fn one_holds_a_session_at_a_time() -> Result<(), BrokenStore> {
    store_suite::leases(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S7.12, S7.13
#[tokio::test]
async fn a_node_holds_all_by_one_lease() -> Result<(), BrokenStore> {
    store_suite::nodes(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S7.46-S7.48
#[tokio::test]
async fn what_wants_an_owner_is_due() -> Result<(), BrokenStore> {
    store_suite::due(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S7.6, S7.7
#[tokio::test]
async fn journals_are_whole_and_chained() -> Result<(), BrokenStore> {
    store_suite::journal(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S6.2, S6.12
#[tokio::test]
async fn items_are_in_one_place() -> Result<(), BrokenStore> {
    store_suite::inbox(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S6.2: many items that wait make nothing slow but what is about all of them.
#[tokio::test]
async fn an_inbox_may_be_deep() -> Result<(), BrokenStore> {
    store_suite::deep_inbox(&fresh(&tempfile::tempdir().unwrap()), 20_000).await
}

/// S7.5
#[tokio::test]
async fn wishes_hold_until_they_are_seen_to() -> Result<(), BrokenStore> {
    store_suite::stops(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S8.1-S8.3, S8.5
#[tokio::test]
async fn approvals_are_decided_once() -> Result<(), BrokenStore> {
    store_suite::approvals(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S1.5, S7.5
#[tokio::test]
async fn what_others_do_is_noticed() -> Result<(), BrokenStore> {
    store_suite::notices(&fresh(&tempfile::tempdir().unwrap())).await
}

/// S7.60
#[tokio::test]
async fn a_session_is_the_same_in_another_store() -> Result<(), BrokenStore> {
    let folder = tempfile::tempdir().unwrap();
    store_suite::images(&fresh(&folder)).await
}

/// S7.6, S7.7
#[tokio::test]
async fn a_fault_leaves_all_of_it_or_nothing() -> Result<(), BrokenStore> {
    store_suite::faults(&fresh(&tempfile::tempdir().unwrap())).await
}
