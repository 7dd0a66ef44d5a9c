//! Who may write which session.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use safepoint::{
    ids::SessionId,
    raw::store::{Environment, Lease, LeaseHolder, is_free},
    store::{Error, OwnerProcess},
};

use super::{
    column::{self, count, int, micros},
    fail::Fail,
    sessions,
};

/// The session's key, unless a holder may be alive.
pub(super) fn must_be_free(
    connection: &Connection,
    id: &SessionId,
    outside: &Environment,
) -> Result<i64, Fail> {
    let key = sessions::key(connection, id)?;
    match holder(connection, key)? {
        Some(held) if !is_free(&held, outside) => Err(Error::Held(id.clone(), Box::new(held)).into()),
        Some(_) | None => Ok(key),
    }
}

fn holder(connection: &Connection, key: i64) -> Result<Option<LeaseHolder>, Fail> {
    const SELECT: &str = "SELECT host, boot, space, pid, started, socket, since, expires, until FROM leases WHERE session = ?1";
    let mut select = connection.prepare_cached(SELECT)?;
    Ok(select.query_row([key], |row| column::held(row, 0)).optional()?.flatten())
}

/// As it stands in its column.
fn until(held: &LeaseHolder) -> Option<i64> {
    held.until.map(|until| i64::try_from(until.as_micros()).unwrap_or(i64::MAX))
}

pub(super) fn acquire(
    connection: &Connection,
    id: &SessionId,
    held: &LeaseHolder,
    outside: &Environment,
) -> Result<u64, Fail> {
    const INSERT: &str = "INSERT OR REPLACE INTO leases \
         (session, host, boot, space, pid, started, socket, since, expires, until) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let key = must_be_free(connection, id, outside)?;
    let mut next = connection.prepare_cached("UPDATE epochs SET newest = newest + 1 RETURNING newest")?;
    let epoch: i64 = next.query_row([], |row| row.get(0))?;
    let OwnerProcess { host, boot, space, pid, started, socket } = &held.owner;
    let (started, since, expires, until) =
        (int(*started), micros(held.since), micros(held.expires), until(held));
    let mut insert = connection.prepare_cached(INSERT)?;
    insert.execute(params![key, host, boot, space, pid, started, socket, since, expires, until])?;
    connection.prepare_cached("UPDATE sessions SET epoch = ?2 WHERE key = ?1")?.execute([key, epoch])?;
    Ok(count(epoch))
}

/// What an append needs to know of its session.
pub(super) struct Seat {
    pub(super) key: i64,
    pub(super) head: u64,
    pub(super) chain: Vec<u8>,
}

/// The session's seat, if the lease is the newest and was not given back.
pub(super) fn must_hold(connection: &Connection, lease: &Lease) -> Result<Seat, Fail> {
    const SELECT: &str = "SELECT key, head, chain, epoch, EXISTS (SELECT 1 FROM leases WHERE session = key) \
         FROM sessions WHERE id = ?1";
    let id = lease.session();
    let mut select = connection.prepare_cached(SELECT)?;
    let read = |row: &Row<'_>| {
        let seat = Seat { key: row.get(0)?, head: count(row.get(1)?), chain: row.get(2)? };
        Ok((seat, count(row.get(3)?), row.get::<_, bool>(4)?))
    };
    let found = select.query_row([id.as_str()], read).optional()?;
    let (seat, newest, is_held) = found.ok_or_else(|| Error::NoSession(id.clone()))?;
    if is_held && newest == lease.epoch() {
        return Ok(seat);
    }
    Err(Error::Fenced { session: id.clone(), epoch: lease.epoch(), newest }.into())
}

pub(super) fn renew(connection: &Connection, lease: &Lease, outside: &Environment) -> Result<(), Fail> {
    const UPDATE: &str = "UPDATE leases SET expires = ?2, until = ?3 WHERE session = ?1";
    let Seat { key, .. } = must_hold(connection, lease)?;
    let Some(mut held) = holder(connection, key)? else { return Ok(()) };
    held.renew(lease.ttl(), outside);
    connection.prepare_cached(UPDATE)?.execute(params![key, micros(held.expires), until(&held)])?;
    Ok(())
}

pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<(), Fail> {
    let Seat { key, .. } = must_hold(connection, lease)?;
    connection.prepare_cached("DELETE FROM leases WHERE session = ?1")?.execute([key])?;
    Ok(())
}
