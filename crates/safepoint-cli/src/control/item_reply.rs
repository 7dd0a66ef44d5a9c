//! The replies about an item: its acceptance, and its final outcome.

use futures_util::FutureExt as _;
use safepoint::session::{ItemOutcome, Ticket};
use serde_json::json;

use super::{convert::refused, protocol::Reply};
use crate::exit::code;

/// What an item is called, here and in the store: by its number there, where there is one.
pub(super) fn name(ticket: &Ticket<String>) -> String {
    match ticket.recorded().now_or_never().flatten() {
        Some(number) => named(number),
        None => ticket.id().to_string(),
    }
}

/// The same of an item of the store.
pub(super) fn named(number: u64) -> String {
    format!("item-{number}")
}

/// The number of an item, as a person writes it.
pub(super) fn number(item: &str) -> Option<u64> {
    item.strip_prefix("item-").unwrap_or(item).parse().ok()
}

pub(super) fn accepted(item: &str) -> Reply {
    Reply::new(code::ACCEPTED, "accepted", format!("queued {item}")).detail(json!({ "item": item }))
}

/// The session ended before the store said whether it has the item.
pub(super) fn in_doubt(item: &str) -> Reply {
    let message = format!(
        "{item} was not handled, and it is not known whether the store has it: look at the session's items before you send it again"
    );
    Reply::new(code::OTHER, "settled", message)
        .detail(json!({ "item": item, "fate": ItemOutcome::Unhandled }))
}

/// It is answered, or this is why not: only an answer is a success.
pub(super) fn rested(item: &str, fate: ItemOutcome, is_stored: bool) -> Reply {
    let (number, message) = match fate {
        ItemOutcome::Completed(turn) => (code::ACCEPTED, format!("{item} is answered in {turn}")),
        ItemOutcome::Returned(refusal) => (refused(refusal), format!("{item} came back: {refusal}")),
        ItemOutcome::Failed(turn) => (code::OTHER, format!("{turn} failed, and {item} with it")),
        ItemOutcome::Unhandled => {
            let waits = if is_stored { "; it waits in the store until the session is opened" } else { "" };
            (code::TOO_LATE, format!("{item} was not handled: the session ended first{waits}"))
        }
        ItemOutcome::Withdrawn => (code::TOO_LATE, format!("{item} was withdrawn")),
        ItemOutcome::Interrupted(turn) => {
            (code::TOO_LATE, format!("{turn} was stopped, and {item} with it; it may be resumed"))
        }
        ItemOutcome::Preempted(turn) => {
            (code::TOO_LATE, format!("{turn} was stopped for a newer item, and {item} with it"))
        }
        ItemOutcome::RolledBack(turn) => {
            (code::TOO_LATE, format!("{turn} was stopped and forgotten, and {item} with it"))
        }
        ItemOutcome::Suspended(turn) => {
            (code::TOO_LATE, format!("{turn}, which has {item}, waits for a decision"))
        }
        ItemOutcome::Dropped => (code::TOO_LATE, format!("{item} was dropped")),
    };
    let status = match fate {
        ItemOutcome::Returned(refusal) => refusal.code(),
        _ => "settled",
    };
    Reply::new(number, status, message).detail(json!({ "item": item, "fate": fate }))
}
