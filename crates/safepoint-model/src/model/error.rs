//! Why a model call failed.

use std::{borrow::Cow, error::Error as StdError, fmt, time::Duration};

use super::provider_tool::ProviderTool;
use crate::error_source::ErrorSource;

/// Why a model call failed.
///
/// A wire fills in what it knows; the run that fails by it says the same.
///
/// ```
/// use std::time::Duration;
/// use safepoint::model::{ModelError, ModelErrorKind};
/// let wait = Duration::from_secs(20);
/// let busy = ModelError::new(ModelErrorKind::RateLimited, "the provider answered 429: slow down")
///     .with_status(429)
///     .with_retry_after(wait);
/// assert_eq!((busy.status(), busy.retry_after()), (Some(429), Some(wait)));
/// ```
#[derive(Clone, Debug)]
pub struct ModelError {
    kind: ModelErrorKind,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    source: ErrorSource,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The host could not be reached.
    Unreachable,
    /// The key was missing or refused (401, 403).
    Unauthorized,
    /// The address or the model does not exist (404).
    NotFound,
    /// The request was refused (other 4xx).
    Refused,
    /// The conversation does not fit the model's window.
    ContextWindow,
    /// Too many requests, retries exhausted (429).
    RateLimited,
    /// The provider has no room for the request now, retries exhausted (503, 529, or an error of that name in its stream).
    Overloaded,
    /// The provider failed, retries exhausted (other 5xx, or an error in its stream).
    Provider,
    /// The connection broke after the first byte.
    Broken,
    /// Nothing arrived for too long.
    StreamIdle,
    /// What arrived was not what the wire promises.
    Malformed,
    /// A filter of the provider refused to answer.
    ContentFilter,
    /// The message was cut by its length before it said anything usable.
    Truncated,
    /// The model's own code panicked.
    Panicked,
    /// More arrived than [`ModelSpec::output_bytes`](super::ModelSpec::output_bytes) allows. This is not a failure: that limit stops the run.
    OutputBytes,
}

impl ModelError {
    /// An error of `kind`; `message` is a lowercase fragment that says what was attempted.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let (message, source) = (message.into(), ErrorSource::default());
        Self { kind, message, hint: None, status: None, retry_after: None, source }
    }

    /// That a model has no such tool, or cannot say one of its settings.
    pub(crate) fn no_provider_tool(model: &str, tool: &ProviderTool) -> Self {
        let message = format!("{model} has no provider tool {}", tool.name());
        Self::new(ModelErrorKind::Refused, message).with_hint("leave it out, or take a model on another wire")
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds how long the server asked to wait before another try.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds what caused it, which [`source`](StdError::source) then returns. It is kept in this process, and not recorded.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = ErrorSource::of(source);
        self
    }

    /// The same error with changed texts.
    pub fn in_words(self, change: impl Fn(String) -> String) -> Self {
        let source = self.source.in_words(&change);
        let change = |words: Cow<'static, str>| Cow::Owned(change(words.into_owned()));
        Self { message: change(self.message), hint: self.hint.map(change), source, ..self }
    }

    /// What caused it, to be kept with the report of it.
    pub fn error_source(&self) -> &ErrorSource {
        &self.source
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// What to do about it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The HTTP status, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// How long the server asked to wait before another try, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The failure code of S1.10.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ModelErrorKind::StreamIdle => "stream_idle",
            ModelErrorKind::ContentFilter => "content_filter",
            ModelErrorKind::Truncated => "truncated",
            ModelErrorKind::ContextWindow => "context_window",
            ModelErrorKind::OutputBytes => "output_bytes",
            ModelErrorKind::Unreachable
            | ModelErrorKind::Unauthorized
            | ModelErrorKind::NotFound
            | ModelErrorKind::Refused
            | ModelErrorKind::RateLimited
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Provider
            | ModelErrorKind::Broken
            | ModelErrorKind::Panicked
            | ModelErrorKind::Malformed => "provider",
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for ModelError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_error()
    }
}
