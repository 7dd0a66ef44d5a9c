//! The engine in process, on a controlled clock: contracts, outcomes, events, hooks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "engine/contracts.rs"]
mod contracts;
#[path = "engine/outcomes.rs"]
mod outcomes;

#[path = "engine/world.rs"]
mod world;
