//! Why a snapshot could not be taken, read or restored.

use std::{error::Error as StdError, fmt, io};

/// Why a snapshot could not be taken, read or restored.
#[derive(Debug)]
pub struct SnapshotError(Fault);

#[derive(Debug)]
enum Fault {
    System { what: String, source: io::Error },
    TooMany { most: usize },
    Busy,
    Damaged { what: String },
    Gone { what: String },
}

impl SnapshotError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self(Fault::System { what, source })
    }

    pub(crate) fn too_many(most: usize) -> Self {
        Self(Fault::TooMany { most })
    }

    pub(crate) fn busy() -> Self {
        Self(Fault::Busy)
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self(Fault::Damaged { what: what.into() })
    }

    pub(crate) fn gone(what: impl Into<String>) -> Self {
        Self(Fault::Gone { what: what.into() })
    }

    /// The root holds more files than the limit: nothing was taken.
    #[must_use]
    pub fn is_too_many(&self) -> bool {
        matches!(self.0, Fault::TooMany { .. })
    }

    /// Another process restores files of this root at this moment: nothing was changed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.0, Fault::Busy)
    }

    /// What was stored cannot be read: a file of the snapshots' folder was altered or cut short.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self.0, Fault::Damaged { .. })
    }

    /// The snapshot was removed, by its age or by the limit of the folder.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.0, Fault::Gone { .. })
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::System { what, source } => write!(f, "{what}: {source}"),
            Fault::TooMany { most } => {
                write!(
                    f,
                    "the directory holds more than {most} files: name a smaller one as the root, or list what is not needed in \
                     .gitignore"
                )
            }
            Fault::Busy => {
                f.write_str("another process restores files of this directory; try again when it has ended")
            }
            Fault::Damaged { what } => write!(f, "damaged in the folder of snapshots: {what}"),
            Fault::Gone { what } => write!(f, "{what} is not in the folder of snapshots any more"),
        }
    }
}

impl StdError for SnapshotError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Fault::System { source, .. } => Some(source),
            Fault::TooMany { .. } | Fault::Busy | Fault::Damaged { .. } | Fault::Gone { .. } => None,
        }
    }
}
