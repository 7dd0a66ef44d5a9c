//! The tables, and how those of an earlier release become those of this one (S7.6).
//!
//! **Invariants:** a step that was released is never changed; a new release adds a step.

use rusqlite::{Connection, TransactionBehavior};
use safepoint::{raw::store::Cause, store::Error};

use super::fail::Fail;

/// Step `n` brings version `n` to `n + 1`; the last one's version is ours.
const STEPS: [&str; 7] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
];

/// Tells our files from those of others.
const OURS: i32 = 0x5361_6665;

/// Fails if the file is another program's, or a later release's.
pub(super) fn must_be_ours(connection: &Connection) -> Result<(), Fail> {
    version(connection).map(drop)
}

/// Brings the file to our version, in one transaction, or leaves it as it is.
pub(super) fn bring_up(connection: &Connection) -> Result<(), Fail> {
    if version(connection)? == known() {
        return Ok(());
    }
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have done it in the meantime: what counts is seen inside.
    let found = version(&transaction)?;
    for step in STEPS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", OURS)?;
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()?;
    Ok(())
}

/// For a file that can only be read: it must be of our version already.
pub(super) fn must_be_known(connection: &Connection) -> Result<(), Fail> {
    let found = version(connection)?;
    if found == known() {
        return Ok(());
    }
    let why = format!("it is of version {found}, and must be written to become version {}", known());
    Err(Error::ReadOnly(Cause::new(why)).into())
}

pub(super) fn can_be_read(connection: &Connection) -> bool {
    version(connection).is_ok()
}

fn known() -> u32 {
    STEPS.len() as u32
}

/// The version of the file; 0 if it is new.
fn version(connection: &Connection) -> Result<u32, Fail> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (found, whose) = (pragma("user_version")?, pragma("application_id")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if whose != OURS && (found != 0 || tables != 0) {
        return Err(Error::Failed(Cause::new("the file belongs to another program")).into());
    }
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found > known() { Err(Error::Newer { found, known: known() }.into()) } else { Ok(found) }
}
