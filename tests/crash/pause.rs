//! Pausing a process that has a store open; the tests of the command line do it by this file too.

use std::{path::Path, process::Child, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait;

/// Pauses it at a moment when it writes nothing to this store. A process that is paused in a write blocks the
/// store: other writers get `busy` for the whole pause.
pub(crate) fn between_writes(child: &Child, store: &Path) {
    let pid = Pid::from_child(child);
    wait::until("it is paused between two writes", || {
        kill_process(pid, Signal::STOP).unwrap();
        until_paused(child);
        let other = rusqlite::Connection::open(store).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        let is_free = other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !is_free {
            kill_process(pid, Signal::CONT).unwrap();
        }
        is_free
    });
}

/// Waits until it is paused.
pub(crate) fn until_paused(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    wait::until("it is paused", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    });
}
