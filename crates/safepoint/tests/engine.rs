//! The engine in process, on a controlled clock: contracts, outcomes, events, hooks.

#[path = "engine/contracts.rs"]
mod contracts;
#[path = "engine/outcomes.rs"]
mod outcomes;

#[path = "engine/world.rs"]
mod world;
