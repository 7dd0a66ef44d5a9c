//! What was under way, as facts.

use safepoint_testkit::{
    server::Exchange,
    tool_server::{ServedCall, ToolEnd},
};
use tokio::time::Instant;

use crate::facts::{Work, WorkEnd, WorkKind};

/// What a request of the model was after the stop; none if it was answered before.
pub(super) fn of_model(exchange: &Exchange, stop: Instant) -> Option<Work> {
    let fate = exchange.fate_now();
    let since = |at: Instant| at.saturating_duration_since(stop);
    let end = match (fate.completed, fate.peer_closed) {
        (Some(at), _) if at < stop => return None,
        (Some(at), _) => WorkEnd::Whole(since(at)),
        (None, Some(at)) => WorkEnd::Cut(since(at)),
        (None, None) => WorkEnd::Never,
    };
    let words = vec!["model".to_owned()];
    Some(Work { kind: WorkKind::Model, name: format!("{}", exchange.id + 1), words, end })
}

/// What a call of one of the stage's tools was after the stop; none if it was answered before.
pub(super) fn of_tool(call: &ServedCall, stop: Instant) -> Option<Work> {
    let since = |at: Instant| at.saturating_duration_since(stop);
    let end = match call.end() {
        // One that is done is no work any more.
        Some(ToolEnd::Answered(at)) if at < stop => return None,
        Some(ToolEnd::Answered(at)) => WorkEnd::Whole(since(at)),
        Some(ToolEnd::Closed(at)) => WorkEnd::Cut(since(at)),
        None => WorkEnd::Never,
    };
    Some(Work { kind: WorkKind::Tool, name: call.name.clone(), words: vec![call.name.clone()], end })
}
