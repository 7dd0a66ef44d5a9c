//! Numbers that no one else has: the one place where they are made, so that a simulation can have the same ones twice.

use std::cell::Cell;

use uuid::Uuid;

thread_local! {
    /// The state of the simulation of this thread, if it runs one.
    static SEEDED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A number that no one else has: a UUID of version 7. In a [seeded](Seeded) thread it is the next one of its seed.
#[must_use]
pub fn unique() -> Uuid {
    let Some(state) = SEEDED.get() else { return Uuid::now_v7() };
    // The first half counts, so that ids are made in the order in which they sort, as those of version 7 are.
    SEEDED.set(Some(state.wrapping_add(1)));
    Uuid::from_u64_pair(state, mixed(state))
}

/// The finalizer of splitmix64: neighbours are far apart.
fn mixed(state: u64) -> u64 {
    let mut mixed = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// While it lives, every id that this thread makes follows from a seed: for simulations, which are one thread.
///
/// ```
/// use safepoint_model::{ids::RunId, raw::ids::Seeded};
/// let ids = || { let _seeded = Seeded::with(7); [RunId::fresh(), RunId::fresh()] };
/// assert_eq!(ids(), ids());
/// assert_ne!(RunId::fresh(), RunId::fresh());
/// ```
#[derive(Debug)]
#[must_use = "ids are random again once it is dropped"]
pub struct Seeded {
    before: Option<u64>,
    /// It belongs to its thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl Seeded {
    /// From now on.
    pub fn with(seed: u64) -> Self {
        // Ids of two seeds have nothing in common.
        const COUNTED: u32 = 32;
        let first = mixed(seed) >> COUNTED << COUNTED;
        Self { before: SEEDED.replace(Some(first)), _here: std::marker::PhantomData }
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        SEEDED.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// S7.63: one seed gives the same ids twice, two seeds give others, and none comes twice.
    #[test]
    fn the_ids_of_a_simulation_follow_from_its_seed() {
        let made = |seed| {
            let _seeded = Seeded::with(seed);
            [(); 100].map(|()| unique())
        };
        assert_eq!(made(1), made(1));
        let all: BTreeSet<Uuid> = [made(1), made(2), made(3)].concat().into_iter().collect();
        assert_eq!(all.len(), 300);
        assert_ne!(made(1)[0], {
            let _seeded = Seeded::with(1);
            let _inner = Seeded::with(2);
            unique()
        });
        assert_eq!(unique().get_version_num(), 7, "none is seeded any more");
    }
}
