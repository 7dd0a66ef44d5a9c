//! The folder of one root's snapshots: who may change it when, and how a file comes into it.
//!
//! **Invariants**: a file is in the folder as a whole or not at all. What a snapshot refers to is removed only while no process
//! takes or reads one.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{FlockOperation, flock};

use crate::{content::Hash, error::SnapshotError};

/// Only the user may read what was in files that only the user may read.
const OWN_DIRECTORY: u32 = 0o700;
const OWN_FILE: u32 = 0o600;
/// Digits of the root's hash in the name of its folder.
const KEY: usize = 24;

const PARTS: [&str; 4] = ["snapshots", "bases", "blobs", "passing"];

/// The folder of one root's snapshots.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Device and inode.
    pub(crate) id: (u64, u64),
}

/// A lock of the folder, until it is dropped. The system takes it from a process that ends.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Drop for Locked {
    /// A program that is just being started has a copy of the file until it runs: closing ours alone would leave the lock with that.
    fn drop(&mut self) {
        if flock(&self.0, FlockOperation::Unlock).is_err() {
            // It ends with the last copy of the file.
        }
    }
}

impl Folder {
    /// The folder of this root below `state`; it is made if it is not there.
    pub(crate) fn open(state: &Path, root: &Path) -> Result<Self, SnapshotError> {
        let key: String = Hash::of(root.as_os_str().as_bytes()).to_string().chars().take(KEY).collect();
        let path = state.join(key);
        let made = || {
            for part in PARTS {
                DirBuilder::new().recursive(true).mode(OWN_DIRECTORY).create(path.join(part))?;
            }
            let found = fs::metadata(&path)?;
            Ok((found.dev(), found.ino()))
        };
        let id =
            made().map_err(SnapshotError::system(format!("cannot make the folder {}", path.display())))?;
        let folder = Self { path, id };
        let name = folder.path.join("root");
        if !name.exists() {
            // For people who look into it.
            folder.publish(&name, root.as_os_str().as_bytes())?;
        }
        Ok(folder)
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    pub(crate) fn snapshot(&self, id: &str) -> PathBuf {
        self.snapshots().join(id)
    }

    pub(crate) fn bases(&self) -> PathBuf {
        self.path.join("bases")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }

    pub(crate) fn passing(&self) -> PathBuf {
        self.path.join("passing")
    }

    /// The note of the restore that is under way.
    pub(crate) fn restoring(&self) -> PathBuf {
        self.path.join("restoring")
    }

    /// Nothing is removed while this is held. Waits for a removal that is under way.
    pub(crate) fn shared(&self) -> Result<Locked, SnapshotError> {
        self.locked("lock", FlockOperation::LockShared)
    }

    /// No other process takes or reads a snapshot; an error at once where one does.
    pub(crate) fn alone(&self) -> Result<Locked, SnapshotError> {
        self.locked("lock", FlockOperation::NonBlockingLockExclusive)
    }

    /// No other process restores; an error at once where one does.
    pub(crate) fn restore_lock(&self) -> Result<Locked, SnapshotError> {
        self.locked("restore.lock", FlockOperation::NonBlockingLockExclusive)
    }

    fn locked(&self, name: &str, how: FlockOperation) -> Result<Locked, SnapshotError> {
        let path = self.path.join(name);
        let open = OpenOptions::new().create(true).truncate(false).write(true).mode(OWN_FILE).open(&path);
        let file = open.map_err(SnapshotError::system(format!("cannot open {}", path.display())))?;
        match retried(|| flock(&file, how)) {
            Ok(()) => Ok(Locked(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(SnapshotError::busy()),
            Err(error) => Err(SnapshotError::system(format!("cannot lock {}", path.display()))(error.into())),
        }
    }

    /// A name that no other process uses, and this one once.
    pub(crate) fn fresh(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Only unique: it orders nothing.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("{}-{count}", std::process::id())
    }

    /// Puts a file into the folder, in one piece.
    pub(crate) fn publish(&self, to: &Path, content: &[u8]) -> Result<(), SnapshotError> {
        let passing = self.passing().join(self.fresh());
        let put = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = options.create(true).truncate(true).write(true).mode(OWN_FILE).open(&passing)?;
            file.write_all(content)?;
            drop(file);
            fs::rename(&passing, to)
        };
        put().map_err(|error| {
            if fs::remove_file(&passing).is_err() {
                // It stays under a name that the next removal knows.
            }
            SnapshotError::system(format!("cannot write {}", to.display()))(error)
        })
    }
}

/// Calls again what a signal has cut short.
pub(crate) fn retried<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    rustix::io::retry_on_intr(&mut call)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.31: a program that is started while the folder is locked holds a copy of the file for a moment, and with it no lock.
    #[test]
    fn a_lock_ends_though_a_copy_of_its_file_is_open() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), Path::new("/root-of-a-test")).unwrap();
        for lock in [Folder::shared, Folder::alone, Folder::restore_lock] {
            let locked = lock(&folder).unwrap();
            let copy = locked.0.try_clone().unwrap();
            drop(locked);
            folder.alone().unwrap();
            folder.restore_lock().unwrap();
            drop(copy);
        }
    }
}
