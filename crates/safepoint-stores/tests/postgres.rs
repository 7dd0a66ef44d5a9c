//! The store in PostgreSQL: what every store must do, on a real server, and what a server adds to it: lost answers, restarts, other
//! nodes, roles.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "postgres/cluster.rs"]
mod cluster;
#[path = "postgres/connected.rs"]
mod connected;
#[path = "postgres/damage.rs"]
mod damage;
#[path = "postgres/database.rs"]
mod database;
#[path = "postgres/lost.rs"]
mod lost;
#[path = "postgres/nodes.rs"]
mod nodes;
#[path = "postgres/plans.rs"]
mod plans;
#[path = "postgres/proxy.rs"]
mod proxy;
#[path = "postgres/random.rs"]
mod random;
#[path = "postgres/restarts.rs"]
mod restarts;
#[path = "postgres/suite.rs"]
mod suite;
#[path = "postgres/support.rs"]
mod support;
#[path = "postgres/touched.rs"]
mod touched;
