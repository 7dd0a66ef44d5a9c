//! Keeping a runtime's keys from the other processes of its user (S4.13).

use std::{
    ffi::{CStr, OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::environment;

unsafe extern "C" {
    /// The environment as the C library has it: an array of `NAME=VALUE`, ended by a null pointer.
    static environ: *const *mut libc::c_char;
}

/// Keeps the secrets of this process to itself: other processes of the same user can no longer read its memory, nor its
/// environment, and `/proc/PID/environ` holds no value but harmless ones such as `PATH`, also for root. The process
/// itself reads its environment as before.
///
/// Call it in `main` before any thread is made, after [`guard_main_if_asked`](super::guard_main_if_asked). It also means
/// that a debugger of the same user cannot be attached, and that a crash leaves no core file. A guard does it by itself.
///
/// # Panics
/// If another thread exists: the environment is changed, which is safe in one thread only.
pub fn keep_secrets() {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert!(threads == 1, "keep_secrets is called before any thread is made");
    be_private();
    for (name, value) in hidden() {
        hide(&name, &value);
    }
}

/// Keeps the memory of this process from other processes of its user. A fork inherits it, a program that is executed
/// does not.
pub(super) fn be_private() {
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        // It cannot be: the request is valid. Then the process is as private as it was.
    }
}

fn hidden() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !environment::is_open(name)).collect()
}

/// Moves one variable from where the kernel shows it to memory that it does not show.
fn hide(name: &OsStr, value: &OsStr) {
    let Some(shown) = shown_value(name) else { return };
    // SAFETY: this is the only thread. The old text is not freed by this, and nothing else in a program that has just
    // begun points into it.
    unsafe {
        std::env::set_var(name, value);
        std::ptr::write_bytes(shown, 0, value.len());
    }
}

/// Where the value of a variable is.
fn shown_value(name: &OsStr) -> Option<*mut u8> {
    // SAFETY: this is the only thread, so nothing changes the array, which ends with a null pointer, or its texts.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if let Some(value) = text.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some((*entry).cast::<u8>().add(text.len() - value.len()));
            }
            entry = entry.add(1);
        }
    }
    None
}
