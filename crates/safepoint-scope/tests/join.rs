//! The demand is a join-semilattice (S1.4).

use std::time::Duration;

use proptest::prelude::*;
use safepoint_scope::{Demand, Mode, Reach, SafePoints};
use tokio::time::Instant;

fn demand(epoch: Instant) -> impl Strategy<Value = Demand> {
    let points = prop_oneof![
        Just(SafePoints::AFTER_MODEL),
        Just(SafePoints::AFTER_STARTED_CALLS),
        Just(SafePoints::AFTER_ALL_CALLS),
        Just(SafePoints::ANY),
        Just(SafePoints::AFTER_MODEL | SafePoints::AFTER_ALL_CALLS),
    ];
    let mode = prop_oneof![points.prop_map(Mode::At), Just(Mode::Now)];
    (mode, any::<bool>(), proptest::option::of(0u64..9), 0u64..9).prop_map(
        move |(mode, tree, deadline, cap)| Demand {
            mode,
            reach: if tree { Reach::Tree } else { Reach::Root },
            deadline: deadline.filter(|_| mode != Mode::Now).map(|secs| epoch + Duration::from_secs(secs)),
            cleanup_cap: Duration::from_secs(cap),
        },
    )
}

fn three() -> impl Strategy<Value = (Demand, Demand, Demand)> {
    let epoch = Instant::now();
    (demand(epoch), demand(epoch), demand(epoch))
}

proptest! {
    /// S1.4: the order of requests does not matter, nor does saying one twice.
    #[test]
    fn the_join_is_commutative_associative_idempotent((a, b, c) in three()) {
        prop_assert_eq!(a.join(b), b.join(a));
        prop_assert_eq!(a.join(b).join(c), a.join(b.join(c)));
        prop_assert_eq!(a.join(a), a);
    }

    /// S1.4: a later request only strengthens: whatever fired still fires, no sooner deadline is lost, no cap grows.
    #[test]
    fn the_join_only_strengthens((a, b, _) in three()) {
        let both = a.join(b);
        for gate in [SafePoints::AFTER_MODEL, SafePoints::AFTER_STARTED_CALLS, SafePoints::AFTER_ALL_CALLS] {
            prop_assert!(!a.fires_at(gate) || both.fires_at(gate));
        }
        prop_assert!(both.cleanup_cap <= a.cleanup_cap && both.reach >= a.reach);
        prop_assert!(both.mode == Mode::Now || both.deadline.is_some() || a.deadline.is_none());
        prop_assert!(both.mode != Mode::Now || both.deadline.is_none());
        prop_assert_eq!(both.join(a), both);
    }
}
