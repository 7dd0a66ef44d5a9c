//! Nodes: who may hold sessions, and until when.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{
        Environment, FORGOTTEN_AFTER, Leaving, MOST_TRIES, NodeRow, NodeState, PARKED, retry_after,
    },
    store::{Error, NewNode, OwnerProcess},
};

use super::{
    column::{count, int, micros, optional_text, text, time},
    fail::Fail,
};

const COLUMNS: &str = "SELECT id, name, host, boot, space, pid, started, socket, pools, room, address, since, ttl, \
     expires, until, load, state, ended FROM nodes";

fn row(row: &Row<'_>) -> rusqlite::Result<NodeRow> {
    let span = |micros: i64| Duration::from_micros(count(micros));
    let owner = OwnerProcess {
        host: text(row, 2)?,
        boot: text(row, 3)?,
        space: text(row, 4)?,
        pid: row.get(5)?,
        started: count(row.get(6)?),
        socket: optional_text(row, 7)?,
    };
    let node = NewNode {
        id: text(row, 0)?.into(),
        name: text(row, 1)?,
        owner,
        ttl: span(row.get(12)?),
        // No checksum covers it; a list that cannot be read names no pool.
        pools: serde_json::from_str(&text(row, 8)?).unwrap_or_default(),
        room: row.get(9)?,
        address: optional_text(row, 10)?,
    };
    Ok(NodeRow {
        node,
        since: time(row.get(11)?),
        expires: time(row.get(13)?),
        until: row.get::<_, Option<i64>>(14)?.map(span),
        load: row.get(15)?,
        state: state(row.get(16)?),
        ended: row.get::<_, Option<i64>>(17)?.map(time),
    })
}

fn state(code: i64) -> NodeState {
    match code {
        0 => NodeState::Serving,
        1 => NodeState::Draining,
        2 => NodeState::Buried,
        _ => NodeState::Gone,
    }
}

fn code(state: NodeState) -> i64 {
    match state {
        NodeState::Serving => 0,
        NodeState::Draining => 1,
        NodeState::Buried => 2,
        NodeState::Gone => 3,
    }
}

fn in_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn find(connection: &Connection, id: &NodeId) -> Result<Option<NodeRow>, Fail> {
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    Ok(select.query_row([id.as_str()], row).optional()?)
}

/// What the node does; one that is forgotten has ended.
pub(super) fn state_of(connection: &Connection, id: &NodeId) -> Result<NodeState, Fail> {
    let mut select = connection.prepare_cached("SELECT state FROM nodes WHERE id = ?1")?;
    let found: Option<i64> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    Ok(found.map_or(NodeState::Buried, state))
}

pub(super) fn list(connection: &Connection) -> Result<Vec<NodeRow>, Fail> {
    let mut select = connection.prepare_cached(&format!("{COLUMNS} ORDER BY key"))?;
    Ok(select.query_map([], row)?.collect::<Result<_, _>>()?)
}

/// Those that may be buried, in the order in which they joined.
pub(super) fn dead(connection: &Connection, outside: &Environment) -> Result<Vec<NodeId>, Fail> {
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE state < 2 ORDER BY key"))?;
    let present = select.query_map([], row)?.collect::<Result<Vec<_>, _>>()?;
    let dead = present.into_iter().filter(|node| node.may_be_buried(outside));
    Ok(dead.map(|node| node.node.id).collect())
}

pub(super) fn join(connection: &Connection, node: &NewNode, outside: &Environment) -> Result<(), Fail> {
    const INSERT: &str = "INSERT INTO nodes (id, name, host, boot, space, pid, started, socket, pools, room, \
         address, since, ttl, expires, until, load, state, ended) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, 0, NULL)";
    let now = outside.now();
    let old = micros(now.saturating_sub(FORGOTTEN_AFTER).unwrap_or(Timestamp::MIN));
    connection.prepare_cached("DELETE FROM nodes WHERE ended IS NOT NULL AND ended < ?1")?.execute([old])?;
    // Processes that were killed before they left, long ago, and that were not looked for since.
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE state < 2 AND expires < ?1"))?;
    let lost = select.query_map([old], row)?.collect::<Result<Vec<_>, _>>()?;
    for node in lost.iter().filter(|node| node.may_be_buried(outside)) {
        bury_one(connection, &node.node.id, now)?;
    }
    let taken = || Fail::from(Error::NodeExists(node.name.clone()));
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE name = ?1 AND state < 2"))?;
    match select.query_row([&node.name], row).optional()? {
        Some(namesake) if namesake.may_be_buried(outside) => bury_one(connection, &namesake.node.id, now)?,
        Some(_) => return Err(taken()),
        None => {}
    }
    if find(connection, &node.id)?.is_some() {
        return Err(taken());
    }
    let NodeRow { node, since, expires, until, .. } = NodeRow::new(node.clone(), outside);
    let OwnerProcess { host, boot, space, pid, started, socket } = &node.owner;
    let pools = serde_json::Value::from(node.pools.clone()).to_string();
    connection.prepare_cached(INSERT)?.execute(params![
        node.id.as_str(),
        node.name,
        host,
        boot,
        space,
        pid,
        int(*started),
        socket,
        pools,
        node.room,
        node.address,
        micros(since),
        in_micros(node.ttl),
        micros(expires),
        until.map(in_micros),
    ])?;
    Ok(())
}

pub(super) fn beat(
    connection: &Connection,
    id: &NodeId,
    load: u32,
    outside: &Environment,
) -> Result<NodeState, Fail> {
    const UPDATE: &str = "UPDATE nodes SET expires = ?2, until = ?3, load = ?4 WHERE id = ?1";
    let mut found = must_be_present(connection, id)?;
    found.renew(outside);
    let (expires, until) = (micros(found.expires), found.until.map(in_micros));
    connection.prepare_cached(UPDATE)?.execute(params![id.as_str(), expires, until, load])?;
    Ok(found.state)
}

/// The node, if it may hold sessions.
pub(super) fn must_be_present(connection: &Connection, id: &NodeId) -> Result<NodeRow, Fail> {
    let found = find(connection, id)?.filter(|node| node.state.is_present());
    found.ok_or_else(|| Error::Buried(id.clone()).into())
}

pub(super) fn leave(connection: &Connection, id: &NodeId, how: Leaving, now: Timestamp) -> Result<(), Fail> {
    const DRAIN: &str = "UPDATE nodes SET state = 1 WHERE id = ?1 AND state = 0";
    match how {
        Leaving::Draining => {
            connection.prepare_cached(DRAIN)?.execute([id.as_str()])?;
        }
        Leaving::Gone => {
            for held in end(connection, id, NodeState::Gone, now)? {
                make_due(connection, held.key, Some(now))?;
            }
        }
    }
    Ok(())
}

pub(super) fn bury(
    connection: &Connection,
    outside: &Environment,
    now: Timestamp,
) -> Result<Vec<NodeId>, Fail> {
    let dead = dead(connection, outside)?;
    for id in &dead {
        bury_one(connection, id, now)?;
    }
    Ok(dead)
}

pub(super) fn bury_one(connection: &Connection, id: &NodeId, now: Timestamp) -> Result<(), Fail> {
    const PARK: &str = "UPDATE sessions SET tries = ?2, parked = ?3, due = NULL WHERE key = ?1";
    const RETRY: &str = "UPDATE sessions SET tries = ?2, due = ?3 WHERE key = ?1";
    for Held { key, id, tries } in end(connection, id, NodeState::Buried, now)? {
        if tries >= MOST_TRIES {
            connection.prepare_cached(PARK)?.execute(params![key, tries, PARKED])?;
        } else {
            let due = now.saturating_add(retry_after(&id, tries)).unwrap_or(Timestamp::MAX);
            connection.prepare_cached(RETRY)?.execute(params![key, tries, micros(due)])?;
        }
    }
    Ok(())
}

/// A session that a node held when it ended.
struct Held {
    key: i64,
    id: SessionId,
    /// How many of its owners have died if this one has.
    tries: u16,
}

/// Ends the node, and gives what it held. One that has ended stays as it is.
fn end(connection: &Connection, id: &NodeId, to: NodeState, now: Timestamp) -> Result<Vec<Held>, Fail> {
    const END: &str = "UPDATE nodes SET state = ?2, ended = ?3 WHERE id = ?1 AND state < 2";
    const HELD: &str = "SELECT s.key, s.id, s.tries + (NOT s.at_rest) FROM leases l JOIN sessions s ON s.key = l.session \
         WHERE l.node = ?1 ORDER BY s.key";
    let ended = connection.prepare_cached(END)?.execute(params![id.as_str(), code(to), micros(now)])?;
    if ended == 0 {
        return Ok(Vec::new());
    }
    let read = |row: &Row<'_>| Ok(Held { key: row.get(0)?, id: text(row, 1)?.into(), tries: row.get(2)? });
    let mut select = connection.prepare_cached(HELD)?;
    let held = select.query_map([id.as_str()], read)?.collect::<Result<_, _>>()?;
    connection.prepare_cached("DELETE FROM leases WHERE node = ?1")?.execute([id.as_str()])?;
    Ok(held)
}

pub(super) fn make_due(connection: &Connection, key: i64, due: Option<Timestamp>) -> Result<(), Fail> {
    let mut update = connection.prepare_cached("UPDATE sessions SET due = ?2 WHERE key = ?1")?;
    update.execute(params![key, due.map(micros)])?;
    Ok(())
}
