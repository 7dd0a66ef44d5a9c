//! What can go wrong below, and what it is called above.

use rusqlite::{ErrorCode, ffi};
use safepoint::{raw::store::Cause, store::Error};

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
            Fail::Sqlite(error) => reported(error),
        }
    }
}

/// A failure after which nothing was written.
pub(super) fn reported(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    // It says so of the file that several processes share, and needs at least that much of.
    let is_full = code == Some(ErrorCode::DiskFull)
        || error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE);
    let cause = Cause::new(error);
    match code {
        _ if is_full => Error::Full(cause),
        Some(ErrorCode::ReadOnly) => Error::ReadOnly(cause),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(cause),
        _ => Error::Failed(cause),
    }
}

/// A failure of the commit itself. Where the disk was full, or the file busy or read-only, the transaction's end
/// cannot have been written; anything else may have come after it.
pub(super) fn reported_of_commit(error: rusqlite::Error) -> Error {
    match reported(error) {
        Error::Failed(cause) => Error::Unknown(cause),
        certain => certain,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Error as Below;

    use super::*;

    fn below(code: i32) -> Below {
        Below::SqliteFailure(ffi::Error::new(code), None)
    }

    /// S3.4, S7.6: a commit that failed for want of room is not there; one whose sync failed may be.
    #[test]
    fn a_failed_commit_is_uncertain_unless_its_end_cannot_have_been_written() {
        assert!(matches!(reported_of_commit(below(ffi::SQLITE_FULL)), Error::Full(_)));
        assert!(matches!(reported(below(ffi::SQLITE_IOERR_SHMSIZE)), Error::Full(_)));
        assert!(matches!(reported_of_commit(below(ffi::SQLITE_READONLY)), Error::ReadOnly(_)));
        assert!(matches!(reported_of_commit(below(ffi::SQLITE_BUSY)), Error::Busy(_)));
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_CORRUPT] {
            assert!(reported_of_commit(below(code)).is_uncertain(), "{code}");
            assert!(!reported(below(code)).is_uncertain(), "before the commit, {code} has written nothing");
        }
    }
}
