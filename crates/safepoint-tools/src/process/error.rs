//! Why a command could not be started.

use std::{ffi::OsString, io, path::PathBuf};

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program, or it cannot be executed.
    #[error("cannot run {program:?}: {source}")]
    Program {
        /// What was to be run.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// The directory to run it in cannot be entered.
    #[error("cannot enter the directory {path:?}: {source}")]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its input or output cannot be set up.
    #[error("cannot set up input or output of the command: {0}")]
    Io(#[source] io::Error),
    /// It was to be confined, and there is no guard that can do that.
    #[error(
        "a command can only be confined under a guard: call `guard_main_if_asked` in `main`, or name a guard program"
    )]
    Unconfined,
    /// The guard cannot be launched.
    #[error("cannot launch the guard {program:?}: {source}")]
    Guard {
        /// The guard's program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The guard died before the command was started.
    #[error("the guard died before the command was started")]
    GuardLost,
    /// The lease under which it would run is over.
    #[error("the lease of the session is over, and no command is started")]
    LeaseOver,
    /// The keeper of the command died while it started it; whatever carried its mark was killed.
    #[error("the keeper of the command died while it started it")]
    KeeperLost,
}

impl SpawnError {
    /// Whether another program, argument or directory could have worked: the command's fault, not the machine's.
    #[must_use]
    pub fn is_commands_fault(&self) -> bool {
        matches!(self, Self::Program { .. } | Self::Cwd { .. })
    }
}
