//! Which servers of this user serve here: each has a file that its address names, and holds it locked while it lives.
//!
//! **Invariants**: a server that died holds nothing, however it died, so its address is none that the user's token goes to.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// What the names of the files begin with.
const PREFIX: &str = "serve.at.";
/// Only the user may read it.
const OWN: u32 = 0o600;

/// A server's file, held.
pub(crate) struct HeldAddress {
    _locked: fs::File,
    path: PathBuf,
}

impl HeldAddress {
    /// Says that a server of this process serves at this address.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn hold(folder: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = folder.join(format!("{PREFIX}{address}"));
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(&path)?;
        // Waits for a look alone: the address is this process's.
        file.lock()?;
        Ok(Self { _locked: file, path })
    }

    /// Says that it serves no more.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub(crate) fn end(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Where servers of this user serve here. The files of those that died are removed.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn served(folder: &Path) -> io::Result<Vec<SocketAddr>> {
    let mut alive = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
        let Some(address) = name.and_then(|address| address.parse().ok()) else { continue };
        // One that is removed meanwhile is no server's any more.
        let Ok(file) = fs::File::open(&path) else { continue };
        match file.try_lock_shared() {
            Err(fs::TryLockError::WouldBlock) => alive.push(address),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Ok(()) => drop(fs::remove_file(&path)),
        }
    }
    Ok(alive)
}
