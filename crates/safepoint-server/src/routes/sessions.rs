//! Agents, and sessions: made, listed, shown and removed.

use std::sync::Arc;

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalState, Changes, ItemState, Liveness, NewSession, PageCursor},
    store::{Error, SessionRow},
};
use sha2::{Digest as _, Sha256};

use super::{Call, items, json};
use crate::{
    answer::{AgentAnswer, DoneAnswer, ListPage, OpenAt, RunningTurn, SessionAnswer, SessionState},
    ask::SessionAsk,
    host::{HostState, open::OpenSession, read, setup::Setup},
    lines::EventPlace,
    problem::{Answered, Problem},
};

/// How many are listed, unless it is said, and at most.
pub(super) const LIMIT: usize = 50;
pub(super) const MOST: usize = 500;

pub(crate) async fn agents(call: Call) -> Answered<Response> {
    let all = call.app.host.agents.iter().filter(|(name, _)| call.who.uses(name));
    let data = all.map(|(name, offered)| {
        let (name, description) = (name.clone(), offered.description.clone());
        AgentAnswer { name, description }
    });
    json(StatusCode::OK, &ListPage { data: data.collect(), next: None })
}

pub(crate) async fn make(call: Call) -> Answered<Response> {
    let ask: SessionAsk = call.body()?;
    let agent = agent(&call, ask.agent.as_deref())?;
    let key = call.key()?;
    let id = key.as_ref().map_or_else(SessionId::fresh, |key| named(call.who.name(), key));
    let item = ask.item.map(|item| items::encoded(&item, key.clone())).transpose()?;
    let digest = item.as_ref().map(|item| item.digest.clone());
    let setup = Setup { agent, principal: call.who.name().to_owned(), item: digest };
    let new = NewSession {
        title: ask.title.unwrap_or_default(),
        setup: setup.write(),
        items: Vec::from_iter(item),
        ..NewSession::of(id.clone())
    };
    let (row, is_new) = match call.store().create(new).await {
        Ok(row) => (row, true),
        Err(Error::SessionExists(_)) => (call.store().open(&id).await?, false),
        Err(error) => return Err(error.into()),
    };
    if !is_new && Setup::of(&row) != setup {
        return Err(Problem::conflict("other_content", "this Idempotency-Key was used for other content"));
    }
    if setup.item.is_some() {
        call.wake(&row, &setup);
    }
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json(status, &answer(&call.app.host, &row, &setup).await?)?;
    if !is_new {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn agent(call: &Call, named: Option<&str>) -> Answered<String> {
    let agents = &call.app.host.agents;
    let found = match named {
        Some(named) => agents.get_key_value(named).map(|(name, _)| name),
        None if agents.len() == 1 => agents.keys().next(),
        None => return Err(Problem::bad_request("`agent` names one of several agents")),
    };
    found.filter(|name| call.who.uses(name)).cloned().ok_or_else(|| Problem::no_such("agent"))
}

/// The session of a principal's key.
fn named(principal: &str, key: &str) -> SessionId {
    const DIGITS: usize = 32;
    let digest = Sha256::digest(format!("{}:{principal}:{key}", principal.len()));
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    SessionId::from(format!("ses_{}", &digits[..DIGITS]))
}

pub(crate) async fn list(call: Call) -> Answered<Response> {
    let limit = call.query::<usize>("limit")?.unwrap_or(LIMIT).clamp(1, MOST);
    let (state, agent) = (call.query::<String>("state")?, call.query::<String>("agent")?);
    let mut older = call.query::<String>("after")?.map(|after| cursor(&after)).transpose()?;
    let mut data = Vec::new();
    loop {
        let rows = call.store().list(limit, older.clone()).await?;
        let is_last = rows.len() < limit;
        for row in rows {
            older = Some(row.older());
            let setup = Setup::of(&row);
            if !call.who.sees(&setup.principal, &setup.agent)
                || agent.as_ref().is_some_and(|agent| *agent != setup.agent)
            {
                continue;
            }
            let one = answer(&call.app.host, &row, &setup).await?;
            if state.as_ref().is_none_or(|state| one.state.as_str() == state) {
                data.push(one);
            }
            if data.len() == limit {
                let next = older.map(|PageCursor { updated, id }| format!("{updated}~{id}"));
                return json(StatusCode::OK, &ListPage { data, next });
            }
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
    }
}

fn cursor(after: &str) -> Answered<PageCursor> {
    let found = after.split_once('~').and_then(|(updated, id)| {
        Some(PageCursor { updated: updated.parse::<Timestamp>().ok()?, id: SessionId::from(id) })
    });
    found.ok_or_else(|| Problem::bad_request("`after` is no `next` of a page"))
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let (row, setup) = call.session().await?;
    json(StatusCode::OK, &answer(&call.app.host, &row, &setup).await?)
}

pub(crate) async fn remove(call: Call) -> Answered<Response> {
    let (row, _setup) = call.session().await?;
    if call.app.host.opened(&row.id).is_some() {
        return Err(Problem::conflict("session_open", "the session is open: stop it first"));
    }
    call.store().remove(&row.id).await?;
    json(StatusCode::OK, &DoneAnswer { status: "removed" })
}

/// The session as it is now.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn answer(
    host: &Arc<HostState>,
    row: &SessionRow,
    setup: &Setup,
) -> Answered<SessionAnswer> {
    let here = host.opened(&row.id);
    let store = &*host.store;
    let inbox = store.inbox(&row.id).await?;
    let waiting: Vec<String> = inbox
        .iter()
        .filter(|item| item.state == ItemState::Waiting)
        .map(|item| format!("item-{}", item.number))
        .collect();
    let approvals = store.approvals(&row.id).await?;
    let open = if here.is_some() {
        OpenAt::Here
    } else if is_held(row) {
        OpenAt::Elsewhere
    } else {
        OpenAt::No
    };
    let turn = here.as_ref().and_then(running);
    Ok(SessionAnswer {
        id: row.id.to_string(),
        agent: setup.agent.clone(),
        title: row.title.clone(),
        state: if turn.is_some() { SessionState::Running } else { state(row, open, !waiting.is_empty()) },
        open,
        durable: host.is_durable,
        turn,
        waiting,
        approvals: approvals.iter().filter(|row| row.state == ApprovalState::Open).count(),
        created: row.created,
        updated: row.updated,
        cursor: cursor_of(host, row).await?.map(|place| place.to_string()),
    })
}

/// The place of the session's last record.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn cursor_of(host: &HostState, row: &SessionRow) -> Answered<Option<EventPlace>> {
    let Some(position) = row.head.checked_sub(1) else { return Ok(None) };
    let tenures = host.store.tenures(&row.id).await?;
    Ok(Some(EventPlace { epoch: read::epoch_at(&tenures, position), position }))
}

fn running(open: &Arc<OpenSession>) -> Option<RunningTurn> {
    let turn = open.handle().current_turn()?;
    Some(RunningTurn {
        id: turn.turn.to_string(),
        run: turn.run.id().to_string(),
        alive: turn.run.alive(),
        stopping: turn.run.stop_requested().is_some(),
    })
}

/// Whether a process that may be alive has it.
pub(super) fn is_held(row: &SessionRow) -> bool {
    row.holder.as_ref().is_some_and(|held| held.owner.life() != Liveness::Dead)
}

fn state(row: &SessionRow, open: OpenAt, waits: bool) -> SessionState {
    match (row.label.as_str(), open) {
        ("suspended", _) => SessionState::Suspended,
        ("running", OpenAt::No) => SessionState::Crashed,
        ("running", OpenAt::Elsewhere) => SessionState::Running,
        (_, OpenAt::Here) if waits => SessionState::Queued,
        ("stopped", _) => SessionState::Stopped,
        ("failed", _) => SessionState::Failed,
        _ if waits => SessionState::Queued,
        (_, OpenAt::Here | OpenAt::Elsewhere) => SessionState::Open,
        (_, OpenAt::No) => SessionState::Idle,
    }
}

/// The newest number of an item of the session.
pub(super) fn newest_item(changes: Changes) -> u64 {
    changes.items
}
