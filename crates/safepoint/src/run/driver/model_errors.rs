//! How a failed model call is reported.

use crate::{
    contract::model::{Delta, ModelError, ModelErrorKind},
    sync::clock,
    value::{
        event::{ErrorKind, ErrorReport},
        limits::millis,
        receipt::RetryReport,
    },
};

pub(super) fn report(error: &ModelError) -> ErrorReport {
    ErrorReport::new(error.code(), error.to_string(), error.hint())
        .of_kind(kind(error))
        .with_status(error.status())
        .with_retry_after(error.retry_after())
        .caused_by(error.error_source().clone())
}

/// The kind of a run's failure by this error. The status says more than the wire's own kind where two share one.
fn kind(error: &ModelError) -> ErrorKind {
    match (error.kind(), error.status()) {
        (_, Some(408 | 504)) | (ModelErrorKind::StreamIdle, _) => ErrorKind::Timeout,
        (ModelErrorKind::Unreachable, _) => ErrorKind::Unreachable,
        (ModelErrorKind::Unauthorized, _) => ErrorKind::Authentication,
        (ModelErrorKind::NotFound, _) => ErrorKind::NotFound,
        (ModelErrorKind::Refused, _) => ErrorKind::InvalidRequest,
        (ModelErrorKind::ContextWindow, _) => ErrorKind::TooLong,
        (ModelErrorKind::RateLimited, _) => ErrorKind::RateLimit,
        (ModelErrorKind::Overloaded, _) | (ModelErrorKind::Provider, Some(503 | 529)) => {
            ErrorKind::Overloaded
        }
        (ModelErrorKind::Broken, _) => ErrorKind::Broken,
        (ModelErrorKind::Malformed, _) => ErrorKind::Malformed,
        (ModelErrorKind::ContentFilter, _) => ErrorKind::Refused,
        (ModelErrorKind::Truncated | ModelErrorKind::OutputBytes, _) => ErrorKind::Truncated,
        (ModelErrorKind::Panicked, _) => ErrorKind::Callback,
        // What a newer contract adds is the provider's failure until it has its own kind here.
        (_, _) => ErrorKind::Provider,
    }
}

/// A provider's refusal of a conversation that is too long for its model, where nothing more can be left out of it.
pub(super) fn does_not_fit(error: &ModelError, has_window: bool) -> ErrorReport {
    let hint = if has_window {
        "the provider takes less than the window that is named: name a smaller one that drops or summarises its oldest \
         rounds, ask for less at once, or begin a new conversation"
    } else {
        "the conversation does not fit the model: name its window (`AgentBuilder::window`), so that its oldest rounds are \
         dropped or summarised in time, take a model with a larger one, or begin a new conversation"
    };
    ErrorReport { hint: Some(hint.to_owned()), ..report(error) }
}

pub(super) fn too_long() -> ErrorReport {
    let hint = "allow more output tokens, or ask for less at once";
    ErrorReport::new("truncated", "the model's message was cut by its own output limit", Some(hint))
}

pub(super) fn filtered() -> ErrorReport {
    ErrorReport::new("content_filter", "the provider's filter cut the model's message", None)
}

pub(super) fn endless() -> ErrorReport {
    ErrorReport::new("provider", "the model's stream ended before the reply was complete", None)
        .of_kind(ErrorKind::Broken)
}

/// The error of a performer that ended without a report.
pub(super) fn dead() -> ModelError {
    ModelError::new(ModelErrorKind::Panicked, "the task that reads the model's reply panicked")
}

/// What is kept of a failed try.
pub(super) fn retry(delta: &Delta) -> Option<RetryReport> {
    match delta {
        Delta::Retrying { after, error, .. } | Delta::Reconnecting { after, error, .. } => {
            let at = clock::now();
            Some(RetryReport { at, error: error.clone(), after_ms: millis(*after), instead: None })
        }
        Delta::FailedOver { to, error, .. } => {
            let (at, instead) = (clock::now(), Some(to.to_string()));
            Some(RetryReport { at, error: error.clone(), after_ms: 0, instead })
        }
        _ => None,
    }
}
