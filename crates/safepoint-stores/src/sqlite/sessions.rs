//! The sessions' rows.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use safepoint::{
    ids::SessionId,
    raw::store::{Chain, Changes, NewSession, PageCursor},
    store::{Error, SessionRow},
};

use super::{
    column::{count, held, int, micros, places, text, time},
    fail::Fail,
};

/// Columns of a row, in the order in which [`row`] reads them; [`held`] reads the rest.
const ROW: &str = "SELECT s.id, s.created, s.updated, s.label, s.title, s.setup, s.head, s.chain, s.epoch, \
     n.host, n.boot, n.space, n.pid, n.started, n.socket, l.since, n.expires, n.until, n.id, n.name, n.address \
     FROM sessions s LEFT JOIN leases l ON l.session = s.key LEFT JOIN nodes n ON n.id = l.node";
/// Where the holder's columns begin.
const LEASE: usize = 9;

fn row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let id = SessionId::from(text(row, 0)?);
    let chain: Vec<u8> = row.get(7)?;
    let new =
        NewSession { title: text(row, 4)?, label: text(row, 3)?, setup: text(row, 5)?, ..NewSession::of(id) };
    let mut found = SessionRow::new(&new, time(row.get(1)?));
    found.updated = time(row.get(2)?);
    found.head = count(row.get(6)?);
    // One that does not look like a checksum fits no record: a check places that.
    found.chain = Chain::from_bytes(&chain).unwrap_or(found.chain);
    found.epoch = count(row.get(8)?);
    found.holder = held(row, LEASE)?;
    Ok(found)
}

pub(super) fn create(connection: &Connection, new: &NewSession, now: Timestamp) -> Result<SessionRow, Fail> {
    const INSERT: &str = "INSERT INTO sessions (id, created, updated, label, title, setup, head, chain, epoch, \
         inbox_closed, inbox_changes, stops, decisions, pool, priority) \
         VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?7, ?6, 0, 0, 0, 0, 0, ?8, ?9) ON CONFLICT (id) DO NOTHING";
    let mut insert = connection.prepare_cached(INSERT)?;
    let NewSession { id, title, label, setup, pool, priority, .. } = new;
    let row = SessionRow::new(new, now);
    let (at, head, chain) = (micros(now), int(row.head), row.chain.as_bytes());
    let created =
        insert.execute(params![id.as_str(), at, label, title, setup, chain, head, pool, priority])?;
    if created == 0 {
        return Err(Error::SessionExists(id.clone()).into());
    }
    Ok(row)
}

pub(super) fn open(connection: &Connection, id: &SessionId) -> Result<SessionRow, Fail> {
    let mut select = connection.prepare_cached(&format!("{ROW} WHERE s.id = ?1"))?;
    let found = select.query_row([id.as_str()], row).optional()?;
    found.ok_or_else(|| Error::NoSession(id.clone()).into())
}

pub(super) fn list(
    connection: &Connection,
    most: usize,
    older: Option<&PageCursor>,
) -> Result<Vec<SessionRow>, Fail> {
    const ORDER: &str = "ORDER BY s.updated DESC, s.id DESC LIMIT :most";
    let most = int(most as u64);
    let rows = match older {
        Some(older) => {
            let sql = format!("{ROW} WHERE (s.updated, s.id) < (:updated, :id) {ORDER}");
            let mut select = connection.prepare_cached(&sql)?;
            let from =
                named_params! { ":updated": micros(older.updated), ":id": older.id.as_str(), ":most": most };
            select.query_map(from, row)?.collect::<Result<_, _>>()?
        }
        None => {
            let mut select = connection.prepare_cached(&format!("{ROW} {ORDER}"))?;
            select.query_map(named_params! { ":most": most }, row)?.collect::<Result<_, _>>()?
        }
    };
    Ok(rows)
}

pub(super) fn remove(connection: &Connection, id: &SessionId) -> Result<(), Fail> {
    let key = key(connection, id)?;
    for table in ["records", "items", "stops"] {
        let sql = format!("DELETE FROM {table} WHERE place BETWEEN ?1 AND ?2");
        connection.prepare_cached(&sql)?.execute(places(key))?;
    }
    for sql in [
        "DELETE FROM approvals WHERE session = ?1",
        "DELETE FROM leases WHERE session = ?1",
        "DELETE FROM tenures WHERE session = ?1",
        "DELETE FROM sessions WHERE key = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([key])?;
    }
    Ok(())
}

/// Whether it has no record, and no item that waits or is taken.
pub(super) fn is_unused(connection: &Connection, id: &SessionId) -> Result<bool, Fail> {
    const SELECT: &str = "SELECT s.head = 0 AND NOT EXISTS \
         (SELECT 1 FROM items i WHERE i.session = s.key AND i.state < 2) FROM sessions s WHERE s.id = ?1";
    let mut select = connection.prepare_cached(SELECT)?;
    let is_unused = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    is_unused.ok_or_else(|| Error::NoSession(id.clone()).into())
}

/// Whether no item waits in it, and no approval is open or waits to be used.
pub(super) fn is_at_rest(connection: &Connection, id: &SessionId) -> Result<bool, Fail> {
    const SELECT: &str = "SELECT NOT EXISTS (SELECT 1 FROM items WHERE session = ?1 AND state < 2 AND state = 0) \
         AND NOT EXISTS (SELECT 1 FROM approvals WHERE session = ?1 AND state < 2)";
    let key = key(connection, id)?;
    Ok(connection.prepare_cached(SELECT)?.query_row([key], |row| row.get(0))?)
}

/// The number that stands for the session in the other tables.
pub(super) fn key(connection: &Connection, id: &SessionId) -> Result<i64, Fail> {
    let mut select = connection.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?;
    let key = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    key.ok_or_else(|| Error::NoSession(id.clone()).into())
}

pub(super) fn notice(connection: &Connection, id: &SessionId) -> Result<Changes, Fail> {
    const SELECT: &str = "SELECT inbox_changes, stops, decisions, epoch FROM sessions WHERE id = ?1";
    let mut select = connection.prepare_cached(SELECT)?;
    let found = select.query_row([id.as_str()], |row| changes(row, 0)).optional()?;
    found.ok_or_else(|| Error::NoSession(id.clone()).into())
}

/// The counters, from four columns of which the first is at `from`.
pub(super) fn changes(row: &Row<'_>, from: usize) -> rusqlite::Result<Changes> {
    let mut newest = Changes::default();
    newest.items = count(row.get(from)?);
    newest.stops = count(row.get(from + 1)?);
    newest.decisions = count(row.get(from + 2)?);
    newest.epoch = count(row.get(from + 3)?);
    Ok(newest)
}
