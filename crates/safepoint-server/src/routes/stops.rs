//! Stops: of a turn, an item, a call or a session, and how far they are; and the turns themselves.

use std::sync::Arc;

use axum::{http::StatusCode, response::Response};
use safepoint::{
    ids::{CallId, TurnId},
    session::StopPersistence,
};
use tokio::time::{Instant, timeout_at};

use super::{Call, items::within, json};
use crate::{
    answer::{StopAnswer, StopState},
    ask::{StopAsk, What, parsed},
    caller::{
        Kept,
        items::numbered,
        stops::{ReachedTurn, StopProgress, StopWait, StoppedItem, StoppedTurn, no_turn},
    },
    host::{open::OpenSession, read},
    load::Load,
    problem::{Answered, Problem},
};

pub(crate) async fn stop(call: Call) -> Answered<Response> {
    let ask: StopAsk = call.body()?;
    let (wait, within) = (call.query::<StopWait>("wait")?.unwrap_or_default(), within(&call)?);
    let until = (wait, Instant::now() + within);
    let kept = call.session().await?;
    let (by, who) = (&call.by, call.by.who.name());
    Load::count(&by.load.stops);
    match (&ask.what, by.host.opened(kept.id())) {
        (What::Turn(_), _) => match by.stop_turn(&kept, ask.turn()?, ask.request(who)?).await? {
            StoppedTurn::Reached(reached) => stopped(&call, &kept, reached, until).await,
            StoppedTurn::Held => held(),
        },
        (What::Item(item), _) => {
            let number = numbered(item)?;
            match by.stop_item(&kept, number, ask.request(who)?, ask.queue()).await? {
                StoppedItem::Stopping(reached) => stopped(&call, &kept, reached, until).await,
                StoppedItem::Withdrawn => withdrawn(number),
            }
        }
        (What::Session, Some(open)) => of_session(&call, &ask, &open, until).await,
        (What::Session, None) => Err(no_turn("no process of this server has the session")),
        (What::Call(id), Some(open)) => of_call(&call, &ask, &open, id),
        (What::Call(_), None) => Err(Problem::no_such("call")),
    }
}

/// No turn runs, and the next one does not begin.
fn held() -> Answered<Response> {
    let mut answer = StopAnswer::requested();
    (answer.held, answer.state, answer.quiet) = (true, StopState::Quiet, Some(true));
    json(StatusCode::OK, &answer)
}

/// No turn had the item, and none gets it.
fn withdrawn(number: u64) -> Answered<Response> {
    let mut answer = StopAnswer::requested();
    (answer.withdrawn, answer.recorded) = (Some(format!("item-{number}")), true);
    (answer.state, answer.quiet) = (StopState::Quiet, Some(true));
    json(StatusCode::OK, &answer)
}

/// Waits as asked, and says how far the stop is.
async fn stopped(
    call: &Call,
    kept: &Kept,
    reached: ReachedTurn,
    until: (StopWait, Instant),
) -> Answered<Response> {
    let StopProgress { answer, is_there } = call.by.stopped(kept.id(), reached, until).await?;
    let is_done = until.0 != StopWait::No && is_there;
    json(if is_done { StatusCode::OK } else { StatusCode::ACCEPTED }, &answer)
}

async fn of_session(
    call: &Call,
    ask: &StopAsk,
    open: &Arc<OpenSession>,
    (wait, over): (StopWait, Instant),
) -> Answered<Response> {
    let handle = open.handle();
    let running = handle.current_turn();
    let ticket = handle.stop(ask.session_stop(call.by.who.name())?);
    let persistence = ticket.recorded().await;
    let mut answer = StopAnswer::requested();
    answer.number = match persistence {
        StopPersistence::Stored(number) => Some(number),
        StopPersistence::Ended | StopPersistence::NotStored => None,
    };
    answer.recorded = persistence != StopPersistence::NotStored;
    answer.turn = running.as_ref().map(|view| view.turn.to_string());
    answer.waits_for = running.map(|view| view.run.alive()).unwrap_or_default();
    if wait == StopWait::No {
        return json(StatusCode::ACCEPTED, &answer);
    }
    let Ok(exit) = timeout_at(over, handle.done()).await else { return json(StatusCode::ACCEPTED, &answer) };
    answer.survivors = exit.survivors().to_vec();
    answer.quiet = Some(answer.survivors.is_empty());
    answer.state = if answer.survivors.is_empty() { StopState::Quiet } else { StopState::NotQuiet };
    answer.waits_for.clear();
    json(StatusCode::OK, &answer)
}

fn of_call(call: &Call, ask: &StopAsk, open: &Arc<OpenSession>, id: &str) -> Answered<Response> {
    let Some(running) = open.handle().current_turn() else { return Err(no_turn("no turn runs")) };
    let request = ask.request(call.by.who.name())?;
    if running.run.stop_call(&CallId::from(id), request).is_none() {
        return Err(Problem::no_such("call"));
    }
    let mut answer = StopAnswer::requested();
    answer.turn = Some(running.turn.to_string());
    answer.waits_for = running.run.alive();
    json(StatusCode::ACCEPTED, &answer)
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let number: u64 = parsed("stop", call.param("stop"))?;
    let after = number.checked_sub(1).ok_or_else(|| Problem::no_such("stop"))?;
    let found = call.by.store().stops(kept.id(), after).await?.into_iter().find(|stop| stop.number == number);
    let found = found.ok_or_else(|| Problem::no_such("stop"))?;
    let turns = read::turns(call.by.store(), kept.id()).await?;
    let mut answer = read::stop(&turns, &found);
    let running = call.by.host.opened(kept.id()).and_then(|open| open.handle().current_turn());
    if let Some(running) = running.filter(|view| Some(view.turn.to_string()) == answer.turn)
        && answer.state < StopState::Settled
    {
        answer.waits_for = running.run.alive();
    }
    json(StatusCode::OK, &answer)
}

pub(crate) async fn turn(call: Call) -> Answered<Response> {
    let kept = call.session().await?;
    let turn: TurnId = parsed("turn", call.param("turn")).map_err(|_not_an_id| Problem::no_such("turn"))?;
    let turns = read::turns(call.by.store(), kept.id()).await?;
    let read = turns.get(&turn.number()).ok_or_else(|| Problem::no_such("turn"))?;
    json(StatusCode::OK, &read.answer(turn))
}
