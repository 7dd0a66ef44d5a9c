//! `safepoint sessions show`: how one stands.

use std::process::ExitCode;

use safepoint::{
    Receipt,
    ids::{SessionId, TurnId},
    raw::{
        StoredStop,
        store::{ApprovalState, ItemState, StopRow},
    },
    store::SessionRow,
};
use serde_json::{Value, json};

use crate::{
    args::sessions::OneArgs,
    command::store::no_session,
    control::{client::details, list::meant},
    output::{self, Unwritten},
    render::{
        reply_json::ReplyLines,
        text::{moment, one_line},
    },
    session::receipts,
    settings::{remembered::Setup, store::existing_store},
};

pub(crate) async fn show(args: OneArgs) -> anyhow::Result<ExitCode> {
    let store = existing_store(args.place.store.clone()).await?;
    let Some(one) = meant(store.as_ref(), &args.session).await? else {
        return no_session(&SessionId::from(args.session), &args.place);
    };
    let mut shown = one.json(&mut ReplyLines::default());
    let mut receipts = Vec::new();
    if let (Some(store), true) = (&store, one.is_kept()) {
        let id = SessionId::from(one.id.as_str());
        let items = store.inbox(&id).await?;
        let waiting = items.iter().filter(|item| item.state == ItemState::Waiting).count();
        let approvals = store.approvals(&id).await?;
        let open: Vec<_> = approvals
            .iter()
            .filter(|row| row.state == ApprovalState::Open)
            .map(|row| &row.asked.id)
            .collect();
        let stops = waiting_stops(&store.stops(&id, 0).await?);
        shown["items_waiting"] = json!(waiting);
        receipts = receipts::of(&**store, &id).await?;
        shown["receipts"] =
            receipts.iter().map(|(turn, receipt)| json!({"turn": turn, "receipt": receipt})).collect();
        shown["approvals_open"] = json!(open);
        shown["stops_waiting"] = json!(stops);
    }
    if args.place.json {
        return output::say_json(shown).map(|()| ExitCode::SUCCESS).map_err(Into::into);
    }
    output::say(format_args!("{}: {}", one_line(&one.id), one.state().shown()))?;
    one.row.iter().try_for_each(about)?;
    if let Some(owner) = one.owner() {
        output::say(format_args!("  owner    {}", one_line(&owner)))?;
    }
    for (name, field) in
        [("items", "items_waiting"), ("approvals", "approvals_open"), ("stops", "stops_waiting")]
    {
        match &shown[field] {
            Value::Array(all) if !all.is_empty() => {
                all.iter().try_for_each(|id| {
                    let id = id.as_str().unwrap_or_default();
                    output::say(format_args!("  approval {id} waits for a decision"))
                })?;
            }
            Value::Number(count) if count.as_u64() != Some(0) => {
                output::say(format_args!("  {name:<8} {count} waiting"))?
            }
            _ => {}
        }
    }
    if let Some(running) = &one.running {
        details(&running.detail).iter().try_for_each(|line| output::say(format_args!("  {line}")))?;
    }
    for (turn, receipt) in latest(&receipts)? {
        output::say(turn)?;
        receipt.to_string().lines().try_for_each(|line| output::say(format_args!("  {line}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of stops that are not applied. A stop of a turn and its session is stored as two, and counts as one.
fn waiting_stops(rows: &[StopRow]) -> usize {
    let is_of_turn = |row: &StopRow| matches!(StoredStop::from_bytes(&row.bytes), Ok(StoredStop::Turn(..)));
    let mut count = 0;
    let mut before = None;
    for row in rows.iter().filter(|row| !row.seen) {
        let goes_with_it = before.replace(row).is_some_and(|turn: &StopRow| {
            turn.number + 1 == row.number && is_of_turn(turn) && !is_of_turn(row)
        });
        count += usize::from(!goes_with_it);
    }
    count
}

/// What the store says of it.
fn about(row: &SessionRow) -> Result<(), Unwritten> {
    output::say(format_args!("  created  {}", moment(row.created)))?;
    output::say(format_args!("  changed  {}", moment(row.updated)))?;
    output::say(format_args!("  records  {}", row.head))?;
    let setup = Setup::read(row).to_string();
    if !setup.is_empty() {
        output::say(format_args!("  with     {}", one_line(&setup)))?;
    }
    Ok(())
}

/// The last receipts, and how many there are before them.
fn latest(receipts: &[(TurnId, Receipt)]) -> Result<&[(TurnId, Receipt)], Unwritten> {
    const SHOWN: usize = 5;
    let before = receipts.len().saturating_sub(SHOWN);
    if before > 0 {
        output::say(format_args!("{before} receipts before these; --json has all of them"))?;
    }
    Ok(&receipts[before..])
}
