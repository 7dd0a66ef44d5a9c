//! The replies about an item: its acceptance, and its final outcome.

use futures_util::FutureExt as _;
use safepoint::session::{ItemOutcome, Ticket};
use serde_json::json;

use super::{convert::refused, protocol::Reply};
use crate::exit::code;

/// What an item is called, here and in the store: by its number there, where there is one.
pub(crate) fn name(ticket: &Ticket<String>) -> String {
    match ticket.recorded().now_or_never().flatten() {
        Some(number) => named(number),
        None => ticket.id().to_string(),
    }
}

/// The same of an item of the store.
pub(crate) fn named(number: u64) -> String {
    format!("item-{number}")
}

/// The number of an item, as a person writes it.
pub(crate) fn number(item: &str) -> Option<u64> {
    item.strip_prefix("item-").unwrap_or(item).parse().ok()
}

pub(crate) fn accepted(item: &str) -> Reply {
    Reply::new(code::ACCEPTED, "accepted", format!("queued {item}")).detail(json!({ "item": item }))
}

pub(crate) fn withdrawn(item: &str, text: Option<String>) -> Reply {
    Reply::new(code::ACCEPTED, "withdrawn", format!("{item} is withdrawn"))
        .detail(json!({ "item": item, "text": text }))
}

pub(crate) fn not_waiting(item: &str) -> Reply {
    Reply::new(code::TOO_LATE, "too_late", format!("{item} does not wait: a turn has it, or it is gone"))
}

pub(crate) fn never_was(item: &str) -> Reply {
    Reply::new(code::NONE_SUCH, "no_such_item", format!("{item} not found"))
}

/// The session ended before the store said whether it has the item.
pub(crate) fn in_doubt(item: &str) -> Reply {
    let message = format!(
        "{item} was not handled, and it is not known whether the store has it: look at the session's items before you send it again"
    );
    Reply::new(code::OTHER, "settled", message)
        .detail(json!({ "item": item, "fate": ItemOutcome::Unhandled }))
}

/// It is answered, or this is why not: only an answer is a success.
pub(crate) fn rested(item: &str, fate: ItemOutcome, is_stored: bool) -> Reply {
    let (number, status) = match fate {
        ItemOutcome::Completed(_) => (code::ACCEPTED, "settled"),
        ItemOutcome::Returned(refusal) => (refused(refusal), refusal.code()),
        ItemOutcome::Failed(_) => (code::OTHER, "settled"),
        _ => (code::TOO_LATE, "settled"),
    };
    let message = match fate {
        ItemOutcome::Completed(turn) => format!("{item} is answered in {turn}"),
        ItemOutcome::Returned(refusal) => format!("{item} came back: {refusal}"),
        ItemOutcome::Failed(turn) => format!("{turn} failed, and {item} with it"),
        ItemOutcome::Unhandled => {
            let waits = if is_stored { "; it waits in the store until the session is opened" } else { "" };
            format!("{item} was not handled: the session ended first{waits}")
        }
        ItemOutcome::Withdrawn => format!("{item} was withdrawn"),
        ItemOutcome::Interrupted(turn) => {
            format!("{turn} was stopped, and {item} with it; it may be resumed")
        }
        ItemOutcome::Preempted(turn) => format!("{turn} was stopped for a newer item, and {item} with it"),
        ItemOutcome::RolledBack(turn) => format!("{turn} was stopped and forgotten, and {item} with it"),
        ItemOutcome::Suspended(turn) => format!("{turn}, which has {item}, waits for a decision"),
        ItemOutcome::Dropped => format!("{item} was dropped"),
    };
    Reply::new(number, status, message).detail(json!({ "item": item, "fate": fate }))
}
