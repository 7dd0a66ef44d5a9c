//! Commands under the guard, with real processes: how they end, how they are stopped, and that nothing is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod process {
    pub(crate) mod support;

    mod blind;
    mod endings;
    mod given;
    mod leases;
    mod losses;
    mod output;
    mod pipes;
    mod roles;
    mod stops;
    mod suspended;
    mod trees;
    mod unguarded;
}
