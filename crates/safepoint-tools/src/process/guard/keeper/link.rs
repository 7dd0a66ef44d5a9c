//! What ties a keeper to the world: its runtime's socket, its guard, and the ends of its children.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
};

use rustix::process::{Pid, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal};

use super::{
    super::{sys, wait_for},
    Holders,
};
use crate::{
    limits,
    process::{
        runtime::Runtime,
        wire::{self, Frames, Order, SpawnOrder, Word},
    },
};

/// The keeper's ties: to its runtime, to the guard, to its children.
pub(super) struct Link {
    pub(super) socket: UnixStream,
    pub(super) frames: Frames,
    pub(super) signals: OwnedFd,
    pub(super) timer: OwnedFd,
    pub(super) runtime: Runtime,
    guard: Option<Pid>,
    /// Whether anybody is at the other end.
    pub(super) open: bool,
}

impl Link {
    pub(super) fn enter(socket: UnixStream, holders: Holders) -> io::Result<Self> {
        let Holders { guard, runtime, timer } = holders;
        let signals = sys::take_signals()?;
        // The guard has one thread, so this signal means that the guard is dead, and not that a thread of it ended.
        set_parent_process_death_signal(Some(Signal::USR1))?;
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { socket, frames: Frames::default(), signals, timer, runtime, guard, open: true })
    }

    pub(super) fn first_order(&mut self) -> io::Result<Option<Box<SpawnOrder>>> {
        loop {
            match self.frames.next()? {
                Some(Order::Spawn(order)) => return Ok(Some(order)),
                Some(Order::Stop(_)) => return Ok(None),
                None if !self.open || self.is_guard_lost() => return Ok(None),
                None => {
                    let [readable, signalled] = wait_for([self.socket.as_fd(), self.signals.as_fd()], None)?;
                    if signalled {
                        sys::drain_signals(&self.signals);
                    }
                    if readable {
                        self.read();
                    }
                }
            }
        }
    }

    /// Reads once what is there.
    pub(super) fn read(&mut self) {
        let mut bytes = vec![0; limits::CHUNK_BYTES];
        match self.socket.read(&mut bytes) {
            Ok(0) => self.open = false,
            Ok(read) => self.frames.push(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.open = false,
        }
    }

    /// Says it, if anybody listens.
    pub(super) fn say(&mut self, word: &Word) {
        let said = wire::frame(word).and_then(|frame| self.socket.write_all(&frame));
        if said.is_err() {
            self.open = false;
        }
    }

    pub(super) fn is_guard_lost(&self) -> bool {
        getppid() != self.guard
    }
}
