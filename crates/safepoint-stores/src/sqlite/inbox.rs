//! The inbox: any process pushes, the holder takes.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use safepoint::{
    ids::SessionId,
    raw::store::{InboxRow, ItemState, NewItem, NewSession, Pushed, Withdrawn},
    store::Error,
};

use super::{
    column::{int, micros, number, optional_text, place, places, text, time},
    due,
    fail::Fail,
    sessions,
};

const COLUMNS: &str = "SELECT place, client, digest, state, at, bytes FROM items";

fn item(row: &Row<'_>) -> rusqlite::Result<InboxRow> {
    Ok(InboxRow {
        number: number(row.get(0)?),
        client_id: optional_text(row, 1)?,
        digest: text(row, 2)?,
        state: state(row.get(3)?),
        at: time(row.get(4)?),
        bytes: row.get(5)?,
    })
}

fn state(code: i64) -> ItemState {
    match code {
        0 => ItemState::Waiting,
        1 => ItemState::Taken,
        _ => ItemState::Removed,
    }
}

fn code(state: ItemState) -> i64 {
    match state {
        ItemState::Waiting => 0,
        ItemState::Taken => 1,
        ItemState::Removed => 2,
    }
}

pub(super) fn push(
    connection: &Connection,
    id: &SessionId,
    push: &NewItem,
    now: Timestamp,
) -> Result<Pushed, Fail> {
    let mut select = connection.prepare_cached("SELECT key, inbox_closed FROM sessions WHERE id = ?1")?;
    let found = select.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (key, is_closed): (i64, bool) = found.ok_or_else(|| Error::NoSession(id.clone()))?;
    if let Some(known) = known(connection, key, push)? {
        return Ok(known);
    }
    if is_closed {
        return Ok(Pushed::Closed);
    }
    let last = last(connection, key)?;
    if is_full(connection, key, last, push.capacity)? {
        return Ok(Pushed::Full);
    }
    let place = place(key, last + 1)?;
    let NewItem { client_id, digest, bytes, .. } = push;
    let mut insert = connection.prepare_cached("INSERT INTO items VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6)")?;
    insert.execute(params![place, key, client_id, digest, micros(now), bytes])?;
    changed(connection, key, now)?;
    Ok(Pushed::Accepted(number(place)))
}

/// Puts the items of a new session into its inbox, or refuses the session.
pub(super) fn begin(connection: &Connection, new: &NewSession, now: Timestamp) -> Result<(), Fail> {
    for (number, item) in (1..).zip(&new.items) {
        if push(connection, &new.id, item, now)? != Pushed::Accepted(number) {
            return Err(Error::ItemRefused(number).into());
        }
    }
    Ok(())
}

/// The item that has this client id, for the session's life.
fn known(connection: &Connection, key: i64, push: &NewItem) -> Result<Option<Pushed>, Fail> {
    const SELECT: &str = "SELECT place, digest FROM items WHERE session = ?1 AND client = ?2";
    let Some(client) = &push.client_id else { return Ok(None) };
    let mut select = connection.prepare_cached(SELECT)?;
    let read = |row: &Row<'_>| Ok((number(row.get(0)?), row.get::<_, String>(1)?));
    let found = select.query_row(params![key, client], read).optional()?;
    Ok(found.map(
        |(number, digest)| {
            if digest == push.digest { Pushed::Same(number) } else { Pushed::Conflict(number) }
        },
    ))
}

/// Whether as many wait as may. They are counted only if the limit could be reached: from the first that is there to the last
/// there are no more than their numbers are apart.
fn is_full(connection: &Connection, key: i64, last: u64, capacity: usize) -> Result<bool, Fail> {
    const FIRST: &str = "SELECT min(place) FROM items WHERE session = ?1 AND state < 2";
    let first: Option<i64> = connection.prepare_cached(FIRST)?.query_row([key], |row| row.get(0))?;
    let most = first.map_or(0, |first| last + 1 - number(first).min(last));
    Ok(most >= capacity as u64 && waiting(connection, key, capacity)? >= int(capacity as u64))
}

/// How many wait, counted no further than to `most`.
fn waiting(connection: &Connection, key: i64, most: usize) -> Result<i64, Fail> {
    const COUNT: &str = "SELECT count(*) FROM \
         (SELECT 1 FROM items WHERE session = ?1 AND state < 2 AND state = 0 LIMIT ?2)";
    Ok(connection.prepare_cached(COUNT)?.query_row([key, int(most as u64)], |row| row.get(0))?)
}

fn last(connection: &Connection, key: i64) -> Result<u64, Fail> {
    let mut select =
        connection.prepare_cached("SELECT max(place) FROM items WHERE place BETWEEN ?1 AND ?2")?;
    let last: Option<i64> = select.query_row(places(key), |row| row.get(0))?;
    Ok(last.map_or(0, number))
}

/// A process other than the holder changed the inbox, and the holder must look.
fn changed(connection: &Connection, key: i64, now: Timestamp) -> Result<(), Fail> {
    const UPDATE: &str = "UPDATE sessions SET updated = ?2, inbox_changes = inbox_changes + 1 WHERE key = ?1";
    connection.prepare_cached(UPDATE)?.execute([key, micros(now)])?;
    due::touch(connection, key, now)
}

pub(super) fn list(connection: &Connection, id: &SessionId) -> Result<Vec<InboxRow>, Fail> {
    let key = sessions::key(connection, id)?;
    let mut select =
        connection.prepare_cached(&format!("{COLUMNS} WHERE session = ?1 AND state < 2 ORDER BY place"))?;
    Ok(select.query_map([key], item)?.collect::<Result<_, _>>()?)
}

/// Every one that was ever accepted.
pub(super) fn all(connection: &Connection, id: &SessionId) -> Result<Vec<InboxRow>, Fail> {
    let (first, last) = places(sessions::key(connection, id)?);
    let mut select =
        connection.prepare_cached(&format!("{COLUMNS} WHERE place BETWEEN ?1 AND ?2 ORDER BY place"))?;
    Ok(select.query_map([first, last], item)?.collect::<Result<_, _>>()?)
}

/// Puts these into the inbox of a session that has none.
pub(super) fn refill(connection: &Connection, key: i64, items: &[InboxRow]) -> Result<(), Fail> {
    let mut insert = connection.prepare_cached("INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for InboxRow { number, client_id, digest, state, at, bytes } in items {
        let place = place(key, *number)?;
        insert.execute(params![place, key, client_id, digest, code(*state), micros(*at), bytes])?;
    }
    Ok(())
}

/// When it was accepted; its row stays for the session's life.
pub(super) fn accepted(
    connection: &Connection,
    id: &SessionId,
    number: u64,
) -> Result<Option<Timestamp>, Fail> {
    let key = sessions::key(connection, id)?;
    let Ok(place) = place(key, number) else { return Ok(None) };
    let mut select = connection.prepare_cached("SELECT at FROM items WHERE place = ?1")?;
    Ok(select.query_row([place], |row| Ok(time(row.get(0)?))).optional()?)
}

pub(super) fn withdraw(
    connection: &Connection,
    id: &SessionId,
    number: u64,
    now: Timestamp,
) -> Result<Withdrawn, Fail> {
    let key = sessions::key(connection, id)?;
    let Ok(place) = place(key, number) else { return Ok(Withdrawn::Unknown) };
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE place = ?1"))?;
    match select.query_row([place], item).optional()? {
        None => Ok(Withdrawn::Unknown),
        Some(item) if item.state != ItemState::Waiting => Ok(Withdrawn::Taken),
        Some(item) => {
            change(connection, key, number, &[ItemState::Waiting], ItemState::Removed)?;
            changed(connection, key, now)?;
            Ok(Withdrawn::Item(item))
        }
    }
}

/// Moves an item, if it is where the mover thinks.
pub(super) fn change(
    connection: &Connection,
    key: i64,
    number: u64,
    from: &[ItemState],
    to: ItemState,
) -> Result<(), Fail> {
    let elsewhere = || Fail::from(Error::ItemElsewhere(number));
    let Ok(place) = place(key, number) else { return Err(elsewhere()) };
    let mut select = connection.prepare_cached("SELECT state FROM items WHERE place = ?1")?;
    let found = select.query_row([place], |row| Ok(state(row.get(0)?))).optional()?;
    if !found.is_some_and(|found| from.contains(&found)) {
        return Err(elsewhere());
    }
    let sql = match to {
        ItemState::Waiting | ItemState::Taken => "UPDATE items SET state = ?2 WHERE place = ?1",
        ItemState::Removed => "UPDATE items SET state = ?2, bytes = x'' WHERE place = ?1",
    };
    connection.prepare_cached(sql)?.execute([place, code(to)])?;
    Ok(())
}
