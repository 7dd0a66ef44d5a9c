//! The events of a response, their numbers, and its status.

use serde_json::Value;

/// How many numbers a record has for itself and for what streams behind it.
const NUMBERS: u32 = 20;
/// An event of a response, and its number.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) event: ResponseEvent,
}

/// Exhaustive: what happens with an item of the output, or the response itself as it is then.
#[derive(Clone, Debug)]
pub(super) enum ResponseEvent {
    Output(Value),
    Whole(&'static str),
}

/// How a response is. Exhaustive: as the protocol has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    Cancelled,
    Failed,
}

impl ResponseStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// What an outcome of an item or of a turn is.
    pub(super) fn of_outcome(outcome: &str) -> Self {
        match outcome {
            // It waits for answers to the questions in its output.
            "completed" | "suspended" => Self::Completed,
            "failed" | "unhandled" | "crashed" => Self::Failed,
            _ => Self::Cancelled,
        }
    }

    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Failed)
    }

    /// The event by which a stream ends. There is none for `cancelled`: clients know it as an incomplete one.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Completed => "response.completed",
            Self::Failed => "response.failed",
            Self::Queued | Self::InProgress | Self::Cancelled => "response.incomplete",
        }
    }
}

/// The first number of the record at this position. Those before the first record are for what is not recorded.
pub(super) fn place(position: u64) -> u64 {
    (position + 1) << NUMBERS
}

pub(super) fn numbered(number: u64, event: Value) -> Numbered {
    Numbered { number, event: ResponseEvent::Output(event) }
}

pub(super) fn whole(number: u64, event: &'static str) -> Numbered {
    Numbered { number, event: ResponseEvent::Whole(event) }
}
