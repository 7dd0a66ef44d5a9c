//! What a command starts with that is not the runtime's: no signal that is ignored, none that is blocked (S4.9).
//!
//! A signal that is ignored stays so over an exec, so that a runtime under `nohup`, or in the background of a script,
//! would have commands that do not hear SIGINT.

use std::{io, mem::MaybeUninit, os::unix::process::CommandExt, process::Command};

/// Has the command hear every signal as a program from a login shell does.
pub(super) fn hear_signals(command: &mut Command) {
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe {
        command.pre_exec(reset);
    }
}

/// Larger than what any kernel reads of a signal's action.
const ACTION_WORDS: usize = 8;
/// Bytes of a set of signals, as the kernel counts them.
const SET_BYTES: usize = 8;

fn reset() -> io::Result<()> {
    // All zero is the default action, without flags and mask.
    let usual = [0_u64; ACTION_WORDS];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the action is readable and installs no handler. By the system call, since the C library refuses signals
        // that it uses itself. The kernel refuses SIGKILL and SIGSTOP, which no process can ignore.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                usual.as_ptr(),
                std::ptr::null_mut::<u64>(),
                SET_BYTES,
            )
        };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `none` is initialised by sigemptyset before it is used.
    let unblocked = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if unblocked == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
