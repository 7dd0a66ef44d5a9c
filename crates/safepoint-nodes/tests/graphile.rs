//! Wakes by Graphile Worker's tables, on a real PostgreSQL server (S7.71).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[expect(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../safepoint-stores/tests/postgres/cluster.rs"]
mod cluster;

#[path = "queued/figures.rs"]
mod figures;
#[path = "queued/nodes.rs"]
mod nodes;

mod graphile {
    mod faults;
    mod figures;
    mod rights;
    mod wakes;
    mod world;
}
