//! A command's input and output: descriptors for its side, a bounded reader for ours.

use std::{
    fs::OpenOptions,
    io::{self, Seek, Write},
    os::fd::OwnedFd,
    os::unix::fs::OpenOptionsExt,
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    pipe::{PipeFlags, pipe_with},
};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::{
    output::Capture,
    spec::{OutputTarget, Stdin},
};
use crate::limits;

const OWNER_ONLY: u32 = 0o600;

/// The command's side.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Called with each chunk of output as it arrives.
pub(super) type OnChunk = Box<dyn FnMut(&[u8]) + Send>;

/// Our side of the output.
pub(super) struct Reader {
    pipe: Option<Receiver>,
    chunk: Vec<u8>,
    pub(super) capture: Capture,
    pub(super) on_chunk: Option<OnChunk>,
}

/// Our side of a command that is talked to. Each end is closed when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) stdin: Option<Sender>,
    pub(super) stdout: Option<Receiver>,
}

/// Everything that is set up for a command before it starts.
pub(super) struct Stdio {
    pub(super) theirs: Theirs,
    pub(super) reader: Reader,
    pub(super) talk: Talk,
}

/// All sides. Where both are captured, standard output and standard error are one pipe, so that what was written first
/// is read first.
pub(super) fn set_up(stdin: &Stdin, output: &OutputTarget) -> io::Result<Stdio> {
    let mut talk = Talk::default();
    let stdin = match stdin {
        Stdin::Null => std::fs::File::open("/dev/null")?.into(),
        Stdin::Bytes(bytes) => in_memory(bytes)?,
        Stdin::Pipe => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            talk.stdin = Some(Sender::from_owned_fd(write)?);
            read
        }
    };
    let (stdout, stderr, pipe, capture) = match output {
        OutputTarget::Capture { budget } => {
            let (read, write) = pipe()?;
            (write.try_clone()?, write, Some(read), Capture::new(*budget))
        }
        OutputTarget::File(path) => {
            let file = OpenOptions::new().append(true).create(true).mode(OWNER_ONLY).open(path)?;
            (file.try_clone()?.into(), OwnedFd::from(file), None, Capture::new(0))
        }
        OutputTarget::Pipe { errors } => {
            let (said, stdout) = pipe()?;
            talk.stdout = Some(said);
            let (read, stderr) = pipe()?;
            (stdout, stderr, Some(read), Capture::in_memory(*errors))
        }
    };
    let reader = Reader { pipe, chunk: Vec::new(), capture, on_chunk: None };
    Ok(Stdio { theirs: Theirs { stdin, stdout, stderr }, reader, talk })
}

/// A pipe that we read.
fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(read)?, write))
}

/// A file that has no name, so that a command which never reads blocks no writer.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(memfd_create("safepoint-stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

impl Reader {
    /// Takes the next chunk; stays pending once there is no more.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn read(&mut self) {
        loop {
            let Some(pipe) = &self.pipe else { return std::future::pending().await };
            if pipe.readable().await.is_err() {
                self.pipe = None;
            } else if self.take().is_some() {
                return;
            }
        }
    }

    /// Takes what is in the pipe of a tree that is gone. Nothing waits for its end: a process that got the other end from the
    /// tree, and is not of it, may keep it open without end.
    pub(super) fn drain(&mut self) {
        let mut left = limits::DRAIN_BYTES;
        // By the system call: the runtime may not have noticed yet that there is something.
        while let Some(read) = self.take_by(|pipe, chunk| Ok(rustix::io::read(pipe, chunk)?)) {
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        self.pipe = None;
    }

    /// Reads once, if the runtime has noticed that there is something.
    fn take(&mut self) -> Option<usize> {
        self.take_by(|pipe, chunk| pipe.try_read(chunk))
    }

    fn take_by(&mut self, read: impl FnOnce(&Receiver, &mut [u8]) -> io::Result<usize>) -> Option<usize> {
        let pipe = self.pipe.as_ref()?;
        self.chunk.resize(limits::CHUNK_BYTES, 0);
        match read(pipe, &mut self.chunk) {
            Ok(read) if read > 0 => {
                let chunk = &self.chunk[..read];
                self.capture.push(chunk);
                if let Some(on_chunk) = &mut self.on_chunk {
                    on_chunk(chunk);
                }
                Some(read)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                None
            }
            Ok(_) | Err(_) => {
                self.pipe = None;
                None
            }
        }
    }
}
