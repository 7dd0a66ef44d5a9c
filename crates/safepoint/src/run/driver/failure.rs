//! How a failed call that ends its run is reported.

use crate::{
    run::executor::CallEnd,
    value::{message::ToolCall, receipt::CallStatus},
};

/// The error of a run that a call ended: the call of a remote agent's run is the run's whole work.
pub(super) fn of(call: &ToolCall, ending: &CallEnd, is_remote: bool) -> String {
    let why = ending.text.strip_prefix("error: ").unwrap_or(&ending.text);
    // The hint has its own field.
    let hinted = ending.hint.as_ref().and_then(|hint| why.strip_suffix(hint)?.strip_suffix("\nhint: "));
    let why = hinted.unwrap_or(why);
    match &ending.remote {
        Some(remote) if is_remote && ending.status == CallStatus::Denied => {
            format!("the agent {} was {why}", remote.peer)
        }
        Some(remote) if is_remote => format!("the agent {} failed: {why}", remote.peer),
        _ => format!("the tool `{}` failed: {why}", call.name),
    }
}
