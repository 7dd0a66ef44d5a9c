//! What becomes of items, preempts and stops of a session, in words that everybody reads.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::ids::TurnId;

/// Where an item has come to rest. Exhaustive: each accepted item is in exactly one of these places.
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
    /// Its sender took it back.
    Withdrawn,
    /// It went back to its sender.
    Returned(RejectReason),
    /// The session ended before its turn came.
    Unhandled,
}

/// Why an item goes back to its sender; each has a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectReason {
    /// The policy was to come only when no turn is at work: this one is, or waits for a decision. None: the next one is
    /// being planned, or its owner has not said.
    Busy(Option<TurnId>),
    /// It named a turn that is not the one at work.
    TurnMismatch,
    /// A steer, and no turn is at work.
    NoActiveTurn,
    /// A steer, and the turn made no further model request.
    NotDelivered,
    /// There is nothing in it that a model could answer.
    Blank,
    /// The session has ended.
    Closed,
    /// The inbox in the store is full.
    Full,
    /// Its client id is known: the item came before, and is not taken twice.
    Known,
    /// Its client id is known, for other content.
    OtherContent,
    /// The store did not take it.
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
            return write!(f, "{turn} is at work, or waits for a decision");
        }
        f.write_str(match self {
            Self::Busy(_) => "a turn is at work",
            Self::TurnMismatch => "another turn is at work than the one named",
            Self::NoActiveTurn => "no turn is at work",
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

/// What a preempt came to (S6.3). Exhaustive: it hit its turn, or one of three reasons why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "preempted", content = "turn", rename_all = "snake_case")]
pub enum PreemptOutcome {
    /// The turn was stopped for it.
    StoppedTurn(TurnId),
    /// No turn was at work.
    #[serde(rename = "no_target")]
    NoTurn,
    /// The turn ended for another reason first.
    TurnEndedFirst,
    /// A stop of the session came.
    SupersededByStop,
}

/// Where a steer goes that cannot be delivered (S6.5). Exhaustive: it waits for a turn, or it is the sender's again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfUndelivered {
    /// It waits in the inbox.
    Queue,
    /// It goes back to its sender.
    Return,
}
