//! Where the sockets are: a directory that only its owner can enter, one socket for each session that runs.
//!
//! **Invariants**: a directory that somebody else could write to is not used.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use tokio::net::{UnixListener, UnixStream};

const ENDING: &str = ".sock";
/// What the system takes as a socket's address, less its end.
const LONGEST_PATH: usize = 104;

/// The directory, made if need be.
///
/// # Errors
/// If it cannot be made, or somebody else could write to it.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let folder = match runtime {
        Some(runtime) => PathBuf::from(runtime).join("safepoint"),
        None => std::env::temp_dir().join(format!("safepoint-{user}")),
    };
    let shown = folder.display();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(anyhow::Error::new(error).context(format!("{shown} cannot be made")));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder).with_context(|| format!("{shown} cannot be looked at"))?;
    let is_ours = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
    anyhow::ensure!(
        is_ours,
        "{shown} is not a directory of yours alone: make it so with chmod 700, or remove it"
    );
    Ok(folder)
}

/// Opens the socket of a session.
///
/// # Errors
/// If it cannot be opened.
pub(super) fn bind(session: &str) -> anyhow::Result<(UnixListener, PathBuf)> {
    let path = folder()?.join(format!("{session}{ENDING}"));
    let shown = path.display();
    anyhow::ensure!(
        path.as_os_str().len() <= LONGEST_PATH,
        "{shown} is too long for a socket: set XDG_RUNTIME_DIR"
    );
    let listener = UnixListener::bind(&path).with_context(|| format!("{shown} cannot be opened"))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// Every session that may be running, by id, oldest first.
///
/// # Errors
/// If the directory cannot be read.
pub(super) fn sessions() -> anyhow::Result<Vec<(String, PathBuf)>> {
    let folder = folder()?;
    let entries = fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut found: Vec<(String, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_suffix(ENDING)?.to_owned(), entry.path()))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Connects; a socket that nobody listens on any more is removed.
pub(super) async fn connect(path: &Path) -> Option<UnixStream> {
    match UnixStream::connect(path).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused && fs::remove_file(path).is_err() {
                // Somebody else has removed it.
            }
            None
        }
    }
}
