//! How long it takes from a wake to an owner: printed, and judged by no test.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use safepoint::store::Store;
use safepoint_nodes::Placement;
use safepoint_testkit::wait;

use super::nodes::{StoreHands, due, wake};

/// How many wakes are measured, one after the other, and how many come before that.
const TIMES: usize = 200;
const BEFORE: usize = 10;

/// Wakes sessions by this placement, which hands them to these hands, and prints the median and the 95th percentile.
pub(crate) async fn print(what: &str, store: &Arc<dyn Store>, placement: &dyn Placement, hands: &StoreHands) {
    let mut took = Vec::new();
    for at in 0..BEFORE + TIMES {
        let session = format!("{what} {at}");
        due(&**store, "", &[&session]).await;
        let woken = Instant::now();
        wake(placement, "", &[&session]).await;
        let since = wait::so("it is owned", || hands.since(&session)).await;
        took.push(since.saturating_duration_since(woken));
        hands.let_go.add_permits(1);
    }
    let mut took: Vec<Duration> = took.split_off(BEFORE);
    took.sort();
    let (half, most) = (took[TIMES / 2], took[TIMES * 95 / 100]);
    println!("wake to owned by {what}: p50 {half:.1?}, p95 {most:.1?}");
}
