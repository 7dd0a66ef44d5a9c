//! The file: opened for writing where it can be, and for reading where it can only be read.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};
use safepoint::{raw::store::Cause, store::Error};

use super::{
    fail::{self, Fail},
    options::SqliteOptions,
    schema,
    turn::{Who, WriteTurn},
};

/// An open file of the right version.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    patience: Duration,
    /// Whether no process can write it: there is no file beside it, and none can be made.
    is_immutable: bool,
    /// Where it can be written.
    pub(super) writer: Result<Connection, Error>,
    /// Where those who write queue; none if nothing can be written beside the file.
    pub(super) turn: Option<WriteTurn>,
}

impl File {
    pub(super) fn open(path: &Path, options: &SqliteOptions) -> Result<Self, Error> {
        let mut file = Self {
            path: path.to_owned(),
            patience: options.patience,
            is_immutable: false,
            writer: Err(Error::Gone),
            turn: None,
        };
        if path.is_dir() {
            return Err(Error::Failed(Cause::new("it is a directory, and should be a file")));
        }
        let mut turn = may_be_written(path).then(|| WriteTurn::beside(path).ok()).flatten();
        let opened = file.open_in(turn.as_mut(), options);
        file.turn = turn;
        opened.map(|()| file)
    }

    fn open_in(&mut self, turn: Option<&mut WriteTurn>, options: &SqliteOptions) -> Result<(), Error> {
        let held = turn.map(|turn| turn.take(Who::Comer, &options.until(Who::Comer))).transpose()?;
        let opened = self.open_in_turn(options);
        drop(held);
        opened
    }

    fn open_in_turn(&mut self, options: &SqliteOptions) -> Result<(), Error> {
        match patiently(self.patience, || self.for_writing(options)) {
            Ok(connection) => self.writer = Ok(connection),
            Err(Fail::Sqlite(error)) if may_be_read(&error) && self.path.exists() => {
                self.for_reading(error)?
            }
            Err(fail) => return Err(fail.into()),
        }
        let version = match &self.writer {
            Ok(connection) => patiently(self.patience, || schema::bring_up(connection)),
            Err(_) => schema::must_be_known(&self.reader()?),
        };
        Ok(version?)
    }

    fn for_writing(&self, options: &SqliteOptions) -> Result<Connection, Fail> {
        own(&self.path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(self.patience)?;
        // Before anything is changed: the file may belong to another program.
        schema::must_be_ours(&connection)?;
        // The first to write: says whether it can be written at all.
        connection.pragma_update(None, "journal_mode", "wal")?;
        // The writer looks after that itself, between commits; this bounds the file if it cannot.
        connection.pragma_update(None, "wal_autocheckpoint", LATEST_CHECKPOINT)?;
        if let Some(bytes) = options.most_bytes {
            let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page;
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    }

    /// The reason why it cannot be written is kept for later writers.
    fn for_reading(&mut self, error: rusqlite::Error) -> Result<(), Error> {
        self.writer = Err(Error::ReadOnly(Cause::new(error)));
        let looks = |file: &Self| file.reader().map(|connection| schema::can_be_read(&connection));
        if looks(self).is_ok_and(|can| can) {
            return Ok(());
        }
        let log = PathBuf::from(format!("{}-wal", self.path.display()));
        if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
            let why = "what was written last lies in a file beside it that cannot be used from here";
            return Err(Error::ReadOnly(Cause::new(why)));
        }
        self.is_immutable = true;
        Ok(())
    }

    /// A connection that cannot write.
    pub(super) fn reader(&self) -> Result<Connection, Error> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let query = if self.is_immutable { "?immutable=1" } else { "" };
        let uri = format!("file:{}{query}", escaped(&self.path));
        let connection = patiently(self.patience, || Ok(Connection::open_with_flags(&uri, flags)?))?;
        connection.busy_timeout(self.patience).map_err(fail::reported)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    }
}

/// Statements that are kept prepared: more than there are.
const STATEMENTS: usize = 64;
/// Pages that wait beside the file before a commit itself must move them.
const LATEST_CHECKPOINT: u32 = 16_384;

/// Tries again while another process has the file to itself. SQLite waits for most locks itself, but not for one that is
/// changing the journal's mode, taking up what a killed process left in the log, or closing as the last
/// (<https://sqlite.org/wal.html>, "Sometimes queries return SQLITE_BUSY in WAL mode").
fn patiently<T>(patience: Duration, mut step: impl FnMut() -> Result<T, Fail>) -> Result<T, Fail> {
    const AGAIN: Duration = Duration::from_millis(5);
    let began = Instant::now();
    loop {
        match step() {
            Err(Fail::Sqlite(error)) if is_busy(&error) && began.elapsed() < patience => thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Whether the file may be written, or is not there yet. It is not opened for that: closing it again would take SQLite's locks
/// from the other connections of this process.
fn may_be_written(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(file) => !file.permissions().readonly(),
        Err(why) => why.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether what cannot be written may be readable.
fn may_be_read(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
}

/// Makes the file, for its owner alone: sessions hold what people said. If that fails, opening it says why.
fn own(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made: io::Result<fs::File> = options.open(path);
    drop(made);
}

/// A path as a part of a URI.
fn escaped(path: &Path) -> String {
    let mut escaped = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '%' => escaped.push_str("%25"),
            '?' => escaped.push_str("%3f"),
            '#' => escaped.push_str("%23"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Fail {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        Fail::Sqlite(rusqlite::Error::SqliteFailure(code, None))
    }

    /// S7.4: an answer of *busy* that came without a wait is no end; one that stays is reported after the patience, and
    /// nothing else is tried again.
    #[test]
    fn busy_is_tried_again_and_nothing_else_is() {
        let mut tries = 0;
        let opened = patiently(Duration::from_secs(60), || {
            tries += 1;
            if tries < 3 { Err(busy()) } else { Ok(tries) }
        });
        assert!(matches!(opened, Ok(3)));
        assert!(patiently(Duration::ZERO, || Err::<(), _>(busy())).is_err());
        let mut tries = 0;
        let refused = patiently(Duration::from_secs(60), || {
            tries += 1;
            Err::<(), _>(Error::Gone.into())
        });
        assert!(refused.is_err());
        assert_eq!(tries, 1);
    }
}
