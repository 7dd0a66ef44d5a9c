//! Which servers of this user serve here: each has a file that its address names, and holds it locked while it lives.
//!
//! **Invariants**: a server that died holds nothing, however it died, so its address is none that the user's token goes to.

use std::{fs, io, net::SocketAddr, path::Path};

/// What the names of the files begin with.
pub(crate) const SERVED_AT: &str = "serve.at.";

/// Where servers of this user serve here.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn served(folder: &Path) -> io::Result<Vec<SocketAddr>> {
    let mut alive = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(SERVED_AT));
        let Some(address) = name.and_then(|address| address.parse().ok()) else { continue };
        // One that is removed meanwhile is no server's any more.
        let Ok(file) = fs::File::open(&path) else { continue };
        match file.try_lock_shared() {
            Err(fs::TryLockError::WouldBlock) => alive.push(address),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            // It died, or is about to begin.
            Ok(()) => {}
        }
    }
    Ok(alive)
}
