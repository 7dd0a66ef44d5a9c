//! Every interleaving of what the engine's tasks and handles share, explored by loom: the mailbox, the inbox entry of a
//! session, and the state of a ticket. The crate compiles the engine's files and nothing else: under `--cfg loom` it builds
//! in seconds, where the whole engine takes minutes. Without `--cfg loom` it is empty.

#![cfg(loom)]
#![expect(dead_code, reason = "the engine's files have more than is explored")]

#[cfg(test)]
mod explored;

mod session;
mod sync;
mod value;
