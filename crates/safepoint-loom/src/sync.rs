//! The engine's locks, mailbox and what is told, on loom's mutex.

#[path = "../../safepoint/src/sync/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "../../safepoint/src/sync/mutex.rs"]
mod mutex;
#[path = "../../safepoint/src/sync/told.rs"]
pub(crate) mod told;

pub(crate) use mutex::{Mutex, MutexGuard};
