//! What others do to sessions, as their holders learn it, and sessions that want a holder and have none.

use std::{collections::BTreeSet, collections::VecDeque, time::Duration};

use futures_util::{
    future::{Either, select},
    stream,
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{
        Among, ApprovalsToWithdraw, Cause, Change, ChangeStream, Due, NAMED_AGAIN_AFTER, StopIntent,
        StoreFuture, Tenure,
    },
    store::Error,
};
use tokio::{sync::watch, time::sleep};

use super::{
    column::{count, int, micros, text, time},
    fail::Fail,
    nodes,
    reader::WeakReader,
    sessions, stops,
};

/// How often it is looked whether another process wrote (S1.5, S7.44).
const LOOK: Duration = Duration::from_millis(200);

/// Another process gave the session something to do: its holder finds it by the count, or it wants one.
pub(super) fn touch(connection: &Connection, key: i64, now: Timestamp) -> Result<(), Fail> {
    const COUNT: &str = "UPDATE epochs SET touched = touched + 1";
    const UPDATE: &str = "UPDATE sessions SET touched = (SELECT touched FROM epochs), \
         due = CASE WHEN EXISTS (SELECT 1 FROM leases WHERE session = ?1) THEN due ELSE min(coalesce(due, ?2), ?2) END \
         WHERE key = ?1";
    connection.prepare_cached(COUNT)?.execute([])?;
    connection.prepare_cached(UPDATE)?.execute([key, micros(now)])?;
    Ok(())
}

const DUE: &str = "FROM sessions WHERE due IS NOT NULL AND parked IS NULL AND due <= ?1 \
     AND (named IS NULL OR named > ?1 OR named <= ?2) \
     AND (pool = '' OR pool IN (SELECT value FROM json_each(?3)))";

/// Before this, what was named then is named again.
fn named_before(now: Timestamp) -> i64 {
    micros(now.saturating_sub(NAMED_AGAIN_AFTER).unwrap_or(Timestamp::MIN))
}

/// `pools`: a list of texts, as JSON.
pub(super) fn is_any(connection: &Connection, pools: &str, now: Timestamp) -> Result<bool, Fail> {
    let mut select = connection.prepare_cached(&format!("SELECT EXISTS (SELECT 1 {DUE})"))?;
    Ok(select.query_row(params![micros(now), named_before(now), pools], |row| row.get(0))?)
}

/// `pools`: a list of texts, as JSON.
pub(super) fn due(
    connection: &Connection,
    most: usize,
    pools: &str,
    now: Timestamp,
) -> Result<Vec<Due>, Fail> {
    let sql = format!("SELECT key, id, pool, priority, tries {DUE} ORDER BY priority, due, id LIMIT ?4");
    let read = |row: &Row<'_>| {
        let due = Due {
            session: text(row, 1)?.into(),
            pool: text(row, 2)?,
            priority: row.get(3)?,
            tries: row.get(4)?,
        };
        Ok((row.get::<_, i64>(0)?, due))
    };
    let mut select = connection.prepare_cached(&sql)?;
    let found = select
        .query_map(params![micros(now), named_before(now), pools, int(most as u64)], read)?
        .collect::<Result<Vec<_>, _>>()?;
    let mut update = connection.prepare_cached("UPDATE sessions SET named = ?2 WHERE key = ?1")?;
    for (key, _) in &found {
        update.execute([*key, micros(now)])?;
    }
    Ok(found.into_iter().map(|(_, due)| due).collect())
}

pub(super) fn unpark(connection: &Connection, id: &SessionId, now: Timestamp) -> Result<(), Fail> {
    const UPDATE: &str = "UPDATE sessions SET tries = 0, due = CASE WHEN parked IS NULL THEN due ELSE ?2 END, \
         parked = NULL WHERE key = ?1";
    let key = sessions::key(connection, id)?;
    connection.prepare_cached(UPDATE)?.execute([key, micros(now)])?;
    Ok(())
}

/// Puts these into a session that has none.
pub(super) fn refill(connection: &Connection, key: i64, tenures: &[Tenure]) -> Result<(), Fail> {
    const INSERT: &str = "INSERT INTO tenures (session, epoch, node, head, at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut insert = connection.prepare_cached(INSERT)?;
    for Tenure { epoch, node, head, at } in tenures {
        insert.execute(params![key, int(*epoch), node.as_str(), int(*head), micros(*at)])?;
    }
    Ok(())
}

pub(super) fn tenures(connection: &Connection, id: &SessionId) -> Result<Vec<Tenure>, Fail> {
    let key = sessions::key(connection, id)?;
    let mut select = connection
        .prepare_cached("SELECT epoch, node, head, at FROM tenures WHERE session = ?1 ORDER BY epoch")?;
    let read = |row: &Row<'_>| {
        let (epoch, head) = (count(row.get(0)?), count(row.get(2)?));
        Ok(Tenure { epoch, node: text(row, 1)?.into(), head, at: time(row.get(3)?) })
    };
    Ok(select.query_map([key], read)?.collect::<Result<_, _>>()?)
}

pub(super) fn ask_stops(
    connection: &Connection,
    among: &Among,
    stop: &StopIntent,
    now: Timestamp,
) -> Result<u64, Fail> {
    if stop.approvals != ApprovalsToWithdraw::Stay {
        let why = "a stop of many sessions withdraws no approvals; ask each of them alone";
        return Err(Error::Failed(Cause::new(why)).into());
    }
    let named = |sql: &str, by: &[&dyn rusqlite::ToSql]| -> Result<BTreeSet<SessionId>, Fail> {
        let mut select = connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| Ok(text(row, 0)?.into());
        Ok(select.query_map(by, read)?.collect::<Result<_, _>>()?)
    };
    let ids = match among {
        Among::Held => named("SELECT s.id FROM leases l JOIN sessions s ON s.key = l.session", &[])?,
        Among::Node(node) => named(
            "SELECT s.id FROM leases l JOIN sessions s ON s.key = l.session WHERE l.node = ?1",
            &[&node.as_str()],
        )?,
        Among::Pool(pool) => named("SELECT id FROM sessions WHERE pool = ?1", &[pool])?,
        Among::These(these) => these.iter().cloned().collect(),
    };
    for id in &ids {
        stops::ask(connection, id, stop, now)?;
    }
    Ok(ids.len() as u64)
}

/// How much was touched so far.
pub(super) fn mark(connection: &Connection) -> Result<i64, Fail> {
    Ok(connection.prepare_cached("SELECT touched FROM epochs")?.query_row([], |row| row.get(0))?)
}

/// What a look has found: which commit was seen, how much was touched until then, and what of it is the node's.
struct Seen {
    version: i64,
    mark: i64,
    changes: Vec<Change>,
}

/// What was touched after `after`; `None` if no process wrote since `version`. An error once the node has ended.
fn look(
    connection: &Connection,
    node: &NodeId,
    version: Option<i64>,
    after: i64,
) -> Result<Option<Seen>, Fail> {
    // The index of what was touched first: a node may hold many sessions, and few of them are touched at a time.
    const TOUCHED: &str = "SELECT s.id, s.inbox_changes, s.stops, s.decisions, s.epoch \
         FROM sessions s INDEXED BY sessions_touched CROSS JOIN leases l ON l.session = s.key \
         WHERE s.touched > ?1 AND l.node = ?2";
    // The connection never writes, so that every change is another's.
    let newest: i64 = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    if version == Some(newest) {
        return Ok(None);
    }
    let moment = connection.unchecked_transaction()?;
    if !nodes::state_of(&moment, node)?.is_present() {
        return Err(Error::Buried(node.clone()).into());
    }
    let mark = mark(&moment)?;
    let read =
        |row: &Row<'_>| Ok(Change { session: text(row, 0)?.into(), changes: sessions::changes(row, 1)? });
    let mut select = moment.prepare_cached(TOUCHED)?;
    let changes = select.query_map(params![after, node.as_str()], read)?.collect::<Result<_, _>>()?;
    Ok(Some(Seen { version: newest, mark, changes }))
}

/// A node that listens.
struct Listening {
    node: NodeId,
    reader: WeakReader,
    /// Wakes it when this handle has written for others.
    nudges: watch::Receiver<u64>,
    /// The first mark, which was asked when the listening began.
    first: Option<StoreFuture<'static, i64>>,
    version: Option<i64>,
    mark: i64,
    found: VecDeque<Change>,
    is_over: bool,
}

/// `first` was asked before this, and is answered before anything that is asked after it.
pub(super) fn changes(
    node: NodeId,
    reader: WeakReader,
    nudges: watch::Receiver<u64>,
    first: StoreFuture<'static, i64>,
) -> ChangeStream {
    let listening = Listening {
        node,
        reader,
        nudges,
        first: Some(first),
        version: None,
        mark: 0,
        found: VecDeque::new(),
        is_over: false,
    };
    Box::pin(stream::unfold(listening, |mut listening| async move {
        let next = listening.next().await?;
        Some((next, listening))
    }))
}

impl Listening {
    async fn next(&mut self) -> Option<Result<Change, Error>> {
        if self.is_over {
            return None;
        }
        loop {
            if let Some(change) = self.found.pop_front() {
                return Some(Ok(change));
            }
            if let Err(error) = self.look().await {
                self.is_over = matches!(error, Error::Buried(_) | Error::Gone);
                return Some(Err(error));
            }
            if self.found.is_empty() {
                self.wait().await;
            }
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        if let Some(first) = self.first.take() {
            self.mark = first.await?;
        }
        let (node, version, after) = (self.node.clone(), self.version, self.mark);
        let seen = self.reader.ask(move |connection| look(connection, &node, version, after)).await?;
        if let Some(Seen { version, mark, changes }) = seen {
            (self.version, self.mark) = (Some(version), mark);
            self.found.extend(changes);
        }
        Ok(())
    }

    async fn wait(&mut self) {
        let nudged = Box::pin(self.nudges.changed());
        let soon = Box::pin(sleep(LOOK));
        // Either leads to the same look.
        if let Either::Left((Err(_closed), soon)) = select(nudged, soon).await {
            soon.await;
        }
    }
}
