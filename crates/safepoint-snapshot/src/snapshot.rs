//! A snapshot that was taken, and what it does not hold.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// A snapshot in the folder of its root: its name, not its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) id: String,
    pub(crate) taken: u128,
    pub(crate) label: String,
    pub(crate) not_taken: usize,
}

impl Snapshot {
    /// What it was labelled with.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// When it was taken.
    #[must_use]
    pub fn taken_at(&self) -> SystemTime {
        let nanos = Duration::from_nanos(u64::try_from(self.taken).unwrap_or(u64::MAX));
        SystemTime::UNIX_EPOCH + nanos
    }

    /// How many files and directories it does not hold, besides those that git ignores and `.git` itself.
    /// [`Snapshots::not_taken`](crate::Snapshots::not_taken) names them.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.not_taken
    }
}

/// Why a snapshot does not hold a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotTaken {
    /// A `.gitignore` names it.
    Ignored,
    /// It is larger than the limit of one file.
    TooLarge,
    /// The files before it have used up the limit of one snapshot.
    NoRoom,
    /// It could not be read.
    Unreadable,
    /// It is neither a file, a directory nor a symbolic link.
    Special,
    /// It is git's own, excluded by the limits, or the snapshots' own.
    Excluded,
    /// A restore that was cut off has left it; the next restore removes it.
    Restoring,
}

impl NotTaken {
    pub(crate) const ALL: [Self; 7] = [
        Self::Ignored,
        Self::TooLarge,
        Self::NoRoom,
        Self::Unreadable,
        Self::Special,
        Self::Excluded,
        Self::Restoring,
    ];

    /// The word in a manifest.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::TooLarge => "large",
            Self::NoRoom => "room",
            Self::Unreadable => "unreadable",
            Self::Special => "special",
            Self::Excluded => "excluded",
            Self::Restoring => "restoring",
        }
    }
}

/// For people: `larger than a snapshot takes`.
impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ignored => "git ignores it",
            Self::TooLarge => "larger than a snapshot takes",
            Self::NoRoom => "the snapshot was full",
            Self::Unreadable => "not readable",
            Self::Special => "no regular file",
            Self::Excluded => "excluded",
            Self::Restoring => "left by a restore that was cut off",
        })
    }
}

/// A path with the reason.
pub(crate) type Omissions = Vec<(PathBuf, NotTaken)>;
