//! What became of an item or a turn, by the words that lines of JSON and the API of a server have for it.

use safepoint::{
    ids::TurnId,
    session::{ItemOutcome, RejectReason},
};

/// The outcome of this word; none for a word that it has not, or one that lacks its turn or its reason.
pub(crate) fn outcome(word: &str, turn: Option<TurnId>, returned: Option<&str>) -> Option<ItemOutcome> {
    match word {
        "completed" => turn.map(ItemOutcome::Completed),
        "preempted" => turn.map(ItemOutcome::Preempted),
        "failed" => turn.map(ItemOutcome::Failed),
        "interrupted" => turn.map(ItemOutcome::Interrupted),
        "suspended" => turn.map(ItemOutcome::Suspended),
        "rolled_back" => turn.map(ItemOutcome::RolledBack),
        "dropped" => Some(ItemOutcome::Dropped),
        "withdrawn" => Some(ItemOutcome::Withdrawn),
        "unhandled" => Some(ItemOutcome::Unhandled),
        "returned" => reason(returned?).map(ItemOutcome::Returned),
        _ => None,
    }
}

/// Why an item came back, by its code.
pub(crate) fn reason(code: &str) -> Option<RejectReason> {
    const ALL: [RejectReason; 10] = [
        RejectReason::Busy(None),
        RejectReason::TurnMismatch,
        RejectReason::NoActiveTurn,
        RejectReason::NotDelivered,
        RejectReason::Blank,
        RejectReason::Closed,
        RejectReason::Full,
        RejectReason::Known,
        RejectReason::OtherContent,
        RejectReason::NotRecorded,
    ];
    ALL.into_iter().find(|why| why.code() == code)
}
