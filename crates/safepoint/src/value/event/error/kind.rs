//! The kinds of failure that a program tells apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of failure ended a run: coarse, and the same for every provider.
///
/// The [code](crate::outcome::RunError::code) says which part of the engine failed, and the kind what a program may do
/// about it.
///
/// ```
/// use safepoint::{Outcome, outcome::ErrorKind};
///
/// fn what_now(outcome: &Outcome) -> &'static str {
///     let Outcome::Failed(error) = outcome else { return "nothing failed" };
///     match error.kind() {
///         ErrorKind::Authentication => "check the API key",
///         ErrorKind::TooLong => "begin a new conversation",
///         kind if kind.is_transient() => "try again later",
///         _ => "report it",
///     }
/// }
/// ```
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key was missing or refused (401, 403).
    Authentication,
    /// The address or the model does not exist (404).
    NotFound,
    /// Too many requests (429), and the tries are used up.
    RateLimit,
    /// The request was refused as it stands: by the provider (other 4xx), or by the engine (a blank input).
    InvalidRequest,
    /// The conversation does not fit the model's window.
    TooLong,
    /// The provider has no room for the request now (503, 529, or an error of that name in its stream).
    Overloaded,
    /// The provider failed (other 5xx, or an error in its stream), and the tries are used up.
    Provider,
    /// Nothing arrived for too long (408, 504, or a silent stream).
    Timeout,
    /// The host could not be reached: nothing was sent.
    Unreachable,
    /// The connection broke, or the reply ended before it was complete.
    Broken,
    /// What arrived was not what its wire promises.
    Malformed,
    /// A policy refused: a hook, or a filter of the provider.
    Refused,
    /// The model's message was cut by its own output limit.
    Truncated,
    /// The model gave no typed answer that could be read.
    Answer,
    /// A tool failed whose failure ends the run.
    Tool,
    /// Code that the program gave the engine failed or panicked, such as a hook or a model.
    Callback,
    /// A decision about an approval came with a resume and could not be taken.
    Approval,
    /// The log or the store could not be used.
    Store,
    /// Another attempt of the run is active in this process.
    Conflict,
    /// The runtime of the program ended before the run or the session did.
    Runtime,
    /// A kind that this release does not know.
    #[serde(other)]
    Other,
}

impl ErrorKind {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::NotFound => "not_found",
            Self::RateLimit => "rate_limit",
            Self::InvalidRequest => "invalid_request",
            Self::TooLong => "too_long",
            Self::Overloaded => "overloaded",
            Self::Provider => "provider",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::Truncated => "truncated",
            Self::Answer => "answer",
            Self::Tool => "tool",
            Self::Callback => "callback",
            Self::Approval => "approval",
            Self::Store => "store",
            Self::Conflict => "conflict",
            Self::Runtime => "runtime",
            Self::Other => "other",
        }
    }

    /// Whether the same may succeed later, without a change of the request, the key or the program.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Provider
                | Self::Timeout
                | Self::Unreachable
                | Self::Broken
        )
    }

    /// The kind that a code says by itself.
    pub(crate) fn of_code(code: &str) -> Self {
        match code {
            "provider" => Self::Provider,
            "context_window" => Self::TooLong,
            "stream_idle" => Self::Timeout,
            "content_filter" => Self::Refused,
            "truncated" => Self::Truncated,
            "answer" => Self::Answer,
            "input" | "setup" => Self::InvalidRequest,
            "tool" => Self::Tool,
            "callback" => Self::Callback,
            "approval" => Self::Approval,
            "store" => Self::Store,
            "conflict" => Self::Conflict,
            "runtime" => Self::Runtime,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
