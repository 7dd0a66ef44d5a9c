//! Stored stops: any process asks, the holder stops.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalsToWithdraw, StopIntent, StopRow},
    store::Error,
};

use super::{
    approvals,
    column::{count, int, micros, number, place, places, time},
    due,
    fail::Fail,
};

pub(super) fn ask(
    connection: &Connection,
    id: &SessionId,
    stop: &StopIntent,
    now: Timestamp,
) -> Result<u64, Fail> {
    const UPDATE: &str = "UPDATE sessions SET updated = ?2, stops = stops + 1, decisions = decisions + ?3 \
         WHERE key = ?1 RETURNING stops";
    let key = super::sessions::key(connection, id)?;
    let withdrawn = match &stop.approvals {
        ApprovalsToWithdraw::Stay => 0,
        ApprovalsToWithdraw::Withdrawn => approvals::withdraw_open(connection, key)?,
        ApprovalsToWithdraw::Only(these) => approvals::withdraw_these(connection, key, these)?,
    };
    let mut update = connection.prepare_cached(UPDATE)?;
    let number = count(update.query_row([key, micros(now), int(withdrawn)], |row| row.get(0))?);
    connection
        .prepare_cached("INSERT INTO stops (place, at, bytes) VALUES (?1, ?2, ?3)")?
        .execute(params![place(key, number)?, micros(now), stop.bytes])?;
    due::touch(connection, key, now)?;
    Ok(number)
}

pub(super) fn list(connection: &Connection, id: &SessionId, after: u64) -> Result<Vec<StopRow>, Fail> {
    let moment = connection.unchecked_transaction()?;
    after_place(&moment, id, after)
}

/// Every one.
pub(super) fn all(connection: &Connection, id: &SessionId) -> Result<Vec<StopRow>, Fail> {
    after_place(connection, id, 0)
}

/// Puts these into a session that has none.
pub(super) fn refill(connection: &Connection, key: i64, stops: &[StopRow]) -> Result<(), Fail> {
    let mut insert =
        connection.prepare_cached("INSERT INTO stops (place, at, seen, bytes) VALUES (?1, ?2, ?3, ?4)")?;
    for StopRow { number, at, seen, bytes } in stops {
        insert.execute(params![place(key, *number)?, micros(*at), seen, bytes])?;
    }
    Ok(())
}

fn after_place(moment: &Connection, id: &SessionId, after: u64) -> Result<Vec<StopRow>, Fail> {
    let key = super::sessions::key(moment, id)?;
    let Ok(after) = place(key, after) else { return Ok(Vec::new()) };
    let mut select = moment.prepare_cached(
        "SELECT place, at, seen, bytes FROM stops WHERE place > ?1 AND place <= ?2 ORDER BY place",
    )?;
    let read = |row: &Row<'_>| {
        let (number, at) = (number(row.get(0)?), time(row.get(1)?));
        Ok(StopRow { number, at, seen: row.get(2)?, bytes: row.get(3)? })
    };
    Ok(select.query_map([after, places(key).1], read)?.collect::<Result<_, _>>()?)
}

pub(super) fn seen(connection: &Connection, key: i64, number: u64) -> Result<(), Fail> {
    let none = || Fail::from(Error::NoStop(number));
    let place = place(key, number).map_err(|_too_large| none())?;
    let updated =
        connection.prepare_cached("UPDATE stops SET seen = 1 WHERE place = ?1")?.execute([place])?;
    if updated == 0 { Err(none()) } else { Ok(()) }
}
