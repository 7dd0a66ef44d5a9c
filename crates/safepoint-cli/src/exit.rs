//! The exit codes: of the control commands by name, and of the mistakes that have one of their own.

use std::process::ExitCode;

use safepoint::{Outcome, ids::SessionId, store};

/// The exit codes that are no signal's.
pub(crate) mod code {
    pub(crate) const ACCEPTED: u8 = 0;
    pub(crate) const OTHER: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const NONE_SUCH: u8 = 3;
    pub(crate) const TOO_LATE: u8 = 4;
    pub(crate) const CONFLICT: u8 = 5;
    pub(crate) const NO_ROOM: u8 = 6;
    pub(crate) const TIMED_OUT: u8 = 7;
    /// Those of a run are the engine's.
    pub(crate) use safepoint::raw::exit_code::{SIGINT, SIGTERM, STOPPED, SUSPENDED};
    /// Of a chat whose terminal went away.
    pub(crate) const HUNG_UP: u8 = 129;
}

/// This number, to the shell.
pub(crate) fn with(code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// The code of a run that ended so: the engine's, which a `main` has that returns the outcome.
pub(crate) fn of_run(outcome: &Outcome) -> ExitCode {
    with(outcome.exit_code())
}

/// What a command that failed comes to.
pub(crate) fn of(error: &anyhow::Error) -> ExitCode {
    let is_usage = error.is::<Usage>() || error.chain().any(|cause| cause.is::<Usage>());
    with(match (is_usage, error.is::<HeldElsewhere>(), error.is::<NoSession>()) {
        (true, ..) => code::USAGE,
        (false, _, true) => code::NONE_SUCH,
        (false, true, false) => code::CONFLICT,
        (false, false, false) => code::OTHER,
    })
}

/// A mistake in how the program was called: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// There is no such session: exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("session {0} not found; `safepoint sessions ls` lists them")]
pub(crate) struct NoSession(pub(crate) SessionId);

/// Another process owns the session: exit code 5.
#[derive(Debug, thiserror::Error)]
#[error("{0}; stop it with `safepoint stop {1}` or wait")]
pub(crate) struct HeldElsewhere(pub(crate) store::Error, pub(crate) SessionId);
