//! Snapshots of real directories: what they hold, what a restore does, and what a process that is ended leaves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod snapshots {
    mod cost;
    mod cut_off;
    mod folder;
    mod hostile;
    mod property;
    mod restore;
    mod support;
    mod take;
}
