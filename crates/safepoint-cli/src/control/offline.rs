//! Commands to a stored session: written into its store, durable before they are acknowledged, and so in
//! force before, while and after an owner lives (S7.5). A living owner is notified.

use std::{sync::Arc, time::Duration};

use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::{
        StoredStop, decode_item,
        store::{ApprovalState, Liveness, Withdrawn},
        store_stop,
    },
    store::{Error, Store},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    client::notify_owner,
    item_reply, left,
    protocol::{Ask, Reply, StopAsk, Wait},
};
use crate::{args::control::Common, exit::code, settings::store::existing_store};

/// How often the end of a stop, or of an item, is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A session, and the store that keeps it.
pub(crate) struct StoredTarget {
    pub(super) store: Arc<dyn Store>,
    pub(super) session: SessionId,
}

/// The store that keeps the session that is meant; none if it does not.
pub(super) async fn kept(common: &Common) -> anyhow::Result<Option<StoredTarget>> {
    let Some(store) = existing_store(common.place.store.clone())? else { return Ok(None) };
    let session = SessionId::from(common.session.as_str());
    match store.open(&session).await {
        Err(Error::NoSession(_)) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(Some(StoredTarget { store, session })),
    }
}

/// Does it through the store, which holds before, while and after an owner lives; none if only a living owner can do it.
pub(super) async fn through_store(
    place: &StoredTarget,
    common: &Common,
    ask: &Ask,
) -> anyhow::Result<Option<Reply>> {
    let reply = match ask {
        Ask::Withdraw { item } => withdraw(place, item).await?,
        Ask::Stop(asked) if asked.run.is_none() && asked.call.is_none() => {
            let within = common.timeout.filter(|_| asked.wait != Wait::No);
            stop(&place.store, &place.session, asked, within, asked.wait).await?
        }
        Ask::Stop(_) | Ask::Push(_) | Ask::Show | Ask::Look => return Ok(None),
    };
    Ok(Some(Reply { session: place.session.to_string(), ..reply }))
}

/// Takes an item back.
pub(super) async fn withdraw(place: &StoredTarget, item: &str) -> anyhow::Result<Reply> {
    let Some(number) = item_reply::number(item) else {
        let why = format!("`{item}` is no item; write it as item-7 or 7");
        return Ok(Reply::new(code::USAGE, "refused", why));
    };
    let name = item_reply::named(number);
    let reply = match place.store.withdraw(&place.session, number).await? {
        Withdrawn::Item(row) => {
            let text = decode_item::<String>(&row.bytes).ok().map(|(text, _)| text);
            Reply::new(code::ACCEPTED, "withdrawn", format!("{name} is withdrawn"))
                .detail(json!({ "item": name, "text": text }))
        }
        Withdrawn::Taken => {
            let why = format!("{name} does not wait: a turn has it, or it is gone");
            Reply::new(code::TOO_LATE, "too_late", why)
        }
        Withdrawn::Unknown => {
            Reply::new(code::NONE_SUCH, "no_such_item", format!("there never was an {name}"))
        }
    };
    Ok(reply.but(notify_owner(place.session.as_str()).await))
}

/// The questions that are open.
async fn open(store: &Arc<dyn Store>, session: &SessionId) -> anyhow::Result<Vec<ApprovalId>> {
    let rows = store.approvals(session).await?;
    let open = rows.into_iter().filter(|row| row.state == ApprovalState::Open);
    Ok(open.map(|row| row.asked.id).collect())
}

/// Whether a process that may be alive owns the session.
async fn is_owned(store: &Arc<dyn Store>, session: &SessionId) -> anyhow::Result<bool> {
    let holder = store.open(session).await?.holder;
    Ok(holder.is_some_and(|held| held.owner.life() != Liveness::Dead))
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
    // The end of the session's loop leaves a suspended run and its approvals as they are; the stop of its
    // turn does not. A stop from here means both, unless the session is to end by itself (S8.3).
    let before = if turn.is_some() { open(store, session).await? } else { Vec::new() };
    let was_owned = is_owned(store, session).await?;
    let mut last = None;
    for intent in
        turn.map(|request| StoredStop::Turn(None, request)).into_iter().chain([StoredStop::Session(whole)])
    {
        last = Some(store_stop(&**store, session, &intent).await?);
    }
    let left = open(store, session).await?;
    let back: Vec<_> = before.into_iter().filter(|id| !left.contains(id)).collect();
    let taken_back = match back.len() {
        0 => String::new(),
        1 => "; its open approval is withdrawn".to_owned(),
        many => format!("; its {many} open approvals are withdrawn"),
    };
    let applies = match was_owned {
        true => "stop recorded: it applies whichever process owns the session".to_owned(),
        false => {
            format!("no process runs {session}; the stop is recorded and applies when the session is opened")
        }
    };
    let said = format!("{applies}{taken_back}");
    let asked_reply = Reply::new(code::ACCEPTED, "asked", said)
        .detail(json!({ "stop": last, "taken_back": back }))
        .but(notify_owner(session.as_str()).await);
    if wait == Wait::No {
        return Ok(asked_reply);
    }
    let over = within.map(|within| Instant::now() + within);
    loop {
        if !is_owned(store, session).await? {
            let said = if was_owned { "stopped: no process runs it any more" } else { "no process runs it" };
            return Ok(left::reply(&**store, session, said, wait).await);
        }
        if over.is_some_and(|over| Instant::now() >= over) {
            return Ok(Reply::new(code::TIMED_OUT, "timed_out", "requested; the end was not seen in time"));
        }
        sleep(LOOK).await;
    }
}
