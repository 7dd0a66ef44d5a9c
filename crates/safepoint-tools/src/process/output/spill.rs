//! The file that takes what memory does not: made when it is first needed, for its owner alone, bounded.
//!
//! Writes are plain blocking ones into the page cache, a chunk at a time, by whoever drives the command.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::limits;

const OWNER_ONLY_DIRECTORY: u32 = 0o700;
const OWNER_ONLY_FILE: u32 = 0o600;

/// Where the rest goes.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    Unused,
    Open {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// As much was written as may be, or as could be.
    Ended {
        path: PathBuf,
        why: String,
    },
    /// There is no file at all.
    Failed(String),
}

impl Spill {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, state: State::Unused }
    }

    /// No file at all.
    pub(super) fn unwanted() -> Self {
        Self { directory: PathBuf::new(), state: State::Failed("only its head and tail are".to_owned()) }
    }

    pub(super) fn is_unused(&self) -> bool {
        matches!(self.state, State::Unused)
    }

    /// Writes it, or notes why it cannot be.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.is_unused() {
            self.state = match private_file(&self.directory) {
                Ok((file, path)) => State::Open { file, path, written: 0 },
                Err(error) => State::Failed(format!("no file could be made for it: {error}")),
            };
        }
        let State::Open { file, path, written } = &mut self.state else { return };
        let room = usize::try_from(limits::SPILL_BYTES - *written).unwrap_or(usize::MAX);
        let end = match file.write_all(&bytes[..bytes.len().min(room)]) {
            Err(error) => Some(format!("writing ended early: {error}")),
            Ok(()) if bytes.len() > room => {
                Some(format!("it holds only the first {} bytes", limits::SPILL_BYTES))
            }
            Ok(()) => None,
        };
        *written += bytes.len() as u64;
        if let Some(why) = end {
            self.state = State::Ended { path: std::mem::take(path), why };
        }
    }

    /// The file, once there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Open { path, .. } | State::Ended { path, .. } => Some(path),
            State::Unused | State::Failed(_) => None,
        }
    }

    /// Where what is missing can be found, for people and models.
    pub(super) fn notice(&self) -> String {
        match &self.state {
            State::Open { path, .. } => format!("the full output is in {}", path.display()),
            State::Ended { path, why } => format!("more of it is in {}, but {why}", path.display()),
            State::Unused => "they were not kept".to_owned(),
            State::Failed(why) => format!("they were not kept: {why}"),
        }
    }
}

/// A new file below `directory` that only its owner can see.
pub(crate) fn private_file(directory: &Path) -> io::Result<(File, PathBuf)> {
    let directory = directory.join(format!("safepoint-{}", rustix::process::geteuid().as_raw()));
    match DirBuilder::new().mode(OWNER_ONLY_DIRECTORY).create(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(&directory)?,
        Err(error) => return Err(error),
    }
    let path = directory.join(format!("output-{}.txt", uuid::Uuid::new_v4().simple()));
    let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY_FILE).open(&path)?;
    Ok((file, path))
}

/// A directory that somebody else made under our name, or left open to others, is not used.
fn check(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o077;
    let found = fs::symlink_metadata(directory)?;
    let ours =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & OTHERS == 0;
    if ours {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is not ours alone", directory.display())))
}
