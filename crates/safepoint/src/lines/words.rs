//! What became of items, in a word.

use serde::Serialize;

/// What a preempt came to.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum PreemptedLine {
    /// The line's turn was stopped for the item.
    StoppedTurn,
    NoTurn,
    TurnEndedFirst,
    SupersededByStop,
}

/// What became of an item, or of a turn for its items.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum ItemWord {
    Completed,
    Preempted,
    Failed,
    Interrupted,
    Suspended,
    RolledBack,
    Dropped,
    Withdrawn,
    Returned,
    Unhandled,
}
