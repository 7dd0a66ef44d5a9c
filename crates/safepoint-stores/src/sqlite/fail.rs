//! What can go wrong below, and what it is called above.

use rusqlite::ErrorCode;
use safepoint::store::{Cause, Error};

/// A refusal of ours, or a failure of SQLite.
#[derive(Debug)]
pub(super) enum Fail {
    Refused(Error),
    Sqlite(rusqlite::Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Fail> for Error {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Refused(error) => error,
            Fail::Sqlite(error) => told(error),
        }
    }
}

/// A failure after which nothing was written.
pub(super) fn told(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let cause = Cause::new(error);
    match code {
        Some(ErrorCode::DiskFull) => Error::Full(cause),
        Some(ErrorCode::ReadOnly) => Error::ReadOnly(cause),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(cause),
        _ => Error::Failed(cause),
    }
}

/// A failure of the commit itself. Where the disk was full, or the file busy or read-only, the transaction's end
/// cannot have been written; anything else may have come after it.
pub(super) fn told_of_commit(error: rusqlite::Error) -> Error {
    match told(error) {
        Error::Failed(cause) => Error::Unknown(cause),
        certain => certain,
    }
}
