//! The limits of a run, as they were asked for.

use safepoint::{Limits, session::OnRestart};

use crate::args::agent::{AgentArgs, Restart};

/// What a turn does whose process ended.
pub(crate) fn on_restart(args: &AgentArgs) -> OnRestart {
    match args.on_restart {
        Some(Restart::Resume) => OnRestart::Resume,
        Some(Restart::Wait) | None => OnRestart::Wait,
    }
}

pub(crate) fn limits(args: &AgentArgs) -> Limits {
    let defaults = Limits::default();
    let mut limits = Limits::default()
        .with_max_rounds(args.max_rounds.unwrap_or(defaults.max_rounds))
        .with_parallel_calls(args.parallel.unwrap_or(defaults.parallel_calls))
        .with_approval_expiry(args.approval_expiry.unwrap_or(defaults.approval_expiry));
    (limits.wall_time, limits.call_timeout) = (args.timeout, args.tool_timeout);
    limits
}
