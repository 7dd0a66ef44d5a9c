//! The limits of a run, as they were asked for.

use safepoint::Limits;

use crate::args::agent::AgentArgs;

pub(crate) fn limits(args: &AgentArgs) -> Limits {
    let defaults = Limits::default();
    Limits {
        max_rounds: args.max_rounds.unwrap_or(defaults.max_rounds),
        wall_time: args.timeout,
        parallel_calls: args.parallel.unwrap_or(defaults.parallel_calls),
        call_timeout: args.tool_timeout,
        approval_expiry: args.approval_expiry.unwrap_or(defaults.approval_expiry),
        ..defaults
    }
}
