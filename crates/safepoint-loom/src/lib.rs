//! Every interleaving of what the engine's tasks and handles have in common, explored by loom: the mailbox, the door of a
//! session, and what a ticket tells. They are the engine's own files, in a crate that has nothing else: under `--cfg loom`
//! it takes seconds to build, where the engine with all that it uses takes minutes. Without that it is empty.

#![cfg(loom)]
#![expect(dead_code, unreachable_pub, reason = "the engine's files have more than is explored")]

#[cfg(test)]
mod explored;

mod session;
mod sync;
mod value;
