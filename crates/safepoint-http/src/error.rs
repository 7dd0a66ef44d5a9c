//! Why an exchange failed.

use std::{error::Error as StdError, fmt, io, iter, time::Duration};

/// Why an exchange failed, in words that hold no user, password, path or query of the address.
#[derive(Debug)]
pub struct HttpError {
    stage: Stage,
    cause: BoxError,
}

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Setup,
    Address,
    Connect,
    Exchange,
}

impl HttpError {
    pub(crate) fn setup(cause: impl Into<BoxError>) -> Self {
        Self { stage: Stage::Setup, cause: cause.into() }
    }

    pub(crate) fn address(cause: impl Into<BoxError>) -> Self {
        Self { stage: Stage::Address, cause: cause.into() }
    }

    pub(crate) fn connect(cause: impl Into<BoxError>) -> Self {
        Self { stage: Stage::Connect, cause: cause.into() }
    }

    pub(crate) fn exchange(error: hyper::Error) -> Self {
        Self { stage: Stage::Exchange, cause: error.into() }
    }

    /// There was no connection: nothing was sent.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.stage == Stage::Connect
    }

    /// The address or the settings are none that a request can be made with: nothing was sent.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        matches!(self.stage, Stage::Setup | Stage::Address)
    }

    /// The certificate of the other side is not accepted: nothing was sent.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.causes().any(|mut cause| {
            // An error of the system is not the cause of what it wraps.
            while let Some(wrapped) = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                cause = wrapped;
            }
            matches!(cause.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        })
    }

    /// A wait was too long: for the connection, or of the system for the other side.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.causes().any(|cause| {
            let io = cause.downcast_ref::<io::Error>();
            cause.is::<NoConnection>() || io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
        })
    }

    /// The last cause alone, which says what happened but not where.
    #[must_use]
    pub fn root_cause(&self) -> String {
        self.causes().last().map(ToString::to_string).unwrap_or_default()
    }

    /// What went wrong, and what caused it, from the outside in.
    fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let outermost: &(dyn StdError + 'static) = &*self.cause;
        fn inner<'a>(cause: &&'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
            let cause: &'a _ = *cause;
            cause.source()
        }
        iter::successors(Some(outermost), inner)
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, cause) in self.causes().enumerate() {
            let colon = if depth == 0 { "" } else { ": " };
            write!(f, "{colon}{cause}")?;
        }
        Ok(())
    }
}

/// The text has the causes already; here they are as values, down to the [`io::Error`] of the system.
impl StdError for HttpError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

/// There was no connection in time.
#[derive(Debug)]
pub(crate) struct NoConnection(pub(crate) Duration);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl StdError for NoConnection {}
