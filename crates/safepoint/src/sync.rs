//! What tasks and handles share, and where foreign code is called.
//!
//! **Invariants**: locks and unwinding are handled here and nowhere else in the engine: a lock is never
//! poisoned, and a panic in foreign code is a value.

pub(crate) mod callback;
pub(crate) mod clock;
pub(crate) mod mailbox;
mod mutex;
mod reply;
pub(crate) mod watched;

pub(crate) use mutex::{Mutex, MutexGuard};
pub(crate) use reply::reply;
