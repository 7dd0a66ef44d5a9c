//! Contents of files, each once, by their hash.
//!
//! **Invariants**: what is read has the hash that it was asked by.

use std::{fs, io, path::PathBuf};

use crate::{content::Hash, error::SnapshotError, folder::Folder};

/// The contents of one folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blobs<'f>(pub(crate) &'f Folder);

impl Blobs<'_> {
    pub(crate) fn place(self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        let (group, rest) = name.split_at(2);
        self.0.blobs().join(group).join(rest)
    }

    /// Keeps a content.
    pub(crate) fn keep(self, content: &[u8]) -> Result<Hash, SnapshotError> {
        let hash = Hash::of(content);
        let path = self.place(&hash);
        // A loss of power may have cut it short.
        if fs::metadata(&path).is_ok_and(|found| found.len() == content.len() as u64) {
            return Ok(hash);
        }
        if let Some(group) = path.parent() {
            let made = fs::create_dir_all(group);
            made.map_err(SnapshotError::system(format!("cannot make {}", group.display())))?;
        }
        self.0.publish(&path, content)?;
        Ok(hash)
    }

    pub(crate) fn read(self, hash: &Hash) -> Result<Vec<u8>, SnapshotError> {
        let path = self.place(hash);
        let content = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SnapshotError::damaged(format!("the content {hash} is missing")));
            }
            read => read.map_err(SnapshotError::system(format!("cannot read {}", path.display())))?,
        };
        if Hash::of(&content) != *hash {
            return Err(SnapshotError::damaged(format!("the content {hash} was altered")));
        }
        Ok(content)
    }

    /// Waits until the content would survive a loss of power.
    pub(crate) fn settle(self, hash: &Hash) -> Result<(), SnapshotError> {
        let path = self.place(hash);
        let synced = fs::File::open(&path).and_then(|file| file.sync_data());
        synced.map_err(SnapshotError::system(format!("cannot write {} to the disk", path.display())))
    }
}
