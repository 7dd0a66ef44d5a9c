//! Agents behind the A2A protocol, over real sockets: what a stop does to their work, and what is said of it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "a2a/breaking.rs"]
mod breaking;
#[path = "a2a/crash.rs"]
mod crash;
#[path = "a2a/dialects.rs"]
mod dialects;
#[path = "a2a/hostile.rs"]
mod hostile;
#[path = "a2a/looking.rs"]
mod looking;
#[path = "a2a/merging.rs"]
mod merging;
#[path = "a2a/places.rs"]
mod places;
#[path = "a2a/questions.rs"]
mod questions;
#[path = "a2a/stopping.rs"]
mod stopping;
#[path = "a2a/suite.rs"]
mod suite;
#[path = "a2a/talking.rs"]
mod talking;
#[path = "a2a/traces.rs"]
mod traces;
#[path = "a2a/truth.rs"]
mod truth;
#[path = "a2a/world.rs"]
mod world;
