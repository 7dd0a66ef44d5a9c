//! The simulated fleet, and that it finds what is taken out.

use super::*;

mod explored;
mod model;

/// How many seeds are played in the tests. `cargo xtask fleet` plays for minutes.
const SEEDS: u64 = 40;
/// Within how many seeds a rule that was taken out is found.
const FOUND_WITHIN: u64 = 1_000;

/// S7.63: everything follows from the seed.
#[test]
fn one_seed_twice_is_one_trace() {
    let plan = FleetPlan::small();
    let [first, again, other] = [1, 1, 2].map(|seed| simulate(&plan, seed));
    assert_eq!(first.hash, again.hash, "{:?} {:?}", first.last, again.last);
    assert_eq!(first.figures.counts, again.figures.counts);
    assert_ne!(first.hash, other.hash);
}

/// S7.64, S7.13, S7.14, S7.61: whatever goes wrong, one owner writes, no effect begins twice, and nothing starves.
#[test]
fn no_seed_breaks_a_rule() {
    for seed in 0..SEEDS {
        let report = simulate(&FleetPlan::small(), seed);
        assert_eq!(report.broken, None, "seed {seed}:\n{}", report.last.join("\n"));
        assert!(report.figures.effects > 0, "seed {seed} did nothing");
    }
}

fn found(sabotage: Sabotage) -> Option<FleetReport> {
    let plan = FleetPlan::small().without(sabotage);
    (0..FOUND_WITHIN).map(|seed| simulate(&plan, seed)).find(|report| report.broken.is_some())
}

/// S7.64, S7.4: without the check of epochs a stale owner writes, and that is found.
#[test]
fn a_missing_epoch_check_is_found() {
    let found = found(Sabotage::NoEpochCheck).expect("a seed finds it");
    assert!(found.broken.as_ref().is_some_and(|broken| broken.contains("wrote")), "{:?}", found.broken);
}

/// S7.64, S7.13: without the margin an effect is alive when its session has another owner, and that is found.
#[test]
fn a_missing_margin_is_found() {
    let found = found(Sabotage::NoMargin).expect("a seed finds it");
    assert!(found.broken.as_ref().is_some_and(|broken| broken.contains("alive")), "{:?}", found.broken);
}
