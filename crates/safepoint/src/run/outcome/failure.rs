//! Why a run failed, with everything needed to continue from there.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use super::OutcomeContext;
use crate::value::{
    event::{ErrorKind, ErrorReport},
    history::History,
    receipt::Receipt,
};

/// Why a run failed; shows as its message.
///
/// [`source`](StdError::source) leads to what caused it, such as the error of the transport. It is kept in the process
/// alone: of a failure that was recorded and read again there is none.
///
/// ```
/// use std::{error::Error as _, io, iter};
/// use safepoint::outcome::RunError;
///
/// fn is_refused_connection(error: &RunError) -> bool {
///     iter::successors(error.source(), |&cause| cause.source())
///         .filter_map(|cause| cause.downcast_ref::<io::Error>())
///         .any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct RunError {
    pub(crate) error: ErrorReport,
    pub(crate) ended: Arc<OutcomeContext>,
}

impl RunError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// The code of S1.10, such as `provider`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.error.code
    }

    /// What to do about it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.error.hint.as_deref()
    }

    /// The HTTP status that the failure came with, if it did.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.error.status
    }

    /// How long the server asked to wait before another try, if it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.error.retry_after()
    }

    /// The failure in its stable form, as it is recorded.
    #[must_use]
    pub fn report(&self) -> &ErrorReport {
        &self.error
    }

    /// The account of the attempt.
    #[must_use]
    pub fn receipt(&self) -> &Arc<Receipt> {
        &self.ended.receipt
    }

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.ended.history
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl StdError for RunError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.cause()
    }
}
