//! Agents, and sessions: made, listed, shown and removed.

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use jiff::Timestamp;
use safepoint::{ids::SessionId, raw::store::PageCursor};

use super::{Call, json};
use crate::{
    answer::{AgentAnswer, DoneAnswer, ListPage, SessionState},
    ask::SessionAsk,
    audit::AuditNote,
    caller::{
        SessionMake,
        sessions::{view, whole},
    },
    host::{open::Seen, setup::Setup},
    problem::{Answered, Problem},
};

/// How many are listed, unless it is said, and at most.
const LIMIT: usize = 50;
pub(super) const MOST: usize = 500;
/// How many sessions one request looks at; one that the token sees counts as several, because more is read of it.
const LOOKED: usize = 5_000;
const SEEN: usize = 5;

pub(crate) async fn agents(call: Call) -> Answered<Response> {
    let all = call.by.host.agents.iter().filter(|(name, _)| call.by.who.uses(name));
    let data = all.map(|(name, offered)| {
        let (name, description) = (name.clone(), offered.description.clone());
        AgentAnswer { name, description }
    });
    json(StatusCode::OK, &ListPage { data: data.collect(), next: None })
}

pub(crate) async fn make(call: Call) -> Answered<Response> {
    let ask: SessionAsk = call.body()?;
    let key = call.key()?;
    let item = ask.item.map(|item| item.item(key.clone())).transpose()?;
    let title = ask.title.unwrap_or_default();
    let make = SessionMake { agent: ask.agent, title, item, key, ..SessionMake::default() };
    let (kept, seen) = call.by.make(make).await?;
    let status = if seen == Seen::First { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json(status, &whole(&call.by.host, &kept.row, &kept.setup).await?)?;
    let note = AuditNote { session: Some(kept.id().to_string()), of: None };
    response.extensions_mut().insert(note);
    if seen == Seen::Again {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

pub(crate) async fn list(call: Call) -> Answered<Response> {
    let limit = limit(&call)?;
    let (state, agent) = (call.query::<SessionState>("state")?, call.query::<String>("agent")?);
    let mut older = call.query::<String>("after")?.map(|after| cursor(&after)).transpose()?;
    let is_meant = |setup: &Setup| {
        call.by.who.sees(&setup.principal, &setup.agent)
            && agent.as_ref().is_none_or(|agent| *agent == setup.agent)
    };
    let (mut data, mut most, mut left) = (Vec::new(), limit, LOOKED);
    loop {
        let rows = call.by.store().list(most, older.clone()).await?;
        let is_last = rows.len() < most;
        for row in rows {
            older = Some(row.older());
            left = left.saturating_sub(1);
            let setup = Setup::of(&row);
            if is_meant(&setup) {
                left = left.saturating_sub(SEEN);
                let one = view(&call.by.host, &row, &setup).await?;
                data.extend(Some(one).filter(|one| state.is_none_or(|state| one.state == state)));
            }
            if data.len() == limit || left == 0 {
                let next = older.map(|PageCursor { updated, id }| format!("{updated}~{id}"));
                return json(StatusCode::OK, &ListPage { data, next });
            }
        }
        if is_last {
            return json(StatusCode::OK, &ListPage { data, next: None });
        }
        // The others are of others: they are read in as few pieces as may be.
        most = MOST;
    }
}

/// How many the page is to have.
///
/// # Errors
/// If it is a page of none, or of more than one has.
pub(super) fn limit(call: &Call) -> Answered<usize> {
    let limit = call.query::<usize>("limit")?.unwrap_or(LIMIT);
    if (1..=MOST).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request(format!("`limit`: {limit} is not in 1 to {MOST}")))
}

/// The place that a list continues behind.
///
/// # Errors
/// If the text names none.
pub(crate) fn cursor(after: &str) -> Answered<PageCursor> {
    let found = after.split_once('~').and_then(|(updated, id)| {
        Some(PageCursor { updated: updated.parse::<Timestamp>().ok()?, id: SessionId::from(id) })
    });
    found.ok_or_else(|| Problem::bad_request("`after` is no `next` of a page"))
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    json(StatusCode::OK, &whole(&call.by.host, &kept.row, &kept.setup).await?)
}

fn in_use() -> Problem {
    let detail = "something of the session runs or waits: stop it, or withdraw what waits, first";
    Problem::conflict("session_open", detail)
}

pub(crate) async fn remove(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    if !call.by.host.unload(kept.id()).await {
        return Err(in_use());
    }
    if !call.by.store().remove_if_at_rest(kept.id()).await? {
        return Err(in_use());
    }
    call.by.host.board.removed_here();
    json(StatusCode::OK, &DoneAnswer { status: "removed" })
}
