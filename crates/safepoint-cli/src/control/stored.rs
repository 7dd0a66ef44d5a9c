//! Commands to a kept session: written into its store, durable before they are acknowledged, and so in force before,
//! while and after an owner lives (S7.5). A living owner is nudged.

use std::{sync::Arc, time::Duration};

use safepoint::{
    ids::{ApprovalId, SessionId},
    session::{Intent, ask_stop, seal},
    store::{ApprovalState, Error, Pushed, Store, Withdrawn},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    args::Common,
    client::nudge,
    wire::{Ask, PushAsk, Reply, StopAsk, Wait, code},
};
use crate::conversation::existing_store;

/// How many items may wait in a kept session.
pub(crate) const INBOX: usize = 1024;
/// How often the end of a stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Does it through the store, if that keeps the session; none if it does not, or only a living owner can do it.
pub(super) async fn through_store(common: &Common, ask: &Ask, wait: Wait) -> anyhow::Result<Option<Reply>> {
    if matches!(ask, Ask::Stop(stop) if stop.run.is_some() || stop.call.is_some())
        || matches!(ask, Ask::Show | Ask::Look)
    {
        return Ok(None);
    }
    let Some(store) = existing_store(common.store.clone())? else { return Ok(None) };
    let session = SessionId::from(common.session.as_str());
    if let Err(Error::NoSession(_)) = store.open(&session).await {
        return Ok(None);
    }
    let reply = match ask {
        Ask::Push(asked) => push(&store, &session, asked).await?,
        Ask::Withdraw { item } => withdraw(&store, &session, item).await?,
        Ask::Stop(asked) => {
            stop(&store, &session, asked, common.timeout.filter(|_| wait != Wait::No), wait).await?
        }
        Ask::Show | Ask::Look => return Ok(None),
    };
    Ok(Some(Reply { session: session.to_string(), ..reply }))
}

async fn push(store: &Arc<dyn Store>, session: &SessionId, asked: &PushAsk) -> anyhow::Result<Reply> {
    if asked.text.trim().is_empty() {
        return Ok(Reply::new(code::USAGE, "blank", "there is nothing in it"));
    }
    let policy = match asked.policy() {
        Ok(policy) => policy,
        Err(why) => return Ok(Reply::new(code::USAGE, "refused", why)),
    };
    let push = seal(&asked.text, policy, asked.client_id.clone(), INBOX)?;
    let reply = match store.push(session, push).await? {
        Pushed::Accepted(number) => {
            Reply::new(code::ACCEPTED, "accepted", format!("accepted as item-{number}"))
                .detail(json!({ "item": number }))
        }
        Pushed::Same(number) => {
            Reply::new(code::ACCEPTED, "same", format!("it is in already, as item-{number}"))
                .detail(json!({ "item": number }))
        }
        Pushed::Conflict(number) => Reply::new(
            code::CONFLICT,
            "other_content",
            format!("item-{number} has this id, with other content"),
        ),
        Pushed::Full => Reply::new(code::NO_ROOM, "full", "the inbox is full"),
        Pushed::Closed => Reply::new(code::NO_ROOM, "closed", "the inbox takes nothing"),
    };
    Ok(reply.but(nudge(session.as_str()).await))
}

async fn withdraw(store: &Arc<dyn Store>, session: &SessionId, item: &str) -> anyhow::Result<Reply> {
    let Ok(number) = item.strip_prefix("item-").unwrap_or(item).parse() else {
        return Ok(Reply::new(
            code::USAGE,
            "refused",
            format!("`{item}` is no item; write it as item-7 or 7"),
        ));
    };
    let reply = match store.withdraw(session, number).await? {
        Withdrawn::Item(_) => Reply::new(code::ACCEPTED, "withdrawn", format!("item-{number} is taken back")),
        Withdrawn::Taken => Reply::new(code::TOO_LATE, "taken", "a turn has it, or had it"),
        Withdrawn::Unknown => Reply::new(code::NONE_SUCH, "no_such_item", "there is no such item"),
    };
    Ok(reply.but(nudge(session.as_str()).await))
}

/// The questions that are open.
async fn open(store: &Arc<dyn Store>, session: &SessionId) -> anyhow::Result<Vec<ApprovalId>> {
    let rows = store.approvals(session).await?;
    let open = rows.into_iter().filter(|row| row.state == ApprovalState::Open);
    Ok(open.map(|row| row.asked.id).collect())
}

async fn stop(
    store: &Arc<dyn Store>,
    session: &SessionId,
    asked: &StopAsk,
    within: Option<Duration>,
    wait: Wait,
) -> anyhow::Result<Reply> {
    let (whole, turn) = match asked.session_stop().and_then(|(whole, _)| Ok((whole, asked.turn_stop()?))) {
        Ok(stops) => stops,
        Err(why) => return Ok(Reply::new(code::USAGE, "refused", why)),
    };
    // The end of the session's loop leaves a suspended run and its questions as they are; the stop of its turn does not,
    // and whoever stops a session from here means both, unless it is to end by itself (S8.3).
    let before = if turn.is_some() { open(store, session).await? } else { Vec::new() };
    let mut last = None;
    for intent in turn.map(|request| Intent::Turn(None, request)).into_iter().chain([Intent::Session(whole)])
    {
        last = Some(ask_stop(&**store, session, &intent).await?);
    }
    let left = open(store, session).await?;
    let back: Vec<_> = before.into_iter().filter(|id| !left.contains(id)).collect();
    let taken_back = match back.len() {
        0 => String::new(),
        1 => "; its open question is taken back".to_owned(),
        many => format!("; its {many} open questions are taken back"),
    };
    let said = format!("asked, and recorded: it holds whoever owns the session{taken_back}");
    let asked_reply = Reply::new(code::ACCEPTED, "asked", said)
        .detail(json!({ "stop": last, "taken_back": back }))
        .but(nudge(session.as_str()).await);
    if wait == Wait::No {
        return Ok(asked_reply);
    }
    let over = within.map(|within| Instant::now() + within);
    loop {
        let row = store.open(session).await?;
        let alive = row.holder.is_some_and(|held| held.owner.life() != safepoint::store::Life::Dead);
        if !alive {
            return Ok(Reply::new(code::ACCEPTED, "settled", format!("nobody works on it: {}", row.label)));
        }
        if over.is_some_and(|over| Instant::now() >= over) {
            return Ok(Reply::new(
                code::TIMED_OUT,
                "timed_out",
                "it was asked; its end was not seen in time",
            ));
        }
        sleep(LOOK).await;
    }
}
