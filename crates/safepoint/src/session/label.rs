//! The words by which the row of a session says how its last turn is: a list of sessions reads no journal.

use super::outcome::ItemOutcome;

/// A turn runs, unless the process that has the session is dead.
pub(super) const RUNNING: &str = "running";
/// Its owner died in the turn, and another one has the session: the turn may be resumed.
pub(super) const CUT: &str = "cut";
/// Nothing is left to resume.
pub(super) const IDLE: &str = "idle";

/// The word of a turn that has ended so.
pub(super) fn of(fate: ItemOutcome) -> &'static str {
    match fate {
        ItemOutcome::Suspended(_) => "suspended",
        ItemOutcome::Interrupted(_) | ItemOutcome::Preempted(_) => "stopped",
        ItemOutcome::Failed(_) => "failed",
        _ => IDLE,
    }
}
