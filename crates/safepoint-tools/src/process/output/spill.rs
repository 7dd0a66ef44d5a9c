//! The file that takes what memory does not: made when it is first needed, for its owner alone, bounded.
//!
//! Writes are plain blocking ones into the page cache, a chunk at a time, by the caller that drives the command.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use safepoint::raw::spill::private_file;

use crate::limits;

/// Where the rest goes.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
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
        Self { directory, state: SpillState::Unused }
    }

    /// No file at all.
    pub(super) fn unwanted() -> Self {
        Self { directory: PathBuf::new(), state: SpillState::Failed("only its head and tail are".to_owned()) }
    }

    pub(super) fn is_unused(&self) -> bool {
        matches!(self.state, SpillState::Unused)
    }

    /// Writes it, or notes why it cannot be.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.is_unused() {
            self.state = match private_file(&self.directory) {
                Ok((file, path)) => SpillState::Open { file, path, written: 0 },
                Err(error) => SpillState::Failed(format!("no file could be made for it: {error}")),
            };
        }
        let SpillState::Open { file, path, written } = &mut self.state else { return };
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
            self.state = SpillState::Ended { path: std::mem::take(path), why };
        }
    }

    /// The file, once there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.state {
            SpillState::Open { path, .. } | SpillState::Ended { path, .. } => Some(path),
            SpillState::Unused | SpillState::Failed(_) => None,
        }
    }

    /// Where what is missing can be found, for people and models.
    pub(super) fn notice(&self) -> String {
        match &self.state {
            SpillState::Open { path, .. } => format!("the full output is in {}", path.display()),
            SpillState::Ended { path, why } => format!("more of it is in {}, but {why}", path.display()),
            SpillState::Unused => "they were not kept".to_owned(),
            SpillState::Failed(why) => format!("they were not kept: {why}"),
        }
    }
}
