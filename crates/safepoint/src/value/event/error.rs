//! A failure in its stable form: its code, its kind, what it says, and what caused it.

use std::{error::Error as StdError, time::Duration};

use serde::{Deserialize, Serialize};

use crate::value::limits::millis;

mod kind;

pub use kind::ErrorKind;
pub(crate) use safepoint_model::raw::ErrorSource;

/// A failure of the run in its stable form.
///
/// Equal are two that say the same: what caused them is kept in the process alone, and is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The code of S1.10.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The kind, where the code alone does not say it; read it with [`kind`](Self::kind).
    #[serde(rename = "kind", default, skip_serializing_if = "Option::is_none")]
    pub(crate) named: Option<ErrorKind>,
    /// The HTTP status that the failure came with, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the server asked to wait before another try, in milliseconds, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) source: ErrorSource,
}

impl ErrorReport {
    pub(crate) fn new(code: &str, message: impl Into<String>, hint: Option<&str>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            hint: hint.map(str::to_owned),
            named: None,
            status: None,
            retry_after_ms: None,
            source: ErrorSource::default(),
        }
    }

    /// Names the kind, which is recorded only if it is another than that of the code.
    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.named = (kind != ErrorKind::of_code(&self.code)).then_some(kind);
        self
    }

    pub(crate) fn with_status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after_ms = wait.map(millis);
        self
    }

    pub(crate) fn caused_by(mut self, source: ErrorSource) -> Self {
        self.source = source;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.named.unwrap_or_else(|| ErrorKind::of_code(&self.code))
    }

    /// How long the server asked to wait before another try, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }

    /// What caused it; none once it was recorded and read again.
    pub(crate) fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.11: a record says what kind of failure it was, and not what caused it; one without a kind has that of its code,
    /// and a kind of a later release is none of ours.
    #[test]
    fn a_record_keeps_the_kind_and_not_the_cause() {
        let report = ErrorReport::new("provider", "slow down", None)
            .of_kind(ErrorKind::RateLimit)
            .with_retry_after(Some(Duration::from_millis(1500)))
            .caused_by(ErrorSource::of("the transport"));
        assert!(report.cause().is_some());
        let line = serde_json::to_string(&report).unwrap();
        let read: ErrorReport = serde_json::from_str(&line).unwrap();
        assert_eq!(read, report, "the cause is not compared");
        assert_eq!(
            (read.kind(), read.retry_after()),
            (ErrorKind::RateLimit, Some(Duration::from_millis(1500)))
        );
        assert!(read.cause().is_none());

        let early = |code: &str| format!(r#"{{"code":"{code}","message":"m","hint":null}}"#);
        let kind = |line: &str| serde_json::from_str::<ErrorReport>(line).unwrap().kind();
        assert_eq!(kind(&early("stream_idle")), ErrorKind::Timeout);
        assert_eq!(kind(&early("of a later release")), ErrorKind::Other);
        assert_eq!(kind(r#"{"code":"provider","message":"m","hint":null,"kind":"novel"}"#), ErrorKind::Other);
        let plain = ErrorReport::new("provider", "m", None).of_kind(ErrorKind::Provider);
        assert_eq!(
            serde_json::to_string(&plain).unwrap(),
            early("provider"),
            "only what the code does not say"
        );
    }
}
