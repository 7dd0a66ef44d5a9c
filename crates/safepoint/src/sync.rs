//! What tasks and handles share, and where the code of others is called.
//!
//! **Invariants**: locks and unwinding are seen to here and nowhere else in the engine: a lock is never poisoned, and a panic in
//! the code of others is a value.

pub(crate) mod callback;
pub(crate) mod mailbox;
mod mutex;
mod reply;
pub(crate) mod told;

pub(crate) use mutex::{Mutex, MutexGuard};
pub(crate) use reply::reply;
