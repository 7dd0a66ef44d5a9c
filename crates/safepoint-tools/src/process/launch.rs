//! The runtime's side of a guard: launching it, handing it commands, and noticing its death.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream as StdStream,
    path::Path,
    process::Stdio,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::{
    io::Interest,
    net::UnixStream,
    process::{Child, Command},
};

use super::{SpawnError, environment, guard, lease::Timer, runtime::Runtime, tree};

/// A guard and the lifeline to it: when this is dropped, the guard ends everything.
#[derive(Debug)]
pub(super) struct Guard {
    control: UnixStream,
    pid: u32,
    /// Reaped by tokio once it has ended, also after this is dropped.
    _child: Child,
}

impl Guard {
    /// Launches `program` as a guard. It gets no key of ours, and the timer of our leases.
    pub(super) fn launch(program: &Path, timer: &Timer) -> Result<Self, SpawnError> {
        let start = || {
            let (ours, theirs) = StdStream::pair()?;
            ours.set_nonblocking(true)?;
            let child = Command::new(program)
                .args([guard::ARGUMENT, &Runtime::here().to_string()])
                .env_clear()
                .envs(std::env::vars_os().filter(|(name, _)| environment::is_open(name)))
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::from(timer.share()?))
                .stderr(Stdio::null())
                .spawn()?;
            let pid = child.id().unwrap_or_default();
            Ok(Self { control: UnixStream::from_std(ours)?, pid, _child: child })
        };
        start().map_err(|source| SpawnError::Guard { program: program.to_owned(), source })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether its end of the control socket is open. It never writes, so anything readable is the end.
    pub(super) fn is_alive(&self) -> bool {
        let mut byte = [0; 1];
        matches!(self.control.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Continues it, if a command has suspended it.
    pub(super) fn wake(&self) {
        // It is our child and not waited for, so its number is its own.
        if let Some(stat) = tree::stat(self.pid.cast_signed()) {
            tree::wake(&stat.member);
        }
    }

    /// Hands over the descriptors of one command.
    ///
    /// # Cancel safety
    /// They are handed over whole, or not at all.
    pub(super) async fn hand_over(&self, fds: [BorrowedFd<'_>; guard::HANDED_OVER]) -> io::Result<()> {
        self.control.async_io(Interest::WRITABLE, || send(&self.control, &fds)).await
    }
}

impl Drop for Guard {
    /// It sees the end of its runtime, and so it must not be suspended.
    fn drop(&mut self) {
        self.wake();
    }
}

fn send(control: &UnixStream, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(guard::HANDED_OVER))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    sendmsg(control.as_fd(), &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
