//! A scripted reply as deltas: what the engine would have seen of it through a wire.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Usage,
    message::ToolCall,
    model::{Delta, DeltaStream, Finish, ModelError, ModelErrorKind},
};
use serde_json::json;

use super::DeltaStep;
use crate::script::{Call, Reply, ReplyFault};

/// What is said, and what becomes of the stream then.
struct Plan {
    steps: Vec<DeltaStep>,
    then: Then,
}

enum Then {
    End,
    Silence,
}

/// The reply as a stream, paced as it says.
pub(super) fn stream(reply: &Reply) -> DeltaStream {
    let Plan { steps, then } = plan(reply);
    let pause = Duration::from_millis(reply.delay_ms);
    let steps = stream::iter(steps).then(move |step| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        step
    });
    match then {
        Then::End => steps.boxed(),
        Then::Silence => steps.chain(stream::pending()).boxed(),
    }
}

fn plan(reply: &Reply) -> Plan {
    let mut steps = vec![Ok(Delta::Sent), Ok(Delta::Opened)];
    let opening = steps.len();
    let (most, end, then) = match &reply.fault {
        None => {
            steps.extend(said(reply).into_iter().map(Ok));
            return Plan { steps, then: Then::End };
        }
        Some(ReplyFault::Silence) => return Plan { steps: vec![Ok(Delta::Sent)], then: Then::Silence },
        Some(ReplyFault::Close | ReplyFault::Reset) => {
            return Plan { steps: vec![Ok(Delta::Sent), Err(broken())], then: Then::End };
        }
        Some(ReplyFault::StallAfter(most)) => (*most, None, Then::Silence),
        Some(ReplyFault::CloseAfter(most) | ReplyFault::ResetAfter(most)) => {
            (*most, Some(broken()), Then::End)
        }
        Some(ReplyFault::ErrorAfter(most)) => (*most, Some(error(ModelErrorKind::Provider)), Then::End),
        Some(ReplyFault::CutAfter(_)) => (said(reply).len() / 2, Some(broken()), Then::End),
        Some(ReplyFault::Status { status, .. }) => (0, Some(of_status(*status)), Then::End),
        Some(ReplyFault::Answer { .. } | ReplyFault::Raw(_)) => {
            (0, Some(error(ModelErrorKind::Malformed)), Then::End)
        }
    };
    steps.extend(said(reply).into_iter().map(Ok));
    steps.truncate(opening + most);
    steps.extend(end.map(Err));
    Plan { steps, then }
}

fn said(reply: &Reply) -> Vec<Delta> {
    let mut deltas = Vec::new();
    if !reply.reasoning.is_empty() {
        deltas.push(Delta::Reasoning(reply.reasoning.clone()));
        deltas.push(Delta::ReasoningSeal(json!("scripted")));
    }
    deltas.extend(reply.texts().into_iter().map(Delta::Text));
    for (index, call) in reply.calls.iter().enumerate() {
        deltas.push(Delta::CallPreview { name: call.name.clone() });
        deltas.push(Delta::CallReady(ready(call, index)));
    }
    if let Some([input, output]) = reply.usage {
        deltas.push(Delta::Usage(Usage { input, output, ..Usage::default() }));
    }
    deltas.push(Delta::Ended(match reply.finish.as_deref() {
        None | Some("stop" | "tool_calls" | "end_turn" | "tool_use") => Finish::Natural,
        Some("length" | "max_tokens") => Finish::Length,
        Some("content_filter" | "refusal") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_owned()),
    }));
    deltas
}

fn ready(call: &Call, index: usize) -> ToolCall {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: each number is given once, and orders nothing.
    let fresh = || format!("call_{:06}{index}", NEXT.fetch_add(1, Ordering::Relaxed));
    let id = call.id.clone().unwrap_or_else(fresh);
    let args = call.args.as_str().map_or_else(|| call.args.to_string(), ToOwned::to_owned);
    ToolCall { id: id.into(), name: call.name.clone(), args }
}

fn broken() -> ModelError {
    error(ModelErrorKind::Broken)
}

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "the scripted model was made to fail")
}

fn of_status(status: u16) -> ModelError {
    let kind = match status {
        401 | 403 => ModelErrorKind::Unauthorized,
        404 => ModelErrorKind::NotFound,
        429 => ModelErrorKind::RateLimited,
        400..500 => ModelErrorKind::Refused,
        _ => ModelErrorKind::Provider,
    };
    error(kind).with_status(status)
}
