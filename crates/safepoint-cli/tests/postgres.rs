//! The binary over a PostgreSQL database, on a real server: every command, several servers of sessions, and no password anywhere
//! (S7.58, S7.59).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[expect(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../safepoint-stores/tests/postgres/cluster.rs"]
mod cluster;

mod postgres {
    mod commands;
    mod copies;
    #[cfg(feature = "graphile")]
    mod placed;
    mod servers;
    mod world;
}
