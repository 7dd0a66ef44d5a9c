//! How a failed model call is reported.

use jiff::Timestamp;

use crate::{
    contract::model::{Delta, ModelError, ModelErrorKind},
    value::{event::ErrorReport, receipt::RetryReport},
};

pub(super) fn report(error: &ModelError) -> ErrorReport {
    ErrorReport {
        code: error.code().to_owned(),
        message: error.to_string(),
        hint: error.hint().map(ToOwned::to_owned),
    }
}

pub(super) fn too_long() -> ErrorReport {
    ErrorReport {
        code: "truncated".into(),
        message: "the model's message was cut by its own output limit".into(),
        hint: Some("allow more output tokens, or ask for less at once".into()),
    }
}

pub(super) fn filtered() -> ErrorReport {
    ErrorReport {
        code: "content_filter".into(),
        message: "the provider's filter cut the model's message".into(),
        hint: None,
    }
}

pub(super) fn endless() -> ErrorReport {
    ErrorReport {
        code: "provider".into(),
        message: "the model's stream ended before the reply was complete".into(),
        hint: None,
    }
}

/// The error of a performer that ended without a report.
pub(super) fn dead() -> ModelError {
    ModelError::new(ModelErrorKind::Broken, "the task that reads the model's reply panicked")
}

/// What is kept of a failed try.
pub(super) fn retry(delta: &Delta) -> Option<RetryReport> {
    let at = Timestamp::now();
    match delta {
        Delta::Retrying { after, error, .. } | Delta::Reconnecting { after, error, .. } => {
            let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            Some(RetryReport { at, error: error.clone(), after_ms, instead: None })
        }
        Delta::FailedOver { to, error, .. } => {
            let instead = Some(to.to_string());
            Some(RetryReport { at, error: error.clone(), after_ms: 0, instead })
        }
        _ => None,
    }
}
