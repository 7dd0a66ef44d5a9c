//! A fleet of nodes, simulated: real [nodes](safepoint::session::Node), leases and placement over a store in memory, in one thread with a
//! paused clock, and everything that goes wrong follows from a seed (S7.63).
//!
//! Owners are scripted: they take sessions by the contract of the store, begin effects, obey stops, and give the sessions back. Or they
//! are the sessions of the engine, with an agent that calls a tool ([`Owners`]). Between
//! each node and the store is a network that delays messages, loses answers and is cut. Processes crash, are paused and drain, the store
//! goes away, clocks are up to 2 % off, and wakes are lost, doubled and brought to the wrong node. At every step it is checked that one
//! owner writes, that no effect begins twice, after its lease or beside one of another owner, and that what is recorded as stopped has
//! ended; and at the end that each stop was recorded and that nothing starves (S7.64).
//!
//! ```
//! use safepoint_fleet::{FleetPlan, simulate};
//! let report = simulate(&FleetPlan::small(), 7);
//! assert_eq!(report.broken, None, "{}", report.last.join("\n"));
//! assert_eq!(report.hash, simulate(&FleetPlan::small(), 7).hash, "one seed twice is one trace");
//! ```

mod delivery;
mod dice;
mod effect;
mod figures;
mod judge;
mod life;
mod link;
mod owner;
mod payer;
mod plan;
mod sessions;
mod simulation;
mod site;
mod sync;
mod trace;
mod wire;
mod world;

pub use figures::FleetFigures;
pub use plan::{FleetPlan, Owners, Sabotage};
pub use simulation::{FleetReport, simulate};

#[cfg(test)]
mod tests;
