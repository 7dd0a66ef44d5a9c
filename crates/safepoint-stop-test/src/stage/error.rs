//! Why a target could not be stopped at a moment: it was not brought there.

/// Why nothing can be said of a stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// The stage could not be built; in words.
    #[error("no stage could be built: {0}")]
    Unbuilt(String),
    /// The target could not be started; in words.
    #[error("the target could not be started: {0}")]
    NotStarted(String),
    /// The target did not do what the scenario needs; in words.
    #[error("{0}")]
    NotReached(String),
    /// The target's door cannot bring it about; in words.
    #[error("cannot be expressed: {0}")]
    NotExpressed(String),
}

pub(super) fn not_reached(why: impl Into<String>) -> StageError {
    StageError::NotReached(why.into())
}

pub(super) fn not_expressed(why: impl Into<String>) -> StageError {
    StageError::NotExpressed(why.into())
}
