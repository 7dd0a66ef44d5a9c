//! What a status means, for spans and for possible effects.

use safepoint_scope::{Failure, Halt, TaskEnd};

use crate::{
    contract::tool::ToolResult,
    run::spans::SpanEnd,
    value::{
        effect::{EffectClass, SideEffect as Done},
        receipt::CallStatus,
    },
};

/// A stopped call is neither ok nor an error.
pub(super) fn status_of(status: CallStatus) -> SpanEnd<'static> {
    match status {
        CallStatus::Completed => SpanEnd::Ok,
        CallStatus::Failed | CallStatus::TimedOut | CallStatus::Unreachable => {
            SpanEnd::Failed(status.as_str())
        }
        CallStatus::Denied
        | CallStatus::Expired
        | CallStatus::NotStarted
        | CallStatus::Stopped
        | CallStatus::Killed
        | CallStatus::LeftRunning => SpanEnd::Neither,
    }
}

/// The status of a call that failed by itself.
pub(super) fn failed(failure: &Failure) -> CallStatus {
    match (failure.is_unreachable(), failure.is_denied()) {
        (true, _) => CallStatus::Unreachable,
        (false, true) => CallStatus::Denied,
        (false, false) => CallStatus::Failed,
    }
}

/// Whether a call of this class that started and did not complete may have had effects (S3.8).
pub(super) fn effect_of(class: EffectClass, status: CallStatus, said_none: bool) -> Done {
    match (class, status) {
        (EffectClass::ReadOnly, _) => Done::None,
        (_, CallStatus::NotStarted | CallStatus::Expired) => Done::None,
        (_, CallStatus::Completed) => Done::Done,
        (_, CallStatus::Failed | CallStatus::Denied | CallStatus::Unreachable | CallStatus::Stopped)
            if said_none =>
        {
            Done::None
        }
        (
            _,
            CallStatus::Failed
            // It ran, and was not allowed everything that it requested.
            | CallStatus::Denied
            | CallStatus::TimedOut
            | CallStatus::Stopped
            | CallStatus::Killed
            | CallStatus::LeftRunning
            | CallStatus::Unreachable,
        ) => Done::Unknown,
    }
}

/// A late result in a few words, for the audit; with the tool's own, if `has_words`.
pub(super) fn describe(result: &Result<ToolResult, TaskEnd>, has_words: bool) -> String {
    match result {
        Ok(Err(Halt::Failed(_))) if !has_words => "failed".into(),
        Err(TaskEnd::Panicked(_)) if !has_words => "panicked".into(),
        Ok(Ok(output)) => format!("returned {} bytes", output.text.len()),
        Ok(Err(Halt::Failed(failure))) => format!("failed: {failure}"),
        Ok(Err(Halt::Stop(_))) => "ended with its stop".into(),
        Err(TaskEnd::Panicked(message)) => format!("panicked: {message}"),
        Err(TaskEnd::Dropped) => "was dropped".into(),
    }
}
