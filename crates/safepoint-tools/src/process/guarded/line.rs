//! The socket to a keeper.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream as StdStream,
};

use rustix::net::{Shutdown, shutdown};
use tokio::net::UnixStream;

use super::super::{
    SpawnError,
    launch::Guard,
    stdio::Theirs,
    wire::{Frames, Word},
};

/// The socket to a keeper.
#[derive(Debug)]
pub(super) struct Line {
    socket: UnixStream,
    frames: Frames,
}

impl Line {
    /// Hands the other end to the guard, with the descriptors of the command.
    pub(super) async fn open(guard: &Guard, theirs: Theirs) -> Result<Self, SpawnError> {
        let (ours, keepers) = StdStream::pair().map_err(SpawnError::Io)?;
        ours.set_nonblocking(true).map_err(SpawnError::Io)?;
        let socket = UnixStream::from_std(ours).map_err(SpawnError::Io)?;
        let keepers = OwnedFd::from(keepers);
        let fds = [keepers.as_fd(), theirs.stdin.as_fd(), theirs.stdout.as_fd(), theirs.stderr.as_fd()];
        guard.hand_over(fds).await.map_err(|_gone| SpawnError::GuardLost)?;
        Ok(Self { socket, frames: Frames::default() })
    }

    /// The next message; none once the keeper is gone, or talks nonsense.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Word> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(word) = self.frames.next().ok()? {
                return Some(word);
            }
            self.socket.readable().await.ok()?;
            match self.socket.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.frames.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Says that no more is ordered: what was ordered in part is not done.
    pub(super) fn end(&self) {
        if shutdown(&self.socket, Shutdown::Write).is_err() {
            // its other end is closed
        }
    }

    /// Writes it whole. A stop's frame is far smaller than the socket's buffer, so it goes out in one piece or waits
    /// before its first byte; of a start that is given up the frame may be cut, and then nothing is started.
    pub(super) async fn write(&self, mut frame: &[u8]) -> io::Result<()> {
        while !frame.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(frame) {
                Ok(written) => frame = &frame[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
