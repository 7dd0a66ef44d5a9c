//! Who may write which session.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{Changes, Environment, Lease, MOST_TRIES, NodeState, PARKED, Rest},
    store::Error,
};

use super::{
    column::{count, micros, optional_text, time},
    fail::Fail,
    nodes, sessions,
};

/// Fails if the session has a holder that may be alive.
pub(super) fn must_be_free(
    connection: &Connection,
    id: &SessionId,
    outside: &Environment,
) -> Result<(), Fail> {
    dead_holder(connection, (sessions::key(connection, id)?, id), outside).map(drop)
}

/// The holder that is to be buried before another takes the session; an error if it may be alive.
fn dead_holder(
    connection: &Connection,
    (key, id): (i64, &SessionId),
    outside: &Environment,
) -> Result<Option<NodeId>, Fail> {
    let mut select = connection.prepare_cached("SELECT node, since FROM leases WHERE session = ?1")?;
    let read = |row: &Row<'_>| Ok((NodeId::from(row.get::<_, String>(0)?), time(row.get(1)?)));
    let Some((node, since)) = select.query_row([key], read).optional()? else { return Ok(None) };
    let Some(found) = nodes::find(connection, &node)? else { return Ok(None) };
    if found.may_be_buried(outside) {
        return Ok(Some(node));
    }
    Err(Error::Held(id.clone(), Box::new(found.as_holder(since))).into())
}

pub(super) fn acquire(
    connection: &Connection,
    id: &SessionId,
    node: &NodeId,
    outside: &Environment,
) -> Result<u64, Fail> {
    const SELECT: &str = "SELECT key, head, parked, tries + (NOT at_rest) FROM sessions WHERE id = ?1";
    const TENURE: &str = "INSERT INTO tenures (session, epoch, node, head, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    const TAKE: &str = "UPDATE sessions SET epoch = ?2, due = NULL, named = NULL WHERE key = ?1";
    let mut select = connection.prepare_cached(SELECT)?;
    let read = |row: &Row<'_>| {
        let parked = optional_text(row, 2)?;
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, parked, row.get::<_, u16>(3)?))
    };
    let found = select.query_row([id.as_str()], read).optional()?;
    let (key, head, parked, would_be) = found.ok_or_else(|| Error::NoSession(id.clone()))?;
    if nodes::must_be_present(connection, node)?.state == NodeState::Draining {
        return Err(Error::Draining(node.clone()).into());
    }
    let dead = dead_holder(connection, (key, id), outside)?;
    if dead.as_ref() == Some(node) {
        // Its own lease has been over for long, and it has not beaten since: another node would bury it.
        return Err(Error::Buried(node.clone()).into());
    }
    let parked = parked.or_else(|| (dead.is_some() && would_be >= MOST_TRIES).then(|| PARKED.into()));
    if let Some(why) = parked {
        return Err(Error::Parked(id.clone(), why).into());
    }
    let now = outside.now();
    if let Some(dead) = dead {
        nodes::bury_one(connection, &dead, now)?;
    }
    let mut next = connection.prepare_cached("UPDATE epochs SET newest = newest + 1 RETURNING newest")?;
    let epoch: i64 = next.query_row([], |row| row.get(0))?;
    let since = micros(now);
    connection
        .prepare_cached("INSERT OR REPLACE INTO leases (session, node, since) VALUES (?1, ?2, ?3)")?
        .execute(params![key, node.as_str(), since])?;
    connection.prepare_cached(TENURE)?.execute(params![key, epoch, node.as_str(), head, since])?;
    connection.prepare_cached(TAKE)?.execute([key, epoch])?;
    Ok(count(epoch))
}

/// What an append needs to know of its session.
pub(super) struct Seat {
    pub(super) key: i64,
    pub(super) head: u64,
    pub(super) chain: Vec<u8>,
}

/// The session's seat, if the lease is the newest, was not given back, and its node is present.
pub(super) fn must_hold(connection: &Connection, lease: &Lease) -> Result<Seat, Fail> {
    // A node that ends holds nothing any more.
    const SELECT: &str = "SELECT key, head, chain, epoch, \
         EXISTS (SELECT 1 FROM leases WHERE session = key AND node = ?2) FROM sessions WHERE id = ?1";
    let (id, node) = (lease.session(), lease.node().id());
    let mut select = connection.prepare_cached(SELECT)?;
    let read = |row: &Row<'_>| {
        let seat = Seat { key: row.get(0)?, head: count(row.get(1)?), chain: row.get(2)? };
        Ok((seat, count(row.get(3)?), row.get::<_, bool>(4)?))
    };
    let found = select.query_row([id.as_str(), node.as_str()], read).optional()?;
    let (seat, newest, is_held) = found.ok_or_else(|| Error::NoSession(id.clone()))?;
    if newest == lease.epoch() {
        if is_held {
            return Ok(seat);
        }
        let ended = nodes::find(connection, node)?.map(|node| node.state);
        if ended == Some(NodeState::Buried) {
            return Err(Error::Buried(node.clone()).into());
        }
    }
    Err(Error::Fenced { session: id.clone(), epoch: lease.epoch(), newest }.into())
}

pub(super) fn release(
    connection: &Connection,
    lease: &Lease,
    (seen, rest): (Changes, Rest),
    now: Timestamp,
) -> Result<(), Fail> {
    const UPDATE: &str = "UPDATE sessions SET tries = 0, at_rest = 1, due = ?2 WHERE key = ?1";
    let Seat { key, .. } = must_hold(connection, lease)?;
    connection.prepare_cached("DELETE FROM leases WHERE session = ?1")?.execute([key])?;
    let due = match rest {
        _ if sessions::notice(connection, lease.session())?.is_beyond(seen) => Some(now),
        Rest::Nothing => None,
        Rest::After(time) => Some(now.saturating_add(time).unwrap_or(Timestamp::MAX)),
        Rest::Now => Some(now),
    };
    connection.prepare_cached(UPDATE)?.execute(params![key, due.map(micros)])?;
    Ok(())
}
