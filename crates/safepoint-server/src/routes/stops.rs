//! Stops: of a turn, a call or a session, and how far they are; and the turns themselves.

use std::{sync::Arc, time::Duration};

use axum::{http::StatusCode, response::Response};
use safepoint::{
    RunHandle,
    ids::{CallId, SessionId, TurnId},
    raw::{StoredStop, store::Withdrawn, store_stop},
    session::{ItemStopAck, StopPersistence, TurnStopAck},
    store::SessionRow,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Call,
    items::{numbered, view, within},
    json,
    load::Load,
    sessions::is_held,
};
use crate::{
    answer::{StopAnswer, StopState, outcome_words},
    ask::{StopAsk, Wait, What, parsed},
    host::{open::OpenSession, read, setup::Setup},
    problem::{Answered, Problem},
};

/// How often the end of a turn of another process is looked for.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn stop(call: Call) -> Answered<Response> {
    let ask: StopAsk = call.body()?;
    let (wait, within) = (call.query::<Wait>("wait")?.unwrap_or_default(), within(&call)?);
    let over = Instant::now() + within;
    let (row, setup) = call.session().await?;
    let open = call.app.host.opened(&row.id);
    Load::count(&call.app.load.stops);
    match (&ask.what, open) {
        (What::Turn(_), Some(open)) => {
            let reached = of_turn(&call, &ask, &open, (&row, &setup)).await?;
            ended(&call, &row.id, reached, (wait, over)).await
        }
        (What::Turn(_), None) => {
            let reached = in_store(&call, &ask, (&row, &setup)).await?;
            ended(&call, &row.id, reached, (wait, over)).await
        }
        (What::Item(item), open) => {
            let number = numbered(item)?;
            match of_item(&call, &ask, open.as_ref(), (&row, &setup), number).await? {
                Some(reached) => ended(&call, &row.id, reached, (wait, over)).await,
                None => withdrawn(number),
            }
        }
        (What::Session, Some(open)) => of_session(&call, &ask, &open, (wait, over)).await,
        (What::Session, None) => Err(no_turn("no process of this server has the session")),
        (What::Call(id), Some(open)) => of_call(&call, &ask, &open, id).await,
        (What::Call(_), None) => Err(Problem::no_such("call")),
    }
}

/// A turn that a stop reached.
struct Reached {
    turn: TurnId,
    /// Its run, if this process has it.
    run: Option<RunHandle>,
    number: Option<u64>,
    is_recorded: bool,
}

async fn of_turn(
    call: &Call,
    ask: &StopAsk,
    open: &Arc<OpenSession>,
    kept: (&SessionRow, &Setup),
) -> Answered<Reached> {
    let (handle, meant) = (open.handle(), ask.turn()?);
    let run = handle.current_turn();
    // Under way from here on, whatever becomes of this request.
    let ticket = handle.stop_turn(meant, ask.request(call.who.name())?);
    let persistence = ticket.recorded().await;
    let number = match persistence {
        StopPersistence::Stored(number) => Some(number),
        StopPersistence::Ended | StopPersistence::NotStored => None,
    };
    match ticket.asked().await {
        TurnStopAck::Stopping(turn) => {
            let run =
                run.or_else(|| handle.current_turn()).filter(|view| view.turn == turn).map(|view| view.run);
            Ok(Reached { turn, run, number, is_recorded: number.is_some() })
        }
        TurnStopAck::Mismatch(turn) => {
            let problem = too_late(call, kept.0, meant).await?.unwrap_or_else(|| {
                Problem::conflict("turn_mismatch", format!("the turn that runs is {turn}"))
            });
            Err(problem.with("running", turn.to_string()))
        }
        // A suspended turn is stopped where its questions are.
        TurnStopAck::NoTurn => in_store(call, ask, kept).await,
    }
}

/// Stops a turn of another process, or one that waits for a decision, through the store.
async fn in_store(call: &Call, ask: &StopAsk, (row, setup): (&SessionRow, &Setup)) -> Answered<Reached> {
    let row = call.store().open(&row.id).await?;
    let meant = ask.turn()?;
    if let Some(problem) = too_late(call, &row, meant).await? {
        return Err(problem);
    }
    let is_ours = call.app.host.opened(&row.id).is_some();
    let may_stop = row.label == "suspended" || !is_ours && (is_held(&row) || row.label == "running");
    let turns = read::turns(call.store(), &row.id).await?;
    let last = turns.keys().last().map(|turn| TurnId::new(*turn));
    let Some(turn) = meant.or(last).filter(|_| may_stop) else {
        return Err(no_turn("no turn runs or waits"));
    };
    let intent = StoredStop::Turn(Some(turn), ask.request(call.who.name())?);
    let number = store_stop(call.store(), &row.id, &intent).await?;
    call.wake(&row, setup);
    Ok(Reached { turn, run: None, number: Some(number), is_recorded: true })
}

/// Withdraws an item that no turn has, or stops the turn that has it; none if it is withdrawn. An item of an earlier owner, or of a
/// session that this server does not have, is reached through the store.
async fn of_item(
    call: &Call,
    ask: &StopAsk,
    open: Option<&Arc<OpenSession>>,
    (row, setup): (&SessionRow, &Setup),
    number: u64,
) -> Answered<Option<Reached>> {
    let request = ask.request(call.who.name())?;
    if let Some((open, item)) = open.and_then(|open| Some((open, open.handle().item_of(number)?))) {
        let handle = open.handle();
        let run = handle.current_turn();
        let stop = handle.stop_item(item, request, ask.queue());
        let stored = match stop.recorded().await {
            StopPersistence::Stored(number) => Some(number),
            StopPersistence::Ended | StopPersistence::NotStored => None,
        };
        return match stop.asked().await {
            ItemStopAck::Withdrawn => Ok(None),
            ItemStopAck::Stopping(turn) => {
                let run = run.or_else(|| handle.current_turn()).filter(|view| view.turn == turn);
                let run = run.map(|view| view.run);
                Ok(Some(Reached { turn, run, number: stored, is_recorded: stored.is_some() }))
            }
            ItemStopAck::TooLate => Err(at_rest(call, row, number).await?),
        };
    }
    match call.store().withdraw(&row.id, number).await? {
        Withdrawn::Item(_) => {
            if let Some(open) = open {
                open.handle().check_store();
            }
            Ok(None)
        }
        Withdrawn::Unknown => Err(Problem::no_such("item")),
        Withdrawn::Taken => {
            let turns = read::turns(call.store(), &row.id).await?;
            let is_over = |turn: &read::TurnRead| {
                turn.outcome.is_some_and(|outcome| outcome_words(outcome).0 != "suspended")
            };
            let Some((turn, _)) = read::turn_of(&turns, number).filter(|(_, turn)| !is_over(turn)) else {
                return Err(at_rest(call, row, number).await?);
            };
            let stored = store_stop(call.store(), &row.id, &StoredStop::Turn(Some(turn), request)).await?;
            call.wake(row, setup);
            Ok(Some(Reached { turn, run: None, number: Some(stored), is_recorded: true }))
        }
    }
}

/// The item was over before the stop.
async fn at_rest(call: &Call, row: &SessionRow, number: u64) -> Answered<Problem> {
    let outcome = view(&call.app.host, &row.id, number).await?.outcome.unwrap_or("not known");
    let detail = format!("item-{number} was over before the stop: {outcome}");
    Ok(Problem::conflict("too_late", detail).with("outcome", outcome))
}

/// No turn had the item, and none gets it.
fn withdrawn(number: u64) -> Answered<Response> {
    let mut answer = StopAnswer::requested();
    (answer.withdrawn, answer.recorded) = (Some(format!("item-{number}")), true);
    (answer.state, answer.quiet) = (StopState::Quiet, Some(true));
    json(StatusCode::OK, &answer)
}

/// Whether the turn that is meant has ended.
async fn too_late(call: &Call, row: &SessionRow, meant: Option<TurnId>) -> Answered<Option<Problem>> {
    let Some(meant) = meant else { return Ok(None) };
    let turns = read::turns(call.store(), &row.id).await?;
    let ended = turns.get(&meant.number()).and_then(|turn| turn.outcome);
    let words = ended.map(outcome_words).filter(|(word, ..)| *word != "suspended");
    Ok(words.map(|(word, ..)| {
        Problem::conflict("too_late", format!("{meant} had ended before the stop: {word}"))
            .with("outcome", word)
    }))
}

fn no_turn(detail: &str) -> Problem {
    Problem::conflict("no_active_turn", detail)
}

/// Waits as asked, and says how far the stop is.
async fn ended(
    call: &Call,
    session: &SessionId,
    reached: Reached,
    (wait, over): (Wait, Instant),
) -> Answered<Response> {
    let Reached { turn, run, number, is_recorded } = reached;
    let is_far_enough = |read: &read::TurnRead| match wait {
        Wait::No => true,
        Wait::Settled => read.is_settled(),
        Wait::Quiet => read.is_quiet_known(),
    };
    if let Some(run) = run.as_ref().filter(|_| wait != Wait::No) {
        // What is not so by then is answered as it is.
        let waited = async {
            drop(run.done().await);
            if wait == Wait::Quiet {
                drop(run.quiet().await);
            }
        };
        drop(timeout_at(over, waited).await);
    }
    loop {
        let turns = read::turns(call.store(), session).await?;
        let read = turns.get(&turn.number()).cloned().unwrap_or_default();
        let is_there = is_far_enough(&read);
        if is_there || Instant::now() >= over {
            let mut answer = read.stop();
            answer.number = number;
            answer.recorded = is_recorded;
            answer.turn = Some(turn.to_string());
            if answer.state < StopState::Settled {
                answer.waits_for = run.map(|run| run.alive()).unwrap_or_default();
            }
            let is_done = wait != Wait::No && is_there;
            return json(if is_done { StatusCode::OK } else { StatusCode::ACCEPTED }, &answer);
        }
        sleep(LOOK.min(over.saturating_duration_since(Instant::now()))).await;
    }
}

async fn of_session(
    call: &Call,
    ask: &StopAsk,
    open: &Arc<OpenSession>,
    (wait, over): (Wait, Instant),
) -> Answered<Response> {
    let handle = open.handle();
    let running = handle.current_turn();
    let ticket = handle.stop(ask.session_stop(call.who.name())?);
    let persistence = ticket.recorded().await;
    let mut answer = StopAnswer::requested();
    answer.number = match persistence {
        StopPersistence::Stored(number) => Some(number),
        StopPersistence::Ended | StopPersistence::NotStored => None,
    };
    answer.recorded = persistence != StopPersistence::NotStored;
    answer.turn = running.as_ref().map(|view| view.turn.to_string());
    answer.waits_for = running.map(|view| view.run.alive()).unwrap_or_default();
    if wait == Wait::No {
        return json(StatusCode::ACCEPTED, &answer);
    }
    let Ok(exit) = timeout_at(over, handle.done()).await else { return json(StatusCode::ACCEPTED, &answer) };
    answer.survivors = exit.survivors().to_vec();
    answer.quiet = Some(answer.survivors.is_empty());
    answer.state = if answer.survivors.is_empty() { StopState::Quiet } else { StopState::NotQuiet };
    answer.waits_for.clear();
    json(StatusCode::OK, &answer)
}

async fn of_call(call: &Call, ask: &StopAsk, open: &Arc<OpenSession>, id: &str) -> Answered<Response> {
    let Some(running) = open.handle().current_turn() else { return Err(no_turn("no turn runs")) };
    let request = ask.request(call.who.name())?;
    if running.run.stop_call(&CallId::from(id), request).is_none() {
        return Err(Problem::no_such("call"));
    }
    let mut answer = StopAnswer::requested();
    answer.turn = Some(running.turn.to_string());
    answer.waits_for = running.run.alive();
    json(StatusCode::ACCEPTED, &answer)
}

pub(crate) async fn one(call: Call) -> Answered<Response> {
    let (row, _setup) = call.session().await?;
    let number: u64 = parsed("stop", call.param("stop"))?;
    let after = number.checked_sub(1).ok_or_else(|| Problem::no_such("stop"))?;
    let found = call.store().stops(&row.id, after).await?.into_iter().find(|stop| stop.number == number);
    let found = found.ok_or_else(|| Problem::no_such("stop"))?;
    let turns = read::turns(call.store(), &row.id).await?;
    let mut answer = read::stop(&turns, &found);
    let running = call.app.host.opened(&row.id).and_then(|open| open.handle().current_turn());
    if let Some(running) = running.filter(|view| Some(view.turn.to_string()) == answer.turn)
        && answer.state < StopState::Settled
    {
        answer.waits_for = running.run.alive();
    }
    json(StatusCode::OK, &answer)
}

pub(crate) async fn turn(call: Call) -> Answered<Response> {
    let (row, _setup) = call.session().await?;
    let turn: TurnId = parsed("turn", call.param("turn")).map_err(|_not_an_id| Problem::no_such("turn"))?;
    let turns = read::turns(call.store(), &row.id).await?;
    let read = turns.get(&turn.number()).ok_or_else(|| Problem::no_such("turn"))?;
    json(StatusCode::OK, &read.answer(turn))
}
