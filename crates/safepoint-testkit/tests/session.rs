//! Sessions over a real socket: turns, pushes, steers, preempts, stops, and where every item came to rest.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "session/basics.rs"]
mod basics;
#[path = "session/durable.rs"]
mod durable;
#[path = "session/world.rs"]
mod world;
