//! What work returns when it gives no value: a stop or a failure, kept apart by type.

use std::{error::Error as StdError, fmt};

use crate::scope::stop::Stop;

/// Why work gave no value. `?` takes any error and any [`Stop`] into it, and keeps them apart.
///
/// An error is whatever can be a `Box<dyn Error + Send + Sync>`: an error type, that box itself, an `anyhow::Error`, a
/// text. A [`Stop`] is none of these, so a function that returns one of them cannot pass a stop on as an error.
///
/// ```
/// use safepoint_scope::Halt;
/// fn port(text: &str) -> Result<u16, Halt> {
///     let port = text.parse()?; // an error type
///     if port == 0 { Err("port 0 is not a port")?; } // a text
///     Ok(port)
/// }
/// assert!(port("eighty").is_err());
/// ```
///
/// Exhaustive: a third way to give no value would have to be handled everywhere.
#[must_use = "it says whether the work failed or was stopped"]
#[derive(Debug)]
pub enum Halt {
    /// It had to end.
    Stop(Stop),
    /// It failed.
    Failed(Failure),
}

/// A failure: any error at all, or a message. It shows as the error and what caused it. Like `anyhow::Error` it is not itself
/// an [`Error`](StdError), so that `?` can take every error into it.
pub struct Failure {
    error: Box<dyn StdError + Send + Sync>,
    had_no_effect: bool,
    cause: Cause,
    hint: Option<Box<str>>,
}

/// What made it fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Error,
    TimeLimit,
    Unreachable,
    Denied,
}

impl Failure {
    /// A failure with a message: a lowercase fragment that says what was attempted.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(message.into().into())
    }

    fn of(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self { error, had_no_effect: false, cause: Cause::Error, hint: None }
    }

    /// Says that a time limit of the work's own ended it: the call is then *timed out*, not *failed* (S4.6).
    #[must_use]
    pub fn by_time_limit(mut self) -> Self {
        self.cause = Cause::TimeLimit;
        self
    }

    /// Whether a time limit of the work's own ended it.
    #[must_use]
    pub fn is_by_time_limit(&self) -> bool {
        self.cause == Cause::TimeLimit
    }

    /// Says that the party that does the work could not be reached, so that nothing was sent and nothing was done: the
    /// call is then *unreachable*, not *failed* (S4.1).
    #[must_use]
    pub fn unreachable(mut self) -> Self {
        self.cause = Cause::Unreachable;
        self.had_no_effect = true;
        self
    }

    /// Whether the party that does the work could not be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.cause == Cause::Unreachable
    }

    /// Says that what the work needed was not allowed: the call is then *denied*, not *failed* (S4.1). What it did
    /// before that is not known.
    #[must_use]
    pub fn denied(mut self) -> Self {
        self.cause = Cause::Denied;
        self
    }

    /// Whether what the work needed was not allowed.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.cause == Cause::Denied
    }

    /// Adds a hint: what to do about the failure. The model and people get the hint beside the message.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do about it, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Says that nothing was done: the receipt then reports no effect (S3.8).
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.had_no_effect = true;
        self
    }

    /// Whether it says that nothing was done.
    #[must_use]
    pub fn had_no_effect(&self) -> bool {
        self.had_no_effect
    }

    /// The error inside, with its sources.
    #[must_use]
    pub fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.error
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.error.to_string();
        f.write_str(&said)?;
        let mut source = self.error.source();
        while let Some(error) = source {
            let cause = error.to_string();
            // Many errors say their cause themselves.
            if !said.ends_with(&cause) {
                write!(f, ": {cause}")?;
            }
            said = cause;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({self})")
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Neither a [`Stop`] nor a [`Failure`] can be such a box, so that none of the three ways in overlaps another.
#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(Failure::of(error.into()))
    }
}
