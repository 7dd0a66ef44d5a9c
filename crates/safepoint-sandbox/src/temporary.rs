//! A temporary folder that is removed with its owner, or by the next owner if that was killed.
//!
//! **Invariants** The owner holds a lock on the folder. The kernel takes it back when the owner dies, whatever it died of:
//! a folder that can be locked has no owner.

use std::{
    fs::{DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "safepoint-tmp-";
/// How many names are tried before it is given up.
const TRIES: u32 = 16;

/// The folder, for its owner alone.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// Makes one in `place`, and removes there what killed owners have left.
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        let place = place.canonicalize()?;
        sweep(&place);
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            let path = place.join(name());
            match DirBuilder::new().mode(0o700).create(&path).and_then(|()| locked(&path)) {
                Ok(lock) => return Ok(Self { path, _lock: lock }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.path).is_err() {
            // A process that still writes into it keeps it; the next owner removes it.
        }
    }
}

/// A name that no other folder has: the time and a count, so that clocks may stand still.
fn name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only that the numbers differ matters.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("{PREFIX}{}-{time:x}-{count}", std::process::id())
}

/// Its lock, if it is there and has no owner.
fn locked(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    // A sweep may have removed it between its making and the lock.
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.ino() == folder.metadata()?.ino() => Ok(folder),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Removes the folders of owners that are gone.
fn sweep(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    let own = rustix::process::geteuid().as_raw();
    let folders = entries.filter_map(Result::ok).filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own)
    });
    for folder in folders {
        let Ok(_lock) = locked(&folder.path()) else { continue };
        if std::fs::remove_dir_all(folder.path()).is_err() {
            // It is left to the next owner.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.27
    #[test]
    fn a_folder_goes_with_its_owner_and_one_that_was_left_with_the_next() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("safepoint-tmp-1-left-0");
        std::fs::create_dir_all(left.join("deep")).unwrap();
        let other = Temporary::create(place.path()).unwrap();
        assert!(!left.exists(), "its owner is gone");
        let kept = Temporary::create(place.path()).unwrap();
        assert!(other.path().exists(), "it has an owner");
        let path = kept.path().to_owned();
        drop(kept);
        assert!(!path.exists());
    }
}
