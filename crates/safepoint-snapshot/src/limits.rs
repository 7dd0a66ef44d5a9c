//! What bounds snapshots, and what they leave out.

use std::{path::PathBuf, time::Duration};

/// What bounds snapshots, and what they leave out besides what `.gitignore` does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotLimits {
    /// The most bytes of one file. A larger one is not taken, and named. Default: 16 MiB.
    pub file_bytes: u64,
    /// The most bytes of all files of one snapshot. What comes after that, by path, is not taken, and named. Default: 512 MiB.
    pub snapshot_bytes: u64,
    /// The most files and directories of one snapshot. A root with more of them has no snapshots. Default: 100,000.
    pub files: usize,
    /// The most bytes of the folder of a root, after which its oldest snapshots are removed. Default: 2 GiB.
    pub folder_bytes: u64,
    /// How old a snapshot becomes before it is removed. Default: 30 days.
    pub age: Duration,
    /// Files and directories, as absolute paths, that are never taken and never changed: such as an open database. `.git` is
    /// one of them, at any depth. Default: none more.
    pub exclude: Vec<PathBuf>,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            file_bytes: 16 << 20,
            snapshot_bytes: 512 << 20,
            files: 100_000,
            folder_bytes: 2 << 30,
            age: DAY * 30,
            exclude: Vec::new(),
        }
    }
}

impl SnapshotLimits {
    /// Sets the most bytes of one file.
    #[must_use]
    pub fn with_file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }

    /// Sets the most bytes of all files of one snapshot.
    #[must_use]
    pub fn with_snapshot_bytes(mut self, bytes: u64) -> Self {
        self.snapshot_bytes = bytes;
        self
    }

    /// Sets the most files and directories of one snapshot.
    #[must_use]
    pub fn with_files(mut self, files: usize) -> Self {
        self.files = files;
        self
    }

    /// Sets the most bytes of the folder of a root.
    #[must_use]
    pub fn with_folder_bytes(mut self, bytes: u64) -> Self {
        self.folder_bytes = bytes;
        self
    }

    /// Sets how old a snapshot becomes.
    #[must_use]
    pub fn with_age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// Adds a file or directory that is never taken and never changed.
    #[must_use]
    pub fn excluding(mut self, path: impl Into<PathBuf>) -> Self {
        self.exclude.push(path.into());
        self
    }
}
