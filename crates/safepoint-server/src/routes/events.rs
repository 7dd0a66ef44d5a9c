//! What happened in a session: as a stream, and as pages of what is recorded.

use axum::{http::StatusCode, response::Response};
use futures_util::stream;
use safepoint::{
    ids::TurnId,
    raw::{line::JournalEncoder, read_journal},
};

use super::{Call, json, sessions::limit};
use crate::{
    answer::{ItemState, ListPage, StepAnswer},
    ask::parsed,
    board::BoardReader,
    caller::{Kept, items::view},
    host::read::{epoch_at, turns},
    lines::{EventPlace, text_of, turn_of},
    problem::{Answered, Problem},
    reader::{Reader, Until, known},
    sse,
};

pub(crate) async fn stream(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let sent = call.headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
    let last = sent.or(call.query::<String>("after")?).filter(|last| !last.is_empty());
    let until = until(&call)?;
    // The turn of what is over; an item that was withdrawn had none.
    let over = match until {
        Until::Never => None,
        Until::Item(number) => {
            let found = view(&call.by.host, kept.id(), number).await?;
            (found.state == ItemState::Rest).then(|| found.turn.and_then(|turn| turn.parse().ok()))
        }
        Until::Turn(turn) => {
            let turns = turns(call.by.store(), kept.id()).await?;
            let read = turns.get(&turn.number()).ok_or_else(|| Problem::no_such("turn"))?;
            read.is_quiet_known().then_some(Some(turn))
        }
    };
    // What was seen to its end is not streamed again.
    if let (Some(turn), Some(last)) = (over, last.as_deref())
        && has_seen(&call, &kept, turn, last).await?
    {
        return sse::nothing_more();
    }
    let reader = Reader::start(&call.by, &kept.row, last.as_deref()).await?;
    Ok(sse::response(reader.until(until)))
}

/// Whether nothing of this turn is recorded behind this id.
async fn has_seen(call: &Call, kept: &Kept, turn: Option<TurnId>, last: &str) -> Answered<bool> {
    let Some(seen) = known(&call.by.host, &kept.row, last).await? else { return Ok(false) };
    let mut newest = None;
    read_journal(call.by.store(), kept.id(), |step| {
        let of = step.what.as_ref().ok().and_then(turn_of);
        newest = Some(step.position).filter(|_| of.is_some() && of == turn).or(newest);
    })
    .await?;
    Ok(newest.is_none_or(|newest| newest <= seen))
}

/// The states and the open questions of all sessions that the token sees, as they change.
pub(crate) async fn all(call: Call) -> Answered<Response> {
    let reader = BoardReader::start(&call.by).await?;
    let changes = stream::unfold(reader, |mut reader| async move {
        let change = reader.next().await?;
        Some((change, reader))
    });
    Ok(sse::streamed(changes))
}

fn until(call: &Call) -> Answered<Until> {
    let item = call.query::<String>("item")?;
    let turn = call.query::<TurnId>("turn")?;
    match (item, turn) {
        (None, None) => Ok(Until::Never),
        (None, Some(turn)) => Ok(Until::Turn(turn)),
        (Some(item), None) => parsed("item", item.strip_prefix("item-").unwrap_or(&item)).map(Until::Item),
        (Some(_), Some(_)) => Err(Problem::bad_request("a stream ends with an item or with a turn")),
    }
}

pub(crate) async fn timeline(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let (after, turn) = (call.query::<u64>("after")?, call.query::<TurnId>("turn")?);
    let limit = limit(&call)?;
    let tenures = call.by.store().tenures(kept.id()).await?;
    let mut encoder = JournalEncoder::new(kept.id());
    let mut data = Vec::new();
    let mut is_more = false;
    read_journal(call.by.store(), kept.id(), |step| {
        let place = EventPlace { epoch: epoch_at(&tenures, step.position), position: step.position };
        encoder.begin_epoch(place.epoch);
        let Some(line) = encoder.step(&step) else { return };
        let is_meant = turn.is_none_or(|turn| step.what.as_ref().ok().and_then(turn_of) == Some(turn));
        if !is_meant || after.is_some_and(|after| step.position <= after) {
            return;
        }
        is_more = data.len() == limit;
        if !is_more {
            let event = serde_json::from_str(&text_of(line)).unwrap_or_default();
            data.push(StepAnswer { position: step.position, id: place.to_string(), at: step.at, event });
        }
    })
    .await?;
    let next = data.last().filter(|_| is_more).map(|step: &StepAnswer| step.position.to_string());
    json(StatusCode::OK, &ListPage { data, next })
}
