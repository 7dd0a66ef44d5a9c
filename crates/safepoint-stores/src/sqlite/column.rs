//! How values stand in columns.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Row;
pub(super) use safepoint::raw::store::of_micros as time;
use safepoint::{
    raw::store::{Cause, LeaseHolder},
    store::{Error, OwnerProcess},
};

/// Numbers of a session take the lower half of a place.
const HALF: u32 = 32;

/// Where the row of this number stands.
pub(super) fn place(key: i64, number: u64) -> Result<i64, Error> {
    let full = |_| Error::Full(Cause::new("a session has no more than 2^32 records, items or stops"));
    let number = u32::try_from(number).map_err(full)?;
    Ok((key << HALF) | i64::from(number))
}

/// All places of a session.
pub(super) fn places(key: i64) -> (i64, i64) {
    let first = key << HALF;
    (first, first | i64::from(u32::MAX))
}

/// The number of the row at this place.
pub(super) fn number(place: i64) -> u64 {
    count(place & i64::from(u32::MAX))
}

pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn count(int: i64) -> u64 {
    u64::try_from(int).unwrap_or(0)
}

pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// A text of a row that no checksum covers: what is no text in it is replaced, so that one bad letter hides no row.
pub(super) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

pub(super) fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let text = row.get_ref(column)?.as_bytes_or_null()?;
    Ok(text.map(|text| String::from_utf8_lossy(text).into_owned()))
}

/// The holder, from twelve columns of which the first is at `from`; they are null where there is no holder.
pub(super) fn held(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<LeaseHolder>> {
    let Some(host) = optional_text(row, from)? else { return Ok(None) };
    let owner = OwnerProcess {
        host,
        boot: text(row, from + 1)?,
        space: text(row, from + 2)?,
        pid: row.get(from + 3)?,
        started: count(row.get(from + 4)?),
        socket: optional_text(row, from + 5)?,
    };
    let until: Option<i64> = row.get(from + 8)?;
    Ok(Some(LeaseHolder {
        owner,
        since: time(row.get(from + 6)?),
        expires: time(row.get(from + 7)?),
        until: until.map(|micros| Duration::from_micros(count(micros))),
        node: text(row, from + 9)?.into(),
        name: text(row, from + 10)?,
        address: optional_text(row, from + 11)?,
    }))
}
