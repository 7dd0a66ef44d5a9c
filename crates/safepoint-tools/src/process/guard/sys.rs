//! The calls that have no safe form. Everything here runs in a single-threaded process, or between fork and exec.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, FromRawFd, OwnedFd},
    os::unix::process::CommandExt,
    process::Command,
};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

/// Signals that end a process by default, and that people send to whatever they see: a guard is deaf to them.
const DEAF: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// What wakes a guard or keeper: a child's end, or (in a keeper) the guard's.
const HANDLED: [libc::c_int; 2] = [libc::SIGCHLD, libc::SIGUSR1];

/// Which side of a fork this is. Exhaustive: there are two.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process without exec.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: a guard has one thread, made by the kernel alone, so the child is not left with locks held by others.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(Pid::from_raw(pid).expect("a child's pid is positive"))),
    }
}

/// Makes signals readable instead of deadly, whatever the parent had done about them.
///
/// They are blocked, not ignored: an ignored signal would stay ignored in every command, a blocked one is unblocked by
/// the standard library before it executes the command.
pub(super) fn take_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is initialised by sigemptyset before use; the numbers are valid; no handler is installed.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in DEAF.into_iter().chain(HANDLED) {
            libc::sigaddset(set.as_mut_ptr(), signal);
            if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        if libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) == -1 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Takes what has arrived. Which signals they were is not asked: the state of the children is.
pub(super) fn drain_signals(signals: impl AsFd) {
    let mut one = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(&signals, &mut one).is_ok_and(|read| read > 0) {}
}

/// Gives the command its own session, ties its life to its keeper's, and puts it into its group.
pub(super) fn hold(command: &mut Command, cgroup: Option<OwnedFd>) {
    let keeper = rustix::process::getpid();
    let enter = move || {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(keeper) {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        if let Some(procs) = &cgroup {
            // "0" names the process that writes it.
            if rustix::io::write(procs, b"0").is_err() {
                // then the grade is the subreaper's: the keeper looks whether it worked
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe {
        command.pre_exec(enter);
    }
}

/// The name that people see in a process list.
pub(super) fn name_process(name: &str) {
    let named = std::ffi::CString::new(name).is_ok_and(|name| rustix::thread::set_name(&name).is_ok());
    if !named {
        // a name is a courtesy: without it the process works as well
    }
}
