//! The store in a file: what every store must do, and what a file adds to it: faults, crashes, other processes, damage.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

#[path = "sqlite/crash.rs"]
mod crash;
#[path = "sqlite/damage.rs"]
mod damage;
#[path = "sqlite/disk.rs"]
mod disk;
#[path = "sqlite/faults.rs"]
mod faults;
#[path = "sqlite/file.rs"]
mod file;
#[path = "sqlite/golden.rs"]
mod golden;
#[path = "sqlite/processes.rs"]
mod processes;
#[path = "sqlite/random.rs"]
mod random;
#[path = "sqlite/roles.rs"]
mod roles;
#[path = "sqlite/suite.rs"]
mod suite;
#[path = "sqlite/support.rs"]
mod support;
#[path = "sqlite/torn.rs"]
mod torn;
