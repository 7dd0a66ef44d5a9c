//! Approvals: opened and closed by the holder, decided once, by any process.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use safepoint::{
    ids::{ApprovalId, CallId, RunId, SessionId},
    raw::store::{
        ApprovalClose, ApprovalCursor, ApprovalRow, ApprovalState, CloseResult, DecisionResult, DecisionUse,
        NewApproval, NewDecision, SessionApproval,
    },
    store::Error,
};

use super::{
    column::{int, micros, text, time},
    due,
    fail::Fail,
    sessions,
};

const COLUMNS: &str =
    "SELECT id, run, call, digest, expires, bytes, at, state, principal, decided, decision FROM approvals";

/// How an approval's state stands in its column.
mod code {
    pub(super) const OPEN: i64 = 0;
    pub(super) const DECIDED: i64 = 1;
    pub(super) const USED: i64 = 2;
    pub(super) const WITHDRAWN: i64 = 3;
    pub(super) const EXPIRED: i64 = 4;
}

fn row(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    let asked = NewApproval {
        id: ApprovalId::from(text(row, 0)?),
        run: RunId::from(text(row, 1)?),
        call: CallId::from(text(row, 2)?),
        digest: text(row, 3)?,
        expires: time(row.get(4)?),
        bytes: row.get(5)?,
    };
    let decided = |used| -> rusqlite::Result<ApprovalState> {
        Ok(ApprovalState::Decided {
            principal: text(row, 8)?,
            at: time(row.get(9)?),
            bytes: row.get(10)?,
            used,
        })
    };
    let state = match row.get(7)? {
        code::OPEN => ApprovalState::Open,
        code::DECIDED => decided(DecisionUse::Waiting)?,
        code::USED => decided(DecisionUse::Used)?,
        code::WITHDRAWN => ApprovalState::Withdrawn,
        // Whatever else stands there, it is not to be decided any more.
        _ => ApprovalState::Expired,
    };
    Ok(ApprovalRow { asked, at: time(row.get(6)?), state })
}

fn code_of(state: &ApprovalState) -> i64 {
    match state {
        ApprovalState::Open => code::OPEN,
        ApprovalState::Decided { used: DecisionUse::Waiting, .. } => code::DECIDED,
        ApprovalState::Decided { used: DecisionUse::Used, .. } => code::USED,
        ApprovalState::Withdrawn => code::WITHDRAWN,
        ApprovalState::Expired => code::EXPIRED,
    }
}

pub(super) fn find(connection: &Connection, key: i64, id: &ApprovalId) -> Result<Option<ApprovalRow>, Fail> {
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE session = ?1 AND id = ?2"))?;
    Ok(select.query_row(params![key, id.as_str()], row).optional()?)
}

pub(super) fn list(connection: &Connection, id: &SessionId) -> Result<Vec<ApprovalRow>, Fail> {
    let key = sessions::key(connection, id)?;
    let mut select = connection.prepare_cached(&format!("{COLUMNS} WHERE session = ?1 ORDER BY key"))?;
    Ok(select.query_map([key], row)?.collect::<Result<_, _>>()?)
}

/// Those of all sessions that are open, from the index of the open ones alone: it is ordered by the time.
pub(super) fn list_open(
    connection: &Connection,
    most: usize,
    after: Option<&ApprovalCursor>,
) -> Result<Vec<SessionApproval>, Fail> {
    const SELECT: &str = "SELECT a.id, run, call, digest, expires, bytes, at, state, principal, decided, decision, s.id \
         FROM approvals a JOIN sessions s ON s.key = a.session WHERE a.state = 0";
    const ORDER: &str = "ORDER BY at, s.id, a.id LIMIT :most";
    let read = |found: &Row<'_>| {
        Ok(SessionApproval { row: row(found)?, session: SessionId::from(text(found, 11)?) })
    };
    let most = int(most as u64);
    let rows = match after {
        Some(ApprovalCursor { at, session, id }) => {
            let sql = format!("{SELECT} AND at >= :at AND (at, s.id, a.id) > (:at, :session, :id) {ORDER}");
            let from = named_params! {
                ":at": micros(*at), ":session": session.as_str(), ":id": id.as_str(), ":most": most,
            };
            connection.prepare_cached(&sql)?.query_map(from, read)?.collect::<Result<_, _>>()?
        }
        None => {
            let mut select = connection.prepare_cached(&format!("{SELECT} {ORDER}"))?;
            select.query_map(named_params! { ":most": most }, read)?.collect::<Result<_, _>>()?
        }
    };
    Ok(rows)
}

pub(super) fn open(
    connection: &Connection,
    key: i64,
    asked: &NewApproval,
    now: Timestamp,
) -> Result<(), Fail> {
    const INSERT: &str = "INSERT INTO approvals (session, id, run, call, digest, expires, bytes, at, state) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0) ON CONFLICT (session, id) DO NOTHING";
    let NewApproval { id, run, call, digest, expires, bytes } = asked;
    let (name, run, call) = (id.as_str(), run.as_str(), call.as_str());
    let mut insert = connection.prepare_cached(INSERT)?;
    let made = insert.execute(params![key, name, run, call, digest, micros(*expires), bytes, micros(now)])?;
    if made == 0 { Err(Error::ApprovalExists(id.clone()).into()) } else { Ok(()) }
}

/// Puts these into a session that has none.
pub(super) fn refill(connection: &Connection, key: i64, approvals: &[ApprovalRow]) -> Result<(), Fail> {
    const INSERT: &str = "INSERT INTO approvals (session, id, run, call, digest, expires, bytes, at, state, principal, decided, decision) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let mut insert = connection.prepare_cached(INSERT)?;
    for ApprovalRow { asked, at, state } in approvals {
        let NewApproval { id, run, call, digest, expires, bytes } = asked;
        let (principal, decided, decision) = match state {
            ApprovalState::Decided { principal, at, bytes, .. } => {
                (Some(principal), Some(micros(*at)), Some(bytes))
            }
            ApprovalState::Open | ApprovalState::Withdrawn | ApprovalState::Expired => (None, None, None),
        };
        let (id, run, call) = (id.as_str(), run.as_str(), call.as_str());
        insert.execute(params![
            key,
            id,
            run,
            call,
            digest,
            micros(*expires),
            bytes,
            micros(*at),
            code_of(state),
            principal,
            decided,
            decision,
        ])?;
    }
    Ok(())
}

pub(super) fn close(
    connection: &Connection,
    key: i64,
    id: &ApprovalId,
    closed: ApprovalClose,
) -> Result<CloseResult, Fail> {
    const UPDATE: &str = "UPDATE approvals SET state = ?3 WHERE session = ?1 AND id = ?2";
    let mut row = find(connection, key, id)?.ok_or_else(|| Error::NoApproval(id.clone()))?;
    let closing = row.close(closed)?;
    connection.prepare_cached(UPDATE)?.execute(params![key, id.as_str(), code_of(&row.state)])?;
    Ok(closing)
}

/// How many were withdrawn.
pub(super) fn withdraw_open(connection: &Connection, key: i64) -> Result<u64, Fail> {
    // Open is written out: only so is its index used.
    const UPDATE: &str = "UPDATE approvals SET state = ?2 WHERE session = ?1 AND state = 0";
    let withdrawn = connection.prepare_cached(UPDATE)?.execute([key, code::WITHDRAWN])?;
    Ok(withdrawn as u64)
}

/// The same of these alone.
pub(super) fn withdraw_these(connection: &Connection, key: i64, these: &[ApprovalId]) -> Result<u64, Fail> {
    const UPDATE: &str = "UPDATE approvals SET state = ?3 WHERE session = ?1 AND id = ?2 AND state = 0";
    let mut update = connection.prepare_cached(UPDATE)?;
    let mut withdrawn = 0;
    for id in these {
        withdrawn += update.execute(params![key, id.as_str(), code::WITHDRAWN])?;
    }
    Ok(withdrawn as u64)
}

pub(super) fn decide(
    connection: &Connection,
    id: &SessionId,
    decision: &NewDecision,
    now: Timestamp,
) -> Result<DecisionResult, Fail> {
    const UPDATE: &str = "UPDATE approvals SET state = ?3, principal = ?4, decided = ?5, decision = ?6 \
         WHERE session = ?1 AND id = ?2";
    const CHANGED: &str = "UPDATE sessions SET updated = ?2, decisions = decisions + 1 WHERE key = ?1";
    let key = sessions::key(connection, id)?;
    let Some(row) = find(connection, key, &decision.id)? else { return Ok(DecisionResult::Unknown) };
    let decided = row.judge(decision, now);
    if decided == DecisionResult::Taken {
        let NewDecision { id, principal, bytes, .. } = decision;
        let mut update = connection.prepare_cached(UPDATE)?;
        update.execute(params![key, id.as_str(), code::DECIDED, principal, micros(now), bytes])?;
        connection.prepare_cached(CHANGED)?.execute([key, micros(now)])?;
        due::touch(connection, key, now)?;
    }
    Ok(decided)
}
