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
    store::{SessionRow, Store},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    client::notify_owner,
    item_reply, left,
    protocol::{Ask, Reply, StopAsk, Wait},
};
use crate::{
    args::control::Common,
    exit::{Usage, code},
    settings::store::{existing_store, row_of},
};

/// How often the end of a stop, or of an item, is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A session, and the store that keeps it.
pub(crate) struct StoredTarget {
    pub(super) store: Arc<dyn Store>,
    pub(super) session: SessionId,
}

/// The store that keeps the session that is meant; none if it does not.
pub(super) async fn kept(common: &Common) -> anyhow::Result<Option<StoredTarget>> {
    let Some(store) = existing_store(common.place.store.clone()).await? else { return Ok(None) };
    let session = SessionId::from(common.session.as_str());
    let is_there = row_of(&*store, &session).await?.is_some();
    Ok(is_there.then_some(StoredTarget { store, session }))
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
            stop(place, asked, within).await?
        }
        Ask::Stop(_) | Ask::Push(_) | Ask::Show | Ask::Look => return Ok(None),
    };
    Ok(Some(Reply { session: place.session.to_string(), ..reply }))
}

/// Takes an item back.
pub(super) async fn withdraw(place: &StoredTarget, item: &str) -> anyhow::Result<Reply> {
    let Some(number) = item_reply::number(item) else {
        return Err(Usage(format!("`{item}` is no item; write it as item-7 or 7")).into());
    };
    let name = item_reply::named(number);
    let reply = match place.store.withdraw(&place.session, number).await? {
        Withdrawn::Item(row) => {
            item_reply::withdrawn(&name, decode_item(&row.bytes).ok().map(|(text, _)| text))
        }
        Withdrawn::Taken => item_reply::not_waiting(&name),
        Withdrawn::Unknown => item_reply::never_was(&name),
    };
    Ok(reply.but(notify_owner(place.session.as_str()).await))
}

/// The questions that are open.
async fn open(store: &Arc<dyn Store>, session: &SessionId) -> anyhow::Result<Vec<ApprovalId>> {
    let rows = store.approvals(session).await?;
    let open = rows.into_iter().filter(|row| row.state == ApprovalState::Open);
    Ok(open.map(|row| row.asked.id).collect())
}

/// Whether no process that may be alive owns the session.
pub(super) fn is_free(row: &SessionRow) -> bool {
    row.holder.as_ref().is_none_or(|held| held.owner.life() == Liveness::Dead)
}

async fn stop(
    StoredTarget { store, session }: &StoredTarget,
    asked: &StopAsk,
    within: Option<Duration>,
) -> anyhow::Result<Reply> {
    let ((whole, _), turn) = (asked.session_stop()?, asked.turn_stop()?);
    // The end of the session's loop leaves a suspended run and its approvals as they are; the stop of its
    // turn does not. A stop from here means both, unless the session is to end by itself (S8.3).
    let before = if turn.is_some() { open(store, session).await? } else { Vec::new() };
    let was_owned = !is_free(&store.open(session).await?);
    if let Some(request) = turn {
        store_stop(&**store, session, &StoredStop::Turn(None, request)).await?;
    }
    let last = store_stop(&**store, session, &StoredStop::Session(whole)).await?;
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
    if asked.wait == Wait::No {
        return Ok(asked_reply);
    }
    let over = within.map(|within| Instant::now() + within);
    loop {
        if is_free(&store.open(session).await?) {
            let said = if was_owned { "stopped: no process runs it any more" } else { "no process runs it" };
            return Ok(left::reply(&**store, session, said, asked.wait).await);
        }
        if over.is_some_and(|over| Instant::now() >= over) {
            return Ok(Reply::timed_out());
        }
        sleep(LOOK).await;
    }
}
