//! The engine's locks, mailbox and watched state, on loom's mutex.

#[path = "../../safepoint/src/sync/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "../../safepoint/src/sync/mutex.rs"]
mod mutex;
#[path = "../../safepoint/src/sync/watched.rs"]
pub(crate) mod watched;

pub(crate) use mutex::{Mutex, MutexGuard};
