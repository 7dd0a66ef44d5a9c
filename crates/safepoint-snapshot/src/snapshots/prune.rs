//! What is removed from a folder of snapshots: what is too old, the oldest of what is too much, and what nothing refers to.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    error::SnapshotError,
    manifest::{self, Manifest},
    snapshot::Snapshot,
    snapshots::Snapshots,
};

impl Snapshots {
    /// Removes the snapshots that are older than the limits say, and the oldest ones while the folder is larger. The newest one,
    /// and those of a restore that was cut off, stay. Nothing is removed while another process takes or reads a snapshot.
    ///
    /// # Errors
    /// If the folder cannot be read or changed.
    pub fn prune(&self) -> Result<(), SnapshotError> {
        let _alone = match self.folder.alone() {
            Err(error) if error.is_busy() => return Ok(()),
            locked => locked?,
        };
        let pinned = self.pinned()?;
        let (mut used, mut bytes) = (HashSet::new(), 0);
        let all = self.list()?;
        for (age, snapshot) in all.iter().rev().enumerate() {
            let stays = age == 0 || pinned.contains(&snapshot.id);
            if !stays && (self.is_old(snapshot) || bytes > self.limits.folder_bytes) {
                removed(&self.folder.snapshot(&snapshot.id))?;
                continue;
            }
            match self.references(snapshot, &mut used) {
                Ok(more) => bytes += more,
                // It can never be restored.
                Err(error) if error.is_damaged() => removed(&self.folder.snapshot(&snapshot.id))?,
                Err(error) => return Err(error),
            }
            if !stays && bytes > self.limits.folder_bytes {
                removed(&self.folder.snapshot(&snapshot.id))?;
            }
        }
        self.sweep(&used)
    }

    /// Removes these snapshots, and what only they hold; returns how many. Those of a restore that was cut off stay.
    ///
    /// # Errors
    /// [`SnapshotError::is_busy`] while another process takes or reads a snapshot: nothing was removed. Or the folder cannot be
    /// read or changed.
    ///
    /// # Examples
    /// ```
    /// # fn tidy(snapshots: &safepoint_snapshot::Snapshots) -> Result<(), safepoint_snapshot::SnapshotError> {
    /// snapshots.remove(|snapshot| snapshot.label().ends_with(" of trip"))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self, is_meant: impl Fn(&Snapshot) -> bool) -> Result<usize, SnapshotError> {
        let _alone = self.folder.alone()?;
        let pinned = self.pinned()?;
        let mut used = HashSet::new();
        let all = self.list()?;
        let (meant, stay): (Vec<_>, Vec<_>) =
            all.iter().partition(|snapshot| is_meant(snapshot) && !pinned.contains(&snapshot.id));
        // The one that was read last may be one of them.
        *self.cached() = None;
        for snapshot in &meant {
            removed(&self.folder.snapshot(&snapshot.id))?;
        }
        for snapshot in stay {
            match self.references(snapshot, &mut used) {
                // One that is damaged refers to what cannot be known; the next `prune` removes it.
                Err(error) if error.is_damaged() => return Ok(meant.len()),
                found => drop(found?),
            }
        }
        self.sweep(&used)?;
        Ok(meant.len())
    }

    /// The snapshots of a restore that was cut off.
    fn pinned(&self) -> Result<Vec<String>, SnapshotError> {
        Ok(self.unfinished()?.into_iter().flat_map(|(to, before)| [to.id, before.id]).collect())
    }

    fn is_old(&self, snapshot: &Snapshot) -> bool {
        let age = SystemTime::now().duration_since(snapshot.taken_at()).unwrap_or_default();
        age > self.limits.age
    }

    /// Adds the files of the folder that a snapshot refers to, and those of all of its base. Returns the bytes of those that
    /// are new.
    fn references(&self, snapshot: &Snapshot, used: &mut HashSet<PathBuf>) -> Result<u64, SnapshotError> {
        let Manifest { base, lines, .. } = self.manifest(snapshot)?;
        let path = self.folder.bases().join(base.to_string());
        let mut contents = manifest::contents(&lines);
        let mut bytes = 0;
        if !used.contains(&path) {
            let text = self.base_text(&base)?;
            bytes += text.len() as u64;
            contents.extend(manifest::contents(&text));
            used.insert(path);
        }
        for (hash, size) in contents {
            if used.insert(self.blobs().place(&hash)) {
                bytes += size;
            }
        }
        Ok(bytes)
    }

    /// Removes what no snapshot refers to. Nothing is under way while the folder is locked.
    fn sweep(&self, used: &HashSet<PathBuf>) -> Result<(), SnapshotError> {
        for path in files(&self.folder.bases())?.into_iter().chain(files(&self.folder.passing())?) {
            if !used.contains(&path) {
                removed(&path)?;
            }
        }
        for group in files(&self.folder.blobs())? {
            for path in files(&group)?.into_iter().filter(|path| !used.contains(path)) {
                removed(&path)?;
            }
        }
        Ok(())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, SnapshotError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    read().map_err(SnapshotError::system(format!("cannot read {}", folder.display())))
}

fn removed(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(SnapshotError::system(format!("cannot remove {}", path.display()))),
    }
}
