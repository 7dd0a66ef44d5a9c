//! Real nodes: processes that serve sessions of one database, each under a hostname of its own, so that no death is proven by a process
//! id. They are killed, paused, cut off and restarted while commands run; a ledger that the commands write says what has happened.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[expect(dead_code, reason = "the tests of the store use all of it")]
#[path = "../../safepoint-stores/tests/postgres/cluster.rs"]
mod cluster;

mod nodes {
    mod cut;
    mod deaths;
    mod idle;
    mod link;
    mod restarts;
    mod world;
}
