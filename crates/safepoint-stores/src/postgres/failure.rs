//! What can go wrong below, and what it is called above.

use std::{error::Error as _, io};

use deadpool_postgres::{PoolError, TimeoutType};
use safepoint::{raw::store::Cause, store::Error};
use tokio_postgres::error::SqlState;

/// Why a try of a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A refusal of ours, or one of the server that another try would meet too. Nothing was done.
    Refused(Error),
    /// Others were in the way. Nothing was done, and another try may go well.
    Contended(Error),
    /// The server could not be reached. Nothing was asked.
    Unreachable(Error),
    /// The answer was lost: whether it was done is not known.
    Lost(Error),
    /// The server cannot read what it has stored. Nothing was done.
    Corrupt(String),
    /// A write of the holder that the function of the schema refused, by its place; what undid all.
    Write { code: String, place: usize },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        of_statement(error)
    }
}

impl Failure {
    /// As an error, of a request of which no earlier try may have been done.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Contended(error) | Self::Unreachable(error) | Self::Lost(error) => {
                error
            }
            Self::Corrupt(words) => Error::Failed(Cause::new(words)),
            Self::Write { code, place } => {
                Error::Failed(Cause::new(format!("write {place} was refused with {code}")))
            }
        }
    }
}

/// A failure of a statement that was sent, or was to be.
fn of_statement(error: tokio_postgres::Error) -> Failure {
    let Some(said) = error.as_db_error() else {
        // A value that does not fit its column was not sent; whatever else it is, the statement may have been.
        let is_unsent = error.to_string().starts_with("error serializing");
        let words = words(&error);
        return if is_unsent { failed(words) } else { Failure::Lost(Error::Unknown(Cause::new(words))) };
    };
    let (code, words) = (said.code().clone(), words(&error));
    if code.code().starts_with("SP0") {
        // What our functions raise has its place as its message.
        let place = said.message().parse().unwrap_or(0);
        return Failure::Write { code: code.code().to_owned(), place };
    }
    match code {
        SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::T_R_SERIALIZATION_FAILURE
        // Two nodes of one name at once: the second sees the first when it looks again.
        | SqlState::UNIQUE_VIOLATION => Failure::Contended(Error::Busy(Cause::new(words))),
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => {
            Failure::Refused(Error::Busy(Cause::new(words)))
        }
        SqlState::DISK_FULL => Failure::Refused(Error::Full(Cause::new(words))),
        SqlState::READ_ONLY_SQL_TRANSACTION => Failure::Refused(Error::ReadOnly(Cause::new(words))),
        // The connection is ended with these; the transaction may have been committed just before.
        SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN | SqlState::IDLE_SESSION_TIMEOUT => {
            Failure::Lost(Error::Unknown(Cause::new(words)))
        }
        code if code.code().starts_with("XX") => Failure::Corrupt(words),
        code if code.code().starts_with("08") => Failure::Lost(Error::Unknown(Cause::new(words))),
        _ => failed(words),
    }
}

fn failed(words: String) -> Failure {
    Failure::Refused(Error::Failed(Cause::new(words)))
}

/// A failure to get a connection: nothing was asked.
pub(super) fn of_pool(error: PoolError) -> Failure {
    match error {
        PoolError::Backend(error) => of_connect(error),
        PoolError::PostCreateHook(deadpool_postgres::HookError::Backend(error)) => of_connect(error),
        PoolError::PostCreateHook(deadpool_postgres::HookError::Message(why)) => failed(why.into_owned()),
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
            let why = "the database cannot be reached: it does not answer";
            Failure::Unreachable(Error::Failed(Cause::new(why)))
        }
        PoolError::Timeout(TimeoutType::Wait) => {
            let why = "every connection of this process has been in use for too long; try again later";
            Failure::Refused(Error::Busy(Cause::new(why)))
        }
        PoolError::Closed | PoolError::NoRuntimeSpecified => Failure::Refused(Error::Gone),
    }
}

/// A failure to connect. What the server says of who connects stays so; anything else may be over soon.
pub(super) fn of_connect(error: tokio_postgres::Error) -> Failure {
    let words = words(&error);
    let Some(code) = error.code() else {
        let is_config = error.to_string().starts_with("invalid co");
        let why = format!("the database cannot be reached: {words}");
        return if is_config { failed(words) } else { Failure::Unreachable(Error::Failed(Cause::new(why))) };
    };
    match *code {
        SqlState::TOO_MANY_CONNECTIONS => Failure::Unreachable(Error::Busy(Cause::new(format!(
            "{words}: the server has no connection left; raise its `max_connections`, or open fewer stores"
        )))),
        ref code if ["57", "08", "53"].iter().any(|class| code.code().starts_with(class)) => {
            let why = format!("the database cannot be used now: {words}");
            Failure::Unreachable(Error::Failed(Cause::new(why)))
        }
        _ => failed(words),
    }
}

/// What is said of it. The server's own words are in what lies below, with its hint where it gives one.
fn words(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let hint = said.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let advice = advice(said.code()).map(|advice| format!(": {advice}")).unwrap_or_default();
        return format!("{}{hint} [{}]{advice}", said.message(), said.code().code());
    }
    match error.source() {
        Some(below) => format!("{error}: {below}{}", advice_of_source(below)),
        None => error.to_string(),
    }
}

/// What to do about what the server refuses.
fn advice(code: &SqlState) -> Option<&'static str> {
    match *code {
        SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "grant the role what the guide to PostgreSQL lists, and let a role that may create in the database open the store once",
        ),
        SqlState::INVALID_CATALOG_NAME => Some("make the database first, as with `createdb`"),
        SqlState::INVALID_PASSWORD => Some(
            "look at the password in the address, in which `@ : / ? %` are written as %40 %3A %2F %3F %25",
        ),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Some("look at the user's name in the address, and at the server's pg_hba.conf")
        }
        _ => None,
    }
}

/// What to do where no server was reached, or none that takes the address.
fn advice_of_source(below: &(dyn std::error::Error + 'static)) -> &'static str {
    let refused =
        below.downcast_ref::<io::Error>().is_some_and(|why| why.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        ": is the server running there, and does it listen at that port?"
    } else if below.to_string() == "password missing" {
        ": the server asks for a password, which stands behind the user's name in the address"
    } else {
        ""
    }
}
