//! The guard: one small process per runtime, which starts a keeper for each command and outlives its runtime just long
//! enough to leave nothing behind.
//!
//! ```text
//! runtime ──control (lifeline)──▶ guard          own session, subreaper, deaf to SIGINT, SIGTERM, SIGHUP
//!    └────orders, words──────────▶  └─ keeper    a fork of the guard for one command: subreaper of its tree
//!    ◀────────output────────────────────└─ command   own session; killed if its keeper dies
//! ```
//!
//! **Invariants**
//! - Everything here is synchronous and single-threaded: only so may it fork without exec.
//! - The guard holds no output and parses no order: a message is one byte with the file descriptors of a command.
//! - End of file on the control socket means that the runtime is gone. The keepers see the end of their own sockets at
//!   the same moment and kill their trees; the guard waits for them, then kills whatever is left.
//! - A child of the guard that is no keeper was orphaned by a keeper's death, and is killed.
//! - A command can suspend all of us, since it is of the same user. A process that learns of it continues the suspended one: the
//!   guard its keepers, the runtime both, and the kernel the guard, when the runtime dies.

use std::{
    collections::HashSet,
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    process,
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg},
    process::{
        Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, set_parent_process_death_signal,
        setsid, wait,
    },
};

use super::{lease::timespec, runtime::Runtime, secrecy, tree};
use crate::limits;

mod cgroup;

mod keeper;
#[expect(
    unsafe_code,
    reason = "fork, signalfd and pre_exec have no safe form; each block argues its own case"
)]
mod sys;

/// The first argument that makes a program a guard. The second one says whose.
pub(super) const ARGUMENT: &str = "__safepoint-guard";
/// What a guard and its keepers are called.
pub(super) const NAME: &str = "safepoint-guard";
/// The descriptors of one command: its keeper's socket, standard input, standard output and standard error.
pub(super) const HANDED_OVER: usize = 4;

/// Runs the guard until its runtime is gone and nothing is left below it. Its control socket is standard input, and the
/// timer of the leases is standard output.
pub(super) fn run() -> process::ExitCode {
    match Guard::enter().and_then(Guard::serve) {
        Ok(()) => process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("safepoint guard: {error}");
            process::ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Guard {
    control: OwnedFd,
    signals: OwnedFd,
    timer: OwnedFd,
    runtime: Runtime,
    keepers: HashSet<Pid>,
}

impl Guard {
    fn enter() -> io::Result<Self> {
        secrecy::be_private();
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        let timer = io::stdout().as_fd().try_clone_to_owned()?;
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        if let Err(error) = setsid() {
            // The process that started us made us a group leader already: no terminal's Ctrl-C reaches us then either.
            if error != Errno::PERM {
                return Err(error.into());
            }
        }
        set_child_subreaper(Some(getpid()))?;
        // One that a command has suspended could not see that its runtime is gone.
        set_parent_process_death_signal(Some(Signal::CONT))?;
        sys::name_process(NAME);
        cgroup::tidy();
        let runtime = std::env::args().nth(2).and_then(|runtime| Runtime::read(&runtime));
        let runtime = runtime.unwrap_or_else(Runtime::unknown);
        Ok(Self { control, signals: sys::take_signals()?, timer, runtime, keepers: HashSet::new() })
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            let [asked, signalled] = wait_for([self.control.as_fd(), self.signals.as_fd()], None)?;
            if signalled {
                sys::drain_signals(&self.signals);
                self.reap();
            }
            if asked && !self.take_command()? {
                return self.close();
            }
        }
    }

    /// Starts a keeper; false if the runtime is gone.
    fn take_command(&mut self) -> io::Result<bool> {
        let Some(fds) = receive(&self.control)? else { return Ok(false) };
        let Ok([socket, stdin, stdout, stderr]) = <[OwnedFd; HANDED_OVER]>::try_from(fds) else {
            return Ok(true); // cut short for want of descriptors: the socket's end is closed, and the runtime sees it
        };
        match sys::fork() {
            Ok(sys::Fork::Parent(keeper)) => {
                self.keepers.insert(keeper);
            }
            Ok(sys::Fork::Child) => {
                let guard = rustix::process::getppid();
                // What is the guard's must not live on in a keeper: its end of the control socket above all.
                drop((
                    std::mem::replace(&mut self.control, socket.try_clone()?),
                    std::mem::take(&mut self.keepers),
                ));
                let runtime = self.runtime.clone();
                let held = keeper::Holders { guard, runtime, timer: self.timer.try_clone()? };
                keeper::keep(UnixStream::from(socket), [stdin, stdout, stderr], held);
            }
            Err(_) => {} // no process to be had: the descriptors close, and the runtime sees the end of its socket
        }
        Ok(true)
    }

    /// Reaps keepers and whatever came back to us; kills what a keeper's death has orphaned. A keeper that was suspended
    /// continues: a command can send SIGSTOP to its parent, and would so be out of reach.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            if status.stopped() {
                if kill_process(pid, Signal::CONT).is_err() {
                    // it was killed meanwhile, and is reaped next
                }
            } else if self.keepers.remove(&pid) {
                cgroup::clear(&self.runtime, pid.as_raw_nonzero().get());
            }
        }
        for orphan in tree::children_of(own_pid()) {
            if Pid::from_raw(orphan.pid).is_some_and(|pid| !self.keepers.contains(&pid)) {
                kill_below(&orphan);
            }
        }
    }

    /// The runtime is gone: lets the keepers do their work, then leaves nothing.
    fn close(mut self) -> io::Result<()> {
        let patience = Instant::now() + limits::KEEPERS;
        let mut pause = limits::SWEEP;
        loop {
            sys::drain_signals(&self.signals);
            self.reap();
            if matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
                cgroup::tidy();
                return Ok(());
            }
            if Instant::now() >= patience {
                tree::kill(&tree::descendants(own_pid()));
            }
            wait_for([self.signals.as_fd()], Some(pause))?;
            pause = (pause * 2).min(limits::SWEEP_SLOW);
        }
    }
}

fn kill_below(orphan: &super::TreeMember) {
    tree::kill(tree::descendants(orphan.pid).iter().chain([orphan]));
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Which of them can be read; none when the time is over.
fn wait_for<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    time: Option<std::time::Duration>,
) -> io::Result<[bool; N]> {
    let mut polled = fds.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
    let time = time.map(timespec);
    match poll(&mut polled, time.as_ref()) {
        Ok(_) => Ok(polled.map(|fd| !fd.revents().is_empty())),
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// The descriptors of one message; none at the end.
fn receive(control: impl AsFd) -> io::Result<Option<Vec<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_OVER))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    let message = match recvmsg(
        control,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    ) {
        Ok(message) => message,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Some(Vec::new())),
        Err(Errno::CONNRESET) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if message.bytes == 0 {
        return Ok(None);
    }
    let whole = !message.flags.contains(ReturnFlags::CTRUNC);
    let mut fds = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    Ok(Some(if whole { fds } else { Vec::new() }))
}
