//! Sessions in a real file, owned by real processes that are killed: what is not lost, and what is not done
//! twice.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "crash/judge.rs"]
mod judge;
#[path = "crash/matrix.rs"]
mod matrix;
#[path = "crash/owners.rs"]
mod owners;
#[path = "crash/pause.rs"]
mod pause;
#[path = "crash/plot.rs"]
mod plot;
#[path = "crash/process.rs"]
mod process;
#[path = "crash/work.rs"]
mod work;
#[path = "crash/world.rs"]
mod world;
