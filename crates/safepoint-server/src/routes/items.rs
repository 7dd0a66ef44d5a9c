//! Items: pushed, looked at, withdrawn; and the turn that ended early, resumed.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use safepoint::{
    ids::SessionId,
    raw::{
        encode_item,
        store::{ItemState as RowState, NewItem, Pushed, Withdrawn},
    },
    session::{ItemOutcome, Push, PushError, RejectReason, Ticket},
    store::SessionRow,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    Call, Owner, json,
    load::Load,
    sessions::{is_held, newest_item},
};
use crate::{
    answer::{DoneAnswer, ItemAnswer, ItemState, outcome_words},
    ask::{ItemAsk, parsed},
    host::{
        HostState,
        open::{OpenSession, Seen},
        read,
    },
    problem::{Answered, Problem},
    sse::{Reader, Until},
};

/// How many items may wait.
const INBOX: usize = 1_024;
/// How often an item of another process is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a request waits, unless it is said, and at most.
const WAIT_MS: u64 = 30_000;
const MOST_WAIT_MS: u64 = 120_000;

/// What was pushed: its number, and whether it was there before.
struct Put {
    number: u64,
    seen: Seen,
}

/// The item as the store keeps it.
///
/// # Errors
/// `blank`, and what its policy lacks.
pub(super) fn encoded(ask: &ItemAsk, key: Option<String>) -> Answered<NewItem> {
    if ask.text.trim().is_empty() {
        return Err(blank());
    }
    Ok(encode_item(&ask.text, ask.policy()?, key, INBOX)?)
}

pub(crate) async fn push(call: Call) -> Answered<Response> {
    let ask: ItemAsk = call.body()?;
    let (sealed, key) = (encoded(&ask, call.key()?)?, call.key()?);
    let (row, setup) = call.session().await?;
    let owner = call.owner(&row, &setup).await?;
    let streams = call.headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream");
    // The reader is there before the item, so that it misses nothing of it.
    let stream = match (&owner, streams) {
        (Owner::Here(_), true) => Some(Reader::start(&call, &row, None).await?.joined().await?),
        _ => None,
    };
    let put = match &owner {
        Owner::Here(open) => here(&call, open, &row, (&ask, key), sealed).await?,
        Owner::Elsewhere => stored(&call, &row.id, sealed).await?,
    };
    if put.seen == Seen::First {
        Load::count(&call.app.load.items);
    }
    let answer = view(&call.app.host, &row.id, put.number).await?;
    if let Some(stream) = stream {
        return Ok(stream.until(Until::Item(put.number)).response());
    }
    let status = if put.seen == Seen::First { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = json(status, &answer)?;
    if put.seen == Seen::Again {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Pushes it by the session's own door; acknowledged once it is recorded.
async fn here(
    call: &Call,
    open: &Arc<OpenSession>,
    row: &SessionRow,
    (ask, key): (&ItemAsk, Option<String>),
    sealed: NewItem,
) -> Answered<Put> {
    let handle = open.handle();
    let push = Push::new(ask.text.clone()).policy(ask.policy()?);
    let is_keyed = key.is_some();
    let pushed = handle.push(match key {
        Some(key) => push.id(key),
        None => push,
    });
    let ticket = match pushed {
        Ok(ticket) => ticket,
        // It has just ended: the next owner has it from the store.
        Err(PushError::Closed(_)) => return stored(call, &row.id, sealed).await,
        Err(error) => return Err(refused(&error)),
    };
    open.pushed(&ticket);
    match ticket.recorded().await {
        Some(number) => {
            let seen = open.keep(number, &ticket);
            // What is returned at once is no accepted item; the barrier has it known.
            drop(handle.withdraw(safepoint::ids::ItemId::new(u64::MAX)).await);
            match ticket.fate_now() {
                Some(ItemOutcome::Returned(why)) if seen == Seen::First => Err(returned(why, &ticket, row)),
                _ => Ok(Put { number, seen }),
            }
        }
        None => match ticket.fate_now() {
            // It came before, through the store, which alone knows where it is.
            Some(ItemOutcome::Returned(RejectReason::Known | RejectReason::OtherContent)) => {
                stored(call, &row.id, sealed).await
            }
            Some(ItemOutcome::Returned(why)) => Err(returned(why, &ticket, row)),
            // The store may have it or not; under its key it is the same item.
            _ if is_keyed => stored(call, &row.id, sealed).await,
            _ => {
                let detail = "it is not known whether the store has the item: look at the session before you send it again";
                Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", detail))
            }
        },
    }
}

/// Puts it into the store alone.
async fn stored(call: &Call, session: &SessionId, sealed: NewItem) -> Answered<Put> {
    match call.store().push(session, sealed).await? {
        Pushed::Accepted(number) => Ok(Put { number, seen: Seen::First }),
        Pushed::Same(number) => Ok(Put { number, seen: Seen::Again }),
        Pushed::Conflict(number) => Err(other_content().with("item", format!("item-{number}"))),
        Pushed::Full | Pushed::Closed => Err(full()),
    }
}

fn blank() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "blank", "an item must say something")
}

fn other_content() -> Problem {
    Problem::conflict("other_content", "this Idempotency-Key was used for other content")
}

fn full() -> Problem {
    let detail = "the inbox is full: wait for a turn to end, or withdraw something";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "inbox_full", detail).retry_after(Duration::from_secs(1))
}

fn refused(error: &PushError<String>) -> Problem {
    match error {
        PushError::Blank(_) => blank(),
        PushError::Full(_) => full(),
        PushError::OtherContent(_) => other_content(),
        other => Problem::conflict(other.code(), other.to_string()),
    }
}

fn returned(why: RejectReason, ticket: &Ticket<String>, row: &SessionRow) -> Problem {
    drop(ticket.take_back());
    match why {
        RejectReason::Full => full(),
        RejectReason::Blank => blank(),
        RejectReason::OtherContent => other_content(),
        RejectReason::Busy(turn) => {
            let code = if row.label == "suspended" { "turn_suspended" } else { "turn_active" };
            let problem = Problem::conflict(code, why.to_string());
            match turn {
                Some(turn) => problem.with("turn", turn.to_string()),
                None => problem,
            }
        }
        why => Problem::conflict(why.code(), why.to_string()),
    }
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let (row, setup) = call.session().await?;
    let number = number(&call)?;
    let is_waited = match call.query::<String>("wait")?.as_deref() {
        None => false,
        Some("rest") => true,
        Some(other) => {
            return Err(Problem::bad_request(format!("`{other}` is nothing that an item waits for")));
        }
    };
    let within = within(&call)?;
    let mut answer = view(&call.app.host, &row.id, number).await?;
    if is_waited && answer.state != ItemState::Rest {
        call.wake(&row, &setup);
        answer = rested(&call.app.host, &row.id, number, within).await?;
    }
    json(StatusCode::OK, &answer)
}

/// Waits until it is at rest, at most so long.
async fn rested(
    host: &Arc<HostState>,
    session: &SessionId,
    number: u64,
    within: Duration,
) -> Answered<ItemAnswer> {
    let over = Instant::now() + within;
    loop {
        if let Some(ticket) = host.opened(session).and_then(|open| open.ticket(number)) {
            // Past the time, the view says where it is.
            drop(timeout(over.saturating_duration_since(Instant::now()), ticket.outcome()).await);
            return view(host, session, number).await;
        }
        let answer = view(host, session, number).await?;
        if answer.state == ItemState::Rest || Instant::now() >= over {
            return Ok(answer);
        }
        sleep(LOOK).await;
    }
}

/// How long a request waits.
pub(super) fn within(call: &Call) -> Answered<Duration> {
    let ms = call.query::<u64>("timeout_ms")?.unwrap_or(WAIT_MS);
    Ok(Duration::from_millis(ms.min(MOST_WAIT_MS)))
}

pub(crate) async fn withdraw(call: Call) -> Answered<Response> {
    let (row, _setup) = call.session().await?;
    let number = number(&call)?;
    let open = call.app.host.opened(&row.id);
    if let Some((open, ticket)) = open.as_ref().and_then(|open| Some((open, open.ticket(number)?))) {
        drop(open.handle().withdraw(ticket.id()).await);
        let answer = view(&call.app.host, &row.id, number).await?;
        return if ticket.fate_now() == Some(ItemOutcome::Withdrawn) {
            json(StatusCode::OK, &answer)
        } else {
            Err(taken())
        };
    }
    match call.store().withdraw(&row.id, number).await? {
        Withdrawn::Item(_) => {
            if let Some(open) = open {
                open.handle().check_store();
            }
            let answer =
                ItemAnswer { state: ItemState::Rest, outcome: Some("withdrawn"), ..empty(&row.id, number) };
            json(StatusCode::OK, &answer)
        }
        Withdrawn::Taken => Err(taken()),
        Withdrawn::Unknown => Err(Problem::no_such("item")),
    }
}

fn taken() -> Problem {
    Problem::conflict("taken", "a turn has the item, or it is at rest: stop the turn instead")
}

pub(crate) async fn resume(call: Call) -> Answered<Response> {
    let (row, setup) = call.session().await?;
    let nothing = || Problem::conflict("nothing_to_resume", "no turn ended early that could be resumed");
    match call.owner(&row, &setup).await? {
        Owner::Here(open) if open.handle().resume().await => {
            json(StatusCode::ACCEPTED, &DoneAnswer { status: "resuming" })
        }
        Owner::Here(_) => Err(nothing()),
        Owner::Elsewhere => Err(Problem::conflict("session_open", "another process has the session")),
    }
}

fn number(call: &Call) -> Answered<u64> {
    numbered(call.param("item"))
}

/// The number in the name of an item.
///
/// # Errors
/// `no_such_item`.
pub(super) fn numbered(text: &str) -> Answered<u64> {
    parsed::<u64>("item", text.strip_prefix("item-").unwrap_or(text))
        .map_err(|_not_a_number| Problem::no_such("item"))
}

fn empty(session: &SessionId, number: u64) -> ItemAnswer {
    ItemAnswer {
        id: format!("item-{number}"),
        session: session.to_string(),
        state: ItemState::Accepted,
        turn: None,
        outcome: None,
        returned: None,
        answer: None,
    }
}

/// Where an item is now.
///
/// # Errors
/// `no_such_item`, and the store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn view(host: &Arc<HostState>, session: &SessionId, number: u64) -> Answered<ItemAnswer> {
    let store = &*host.store;
    if number == 0 || number > newest_item(store.notice(session).await?) {
        return Err(Problem::no_such("item"));
    }
    let ticket = host.opened(session).and_then(|open| open.ticket(number));
    let inbox = store.inbox(session).await?;
    let row = inbox.iter().find(|row| row.number == number).map(|row| row.state);
    let own = ticket.as_ref().and_then(Ticket::fate_now);
    if own.is_none() && row == Some(RowState::Waiting) {
        return Ok(empty(session, number));
    }
    let turns = read::turns(store, session).await?;
    let found = read::turn_of(&turns, number);
    let outcome = own.or_else(|| found.and_then(|(_, turn)| turn.outcome));
    let held = is_held(&store.open(session).await?);
    let (state, words) = match outcome {
        Some(outcome) => (ItemState::Rest, Some(outcome_words(outcome))),
        None if row.is_some() && held => (ItemState::Running, None),
        None if row.is_some() => (ItemState::Accepted, None),
        None => (ItemState::Rest, None),
    };
    let turn = words.and_then(|(_, turn, _)| turn).or(found.map(|(turn, _)| turn));
    let read = turn.and_then(|turn| turns.get(&turn.number()));
    Ok(ItemAnswer {
        state,
        turn: turn.map(|turn| turn.to_string()),
        outcome: words.map(|(word, ..)| word),
        returned: words.and_then(|(.., code)| code),
        answer: read
            .filter(|_| matches!(outcome, Some(ItemOutcome::Completed(_))))
            .and_then(read::TurnRead::completed),
        ..empty(session, number)
    })
}
