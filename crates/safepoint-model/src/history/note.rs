//! What a model sees for calls without a result. Neutral, short, the same bytes every time.

use crate::ids::Path;

/// Nothing of it ran.
pub const NOT_STARTED: &str = "[not started: the run was stopped before this call began. Nothing was done.]";
/// Nothing of it ran, because a newer message came first.
pub const OVERTAKEN: &str =
    "[not started: a newer message arrived before this call began. Nothing was done.]";
/// It ran and was stopped; how far it came is unknown.
pub const STOPPED_UNKNOWN: &str =
    "[stopped while running: its effects are unknown and may have happened. Check before repeating it.]";
/// It was begun, and its end was not seen: it was not stopped either.
pub const CUT_OFF: &str = "[cut off: no end of this call is recorded, as when its process is killed. Its effects are unknown and may have happened. Check before repeating it.]";
/// It only read, and was stopped.
pub const STOPPED_HARMLESS: &str = "[stopped while running: it only reads, so nothing was changed.]";
/// It was a run of another agent, and had changed nothing.
pub const CHILD_STOPPED_HARMLESS: &str =
    "[stopped while at work: this agent was ended early. It had not changed anything.]";
/// It was a run of another agent; every call that it made has a known end.
pub const CHILD_STOPPED: &str =
    "[stopped while at work: this agent was ended early. What it did stands; the rest was not done.]";
/// Its time limit passed.
pub const TIMED_OUT: &str =
    "[timed out: its effects are unknown and may have happened. Check before repeating it.]";
/// Its time limit passed, and it could not be ended.
pub const TIMED_OUT_STILL_RUNNING: &str =
    "[timed out and still running: this call could not be ended. Its effects may yet happen.]";
/// It could not be stopped and continues.
pub const STILL_RUNNING: &str =
    "[still running: the run was stopped and this call could not be. Its effects may yet happen.]";
/// It was not allowed.
pub const DENIED: &str = "[denied: this call was not allowed to run. Nothing was done.]";
/// Its question expired.
pub const EXPIRED: &str = "[expired: nobody decided about this call in time. Nothing was done.]";
/// A person stopped this one call.
pub const STOPPED_ALONE: &str =
    "[stopped by request: this call was ended early. Its effects are unknown and may have happened.]";
/// Marks a message that was cut.
pub const INTERRUPTED: &str = "[interrupted: this message was cut here.]";
/// Calls beyond the limit of one message: they are not part of it, and the note follows its last result.
pub fn calls_left_out(more: u64) -> String {
    format!(
        "\n[{more} more calls of this message were left out: a message may not have so many. Nothing of them was done.]"
    )
}
/// A result that a stored history lacks.
pub const MISSING: &str =
    "[no result is recorded for this call: its effects are unknown and may have happened.]";
/// A person had to approve it, and no approver can be asked.
pub const NO_APPROVER: &str = "[denied: this call needs a person's approval, and nobody can be asked here.]";
/// Nothing keeps a copy of the run from making the same call.
pub const NOT_CLAIMED: &str = "[denied: this run continues from a copy without a claim, and another copy could make the same call. Nothing was done by this one.]";
/// What follows the name of remote work that has not confirmed its end.
pub const MAY_CONTINUE: &str = " may go on";
/// What calls did after the point from which a conversation continues.
#[must_use]
pub fn done_later(calls: &[String]) -> String {
    let calls = calls.join("\n- ");
    format!(
        "[This conversation continues from an earlier point. What was said after that point is not part of it, but these calls were made then, and what they did stands:\n- {calls}\nCheck before repeating any of them.]"
    )
}
/// A run in the background belongs to the session that a conversation continues.
#[must_use]
pub fn background_stays(run: &Path) -> String {
    format!(
        "[what was started in the background as {run} belongs to the session that this conversation continues: it may have ended there, and its result does not come here.]"
    )
}
/// Its work is a background run, which has begun.
pub fn in_background(run: &Path) -> String {
    format!("[started in the background as {run}: it goes on by itself]")
}
