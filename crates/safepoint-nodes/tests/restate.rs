//! Wakes by the engine Restate, on a real server (S7.72): `cargo xtask peers restate` installs one and runs these.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "queued/figures.rs"]
mod figures;
#[path = "queued/nodes.rs"]
mod nodes;

mod restate {
    mod address;
    mod engine;
    mod figures;
    mod wakes;
    mod world;
}
