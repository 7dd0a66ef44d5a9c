//! The files of logins: one for each address, which only its user can read.

use std::{
    env, fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

use super::Login;

/// The login at this address; none if there is none, or its file could be another user's.
pub(crate) fn read(server: &str) -> Option<Login> {
    let path = path(server, "json")?;
    let found = fs::symlink_metadata(&path).ok()?;
    let is_ours =
        found.is_file() && found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 == 0;
    let login: Login = serde_json::from_slice(&fs::read(&path).ok().filter(|_| is_ours)?).ok()?;
    Some(login).filter(|login| login.server == server)
}

/// Writes it at once: a reader sees the one before or this one.
pub(super) fn write(login: &Login) -> io::Result<()> {
    let path = made(&login.server, "json")?;
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = (|| {
        let mut file =
            fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(login)?)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    })();
    if written.is_err() && fs::remove_file(&beside).is_err() {
        // It was never made.
    }
    written
}

/// Removes it. Returns whether there was one.
///
/// # Errors
/// If it cannot be removed.
pub(crate) fn forget(server: &str) -> io::Result<bool> {
    let Some(path) = path(server, "json") else { return Ok(false) };
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Held by who renews the login, until it is dropped; blocks while another process has it.
pub(super) fn lock(server: &str) -> io::Result<fs::File> {
    let path = made(server, "lock")?;
    let file = fs::File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn made(server: &str, ending: &str) -> io::Result<PathBuf> {
    let path = path(server, ending)
        .ok_or_else(|| io::Error::other("there is no home directory; set XDG_DATA_HOME"))?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    Ok(path)
}

/// Below the folder of the store, which commands of agents cannot see.
fn path(server: &str, ending: &str) -> Option<PathBuf> {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let digest: String = Sha256::digest(server).iter().map(|byte| format!("{byte:02x}")).collect();
    Some(data.or_else(home)?.join("safepoint").join("logins").join(format!("{digest}.{ending}")))
}
