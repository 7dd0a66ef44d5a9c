//! A scripted reply as deltas: what the engine would have seen of it through a wire.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Usage,
    message::ToolCall,
    model::{Delta, DeltaStream, Finish, ModelError, ModelErrorKind},
};
use serde_json::json;

use super::DeltaStep;
use crate::script::{Reply, ReplyFault};

/// The reply as a stream, paced as it says.
pub(super) fn stream(reply: &Reply) -> DeltaStream {
    let (steps, is_silent) = steps(reply);
    let pause = Duration::from_millis(reply.delay_ms);
    let steps = stream::iter(steps).then(move |step| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        step
    });
    if is_silent { steps.chain(stream::pending()).boxed() } else { steps.boxed() }
}

/// What is said, and whether the stream stays open and silent then.
fn steps(reply: &Reply) -> (Vec<DeltaStep>, bool) {
    let said = said(reply);
    let (most, end, is_silent) = match &reply.fault {
        None => (said.len(), None, false),
        Some(ReplyFault::Silence) => return (vec![Ok(Delta::Sent)], true),
        Some(ReplyFault::Close | ReplyFault::Reset) => return (vec![Ok(Delta::Sent), Err(broken())], false),
        Some(ReplyFault::StallAfter(most)) => (*most, None, true),
        Some(ReplyFault::CloseAfter(most) | ReplyFault::ResetAfter(most)) => (*most, Some(broken()), false),
        Some(ReplyFault::ErrorAfter(most)) => (*most, Some(error(ModelErrorKind::Provider)), false),
        Some(ReplyFault::CutAfter(_)) => (said.len() / 2, Some(broken()), false),
        Some(ReplyFault::Status { status, .. }) => (0, Some(of_status(*status)), false),
        Some(ReplyFault::Answer { .. } | ReplyFault::Raw(_)) => {
            (0, Some(error(ModelErrorKind::Malformed)), false)
        }
    };
    let opening = [Delta::Sent, Delta::Opened].into_iter();
    let steps = opening.chain(said.into_iter().take(most)).map(Ok).chain(end.map(Err));
    (steps.collect(), is_silent)
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
        let id = call.id_or_fresh("call_", index).into();
        deltas.push(Delta::CallReady(ToolCall { id, name: call.name.clone(), args: call.arguments() }));
    }
    if let Some([input, output]) = reply.usage {
        deltas.push(Delta::Usage(Usage::new(input, output)));
    }
    deltas.push(Delta::Ended(match reply.finish.as_deref() {
        None | Some("stop" | "tool_calls" | "end_turn" | "tool_use") => Finish::Natural,
        Some("length" | "max_tokens") => Finish::Length,
        Some("content_filter" | "refusal") => Finish::Filtered,
        Some(other) => Finish::Other(other.to_owned()),
    }));
    deltas
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
        503 | 529 => ModelErrorKind::Overloaded,
        _ => ModelErrorKind::Provider,
    };
    error(kind).with_status(status)
}
