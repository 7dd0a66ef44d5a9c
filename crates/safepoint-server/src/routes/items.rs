//! Items: pushed, looked at, withdrawn; and the turn that ended early, resumed.

use std::time::Duration;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use tokio::time::timeout;

use super::{Call, json};
use crate::{
    answer::DoneAnswer,
    ask::ItemAsk,
    caller::{
        Kept, Owner,
        items::{numbered, view},
    },
    host::open::Seen,
    problem::{Answered, Problem},
    reader::Reader,
    sse,
};

/// How long a request waits, unless it is said, and at most.
const WAIT_MS: u64 = 30_000;
const MOST_WAIT_MS: u64 = 120_000;

pub(crate) async fn push(call: Call) -> Answered<Response> {
    let ask: ItemAsk = call.body()?;
    let item = ask.item(call.key()?)?;
    let by = &call.by;
    // First: what is no item opens no session.
    drop(item.encoded()?);
    let kept = call.session().await?;
    let owner = by.owner(&kept).await?;
    let streams = call.headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream");
    if streams {
        return Ok(sse::response(Reader::push(by, &kept, &owner, &item).await?.1));
    }
    let pushed = by.push(&kept, &owner, &item).await?;
    let answer = view(&by.host, kept.id(), pushed.number).await?;
    let status = if pushed.seen == Seen::First { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = json(status, &answer)?;
    if pushed.seen == Seen::Again {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let number = numbered(call.param("item"))?;
    let is_waited = match call.query::<String>("wait")?.as_deref() {
        None => false,
        Some("rest") => true,
        Some(other) => {
            return Err(Problem::bad_request(format!("`{other}` is nothing that an item waits for")));
        }
    };
    let within = within(&call)?;
    let answer = if is_waited {
        call.by.rested(&kept, number, within).await?
    } else {
        view(&call.by.host, kept.id(), number).await?
    };
    json(StatusCode::OK, &answer)
}

/// How long a request waits.
pub(super) fn within(call: &Call) -> Answered<Duration> {
    let ms = call.query::<u64>("timeout_ms")?.unwrap_or(WAIT_MS);
    Ok(Duration::from_millis(ms.min(MOST_WAIT_MS)))
}

pub(crate) async fn withdraw(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let number = numbered(call.param("item"))?;
    json(StatusCode::OK, &call.by.withdraw(&kept, number).await?)
}

/// What a caller is told who is to ask the node that has the session.
async fn held_elsewhere(call: &Call, kept: &Kept) -> Answered<Problem> {
    let row = call.by.store().open(kept.id()).await?;
    let node = row.holder.map(|holder| format!(": the node {}", holder.name)).unwrap_or_default();
    Ok(Problem::conflict("session_open", format!("another process has the session{node}")))
}

/// How many owners are asked to resume, each after one that an earlier stop has ended.
const OWNERS: usize = 3;
/// How long the end of such a one is waited for.
const ENDING: Duration = Duration::from_secs(5);

pub(crate) async fn resume(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let nothing = || {
        Problem::conflict(
            "nothing_to_resume",
            "no turn ended early that could be resumed, and nothing is held",
        )
    };
    for _ in 0..OWNERS {
        let (owner, was_parked) = call.by.owner_by_name(&kept).await?;
        let Owner::Here(open) = owner else {
            return Err(held_elsewhere(&call, &kept).await?);
        };
        let handle = open.handle();
        if handle.resume().await || was_parked {
            return json(StatusCode::ACCEPTED, &DoneAnswer { status: "resuming" });
        }
        // A stop of before this request may end the session that was opened for it; the next owner finds that stop done.
        if !handle.is_ending() {
            return Err(nothing());
        }
        if timeout(ENDING, call.by.host.closed(kept.id())).await.is_err() {
            break;
        }
    }
    Err(Problem::conflict("session_open", "a stop is ending the session; ask again"))
}
