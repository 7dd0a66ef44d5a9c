//! What a runtime and the keeper of a command say to each other: length-prefixed JSON on a socket of their own.

use std::{ffi::OsString, io, path::PathBuf, time::Duration, time::SystemTime};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    report::{Climbed, Containment, Exit, Hold, TreeMember},
    spec::{Background, ControlGroups, Ladder},
};
use crate::limits;

const PREFIX: usize = size_of::<u32>();

/// From the runtime to the keeper. Exhaustive: both ends are the same program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Run this; the first order, and given once.
    Spawn(Box<SpawnOrder>),
    /// Climb this ladder; may be given again, to climb faster.
    Stop(Rungs),
}

/// What the keeper needs to know of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnOrder {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<OsString>,
    /// All of its environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) background: Background,
    pub(crate) left_behind: Duration,
    /// How long a tree killed without a stop may take before its survivors are named.
    pub(crate) kill: Duration,
    pub(crate) groups: ControlGroups,
}

/// The times of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rungs {
    pub(crate) interrupt: Duration,
    pub(crate) terminate: Duration,
    pub(crate) kill: Duration,
}

impl Rungs {
    /// SIGKILL at once, and this long for the tree to be gone.
    pub(crate) fn kill(kill: Duration) -> Self {
        Self { interrupt: Duration::ZERO, terminate: Duration::ZERO, kill }
    }
}

impl From<Ladder> for Rungs {
    fn from(ladder: Ladder) -> Self {
        Self { interrupt: ladder.interrupt, terminate: ladder.terminate, kill: ladder.kill }
    }
}

/// From the keeper to the runtime. Exhaustive: both ends are the same program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The keeper is there, and this is it; nothing has been started yet.
    Ready(TreeMember),
    /// The command runs, in this control group if it has one.
    Started { pid: i32, start: u64, containment: Containment, group: Option<PathBuf>, at: SystemTime },
    /// The command could not be started.
    Refused { stage: Stage, errno: i32 },
    /// A background job's command ended and left these.
    Exited { exit: Exit, running: Vec<TreeMember>, at: SystemTime },
    /// Nothing of it is alive, or what is survived SIGKILL.
    Ended(Box<Account>),
}

/// What could not be done. Exhaustive: the steps that depend on what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Cwd,
    Program,
    /// The lease under which it would have run is over: nothing was tried.
    Lease,
}

/// The keeper's part of a [`ProcessReport`](super::ProcessReport).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) exit: Exit,
    pub(crate) ended_at: SystemTime,
    pub(crate) rungs: Vec<Climbed>,
    pub(crate) left_behind: Vec<TreeMember>,
    pub(crate) survivors: Vec<TreeMember>,
    pub(crate) hold: Hold,
}

impl Account {
    /// Of a command that was held so, and of whose end nothing is known yet.
    pub(crate) fn of(hold: Hold) -> Self {
        let (rungs, left_behind, survivors) = (Vec::new(), Vec::new(), Vec::new());
        Self { exit: Exit::Unknown, ended_at: SystemTime::now(), rungs, left_behind, survivors, hold }
    }

    /// Takes the account so far, as that of a tree that has ended but for these survivors.
    pub(crate) fn end(&mut self, exit: Option<Exit>, survivors: Vec<TreeMember>) -> Self {
        let so_far = std::mem::replace(self, Self::of(self.hold));
        Self { exit: exit.unwrap_or(Exit::Unknown), ended_at: SystemTime::now(), survivors, ..so_far }
    }
}

/// One message with its length before it.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - PREFIX;
    if length > limits::FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "command and environment are too large"));
    }
    let length = u32::try_from(length).expect("a frame is bounded far below 4 GiB");
    bytes[..PREFIX].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Bytes as they arrive, and the messages in them.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Takes what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(prefix) = self.bytes.first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > limits::FRAME_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is larger than any may be"));
        }
        let Some(body) = self.bytes.get(PREFIX..PREFIX + length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.bytes.drain(..PREFIX + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests;
