//! What became of items, preempts and stops of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::ids::TurnId;

/// The outcome of an item. Exhaustive: each accepted item has exactly one.
///
/// An example is at [`Ticket`](super::Ticket).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "fate", content = "turn", rename_all = "snake_case")]
pub enum ItemOutcome {
    /// Its turn came to its natural end.
    Completed(TurnId),
    /// Its turn was stopped for a newer item.
    Preempted(TurnId),
    /// Its turn failed.
    Failed(TurnId),
    /// Its turn was stopped, by the session's stop, by its own, or by a limit. It may be resumed.
    Interrupted(TurnId),
    /// Its turn waits for a decision.
    Suspended(TurnId),
    /// Its turn was stopped and forgotten.
    RolledBack(TurnId),
    /// The planner dropped it.
    Dropped,
    /// Its sender withdrew it.
    Withdrawn,
    /// It went back to its sender.
    Returned(RejectReason),
    /// The session ended before its turn came.
    Unhandled,
}

impl ItemOutcome {
    /// Whether its turn ended early or waits, so that it may be resumed with the item.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Failed(_) | Self::Preempted(_) | Self::Suspended(_))
    }
}

/// Why an item goes back to its sender; each has a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectReason {
    /// The policy was [`Policy::Reject`](super::Policy::Reject) and this turn runs or waits for a decision.
    /// `None`: the next turn is being planned, or its owner has not said.
    Busy(Option<TurnId>),
    /// It named a turn other than the current one.
    TurnMismatch,
    /// A steer, and no turn was running.
    NoActiveTurn,
    /// A steer, and the turn made no further model request.
    NotDelivered,
    /// There is nothing in it that a model could answer.
    Blank,
    /// The session has ended.
    Closed,
    /// The inbox in the store is full.
    Full,
    /// Its client id is known: the item arrived before, and is not taken twice.
    Known,
    /// Its client id is known, for other content.
    OtherContent,
    /// The store did not accept it.
    NotRecorded,
}

impl RejectReason {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Busy(_) => "busy",
            Self::TurnMismatch => "turn_mismatch",
            Self::NoActiveTurn => "no_active_turn",
            Self::NotDelivered => "not_delivered",
            Self::Blank => "blank",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::Known => "known",
            Self::OtherContent => "other_content",
            Self::NotRecorded => "not_recorded",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Busy(Some(turn)) = self {
            return write!(f, "{turn} is running or waits for a decision");
        }
        f.write_str(match self {
            Self::Busy(_) => "a turn is running",
            Self::TurnMismatch => "a turn other than the one named is running",
            Self::NoActiveTurn => "no turn is running",
            Self::NotDelivered => "the turn ended before its next model request",
            Self::Blank => "it must say something",
            Self::Closed => "the session has ended",
            Self::Full => "the inbox is full",
            Self::Known => "this item came before",
            Self::OtherContent => "this id was used before for other content",
            Self::NotRecorded => "the store did not take it",
        })
    }
}

/// What a preempt came to (S6.3). Exhaustive: it stopped its turn, or one of three reasons why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "preempted", content = "turn", rename_all = "snake_case")]
pub enum PreemptOutcome {
    /// The turn was stopped for it.
    StoppedTurn(TurnId),
    /// No turn was running.
    #[serde(rename = "no_target")]
    NoTurn,
    /// The turn ended for another reason first.
    TurnEndedFirst,
    /// A stop of the session took precedence.
    SupersededByStop,
}

/// Where a steer goes that cannot be delivered (S6.5). Exhaustive: it is queued for a turn, or returned to
/// its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfUndelivered {
    /// It waits in the inbox.
    Queue,
    /// The item goes back to its sender.
    Return,
}
