//! The token of the user who serves: one for all servers of this user here.
//!
//! **Invariants**: the token goes to servers that live alone; while one lives, its token stays as it is; it answers no question,
//! because an agent's own commands could read it.

use std::{
    fs, io,
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use safepoint_server::{AccessScope, NewToken, Principal, TokenFile};

use crate::control::{self, SERVED_AT};

/// Only the user may read it.
const OWN: u32 = 0o600;
/// A server's part in the token.
pub(super) struct OwnToken {
    held: HeldAddress,
    /// The file with the token.
    pub(super) shown: PathBuf,
}

/// The file that a server reads the token of its user from.
///
/// # Errors
/// If there is no folder for it.
pub(super) fn own_file() -> anyhow::Result<PathBuf> {
    Ok(control::folder()?.join("serve.tokens.toml"))
}

impl OwnToken {
    /// Of the server that listens at this address. Its token is that of the others that live, else a new one.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub(super) fn of(address: SocketAddr) -> anyhow::Result<Self> {
        let (folder, read) = (control::folder()?, own_file()?);
        let shown = folder.join(control::SERVE_TOKEN);
        let _held = held(&folder)?;
        if control::served(&folder)?.is_empty() || !shown.exists() || !read.exists() {
            removed(&read)?;
            let principal =
                Principal::new("local", [AccessScope::Read, AccessScope::Talk, AccessScope::Stop]);
            let token = TokenFile::new(&read).add(NewToken { principal, expires: None })?;
            write(&shown, &token)?;
        }
        let held = HeldAddress::hold(&folder, address)
            .with_context(|| format!("it cannot be said in {} who serves", folder.display()))?;
        Ok(Self { held, shown })
    }

    /// It serves no more. The token of the last one is gone with it.
    ///
    /// # Errors
    /// If the files cannot be removed.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let folder = control::folder()?;
        let _held = held(&folder)?;
        self.held.end()?;
        if !control::served(&folder)?.is_empty() {
            return Ok(());
        }
        [self.shown, own_file()?].iter().try_for_each(|path| removed(path))
    }
}

/// A server's file, held.
struct HeldAddress {
    _locked: fs::File,
    path: PathBuf,
}

impl HeldAddress {
    /// Says that a server of this process serves at this address.
    ///
    /// # Errors
    /// If the file cannot be made.
    fn hold(folder: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = folder.join(format!("{SERVED_AT}{address}"));
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(&path)?;
        // Waits for a look alone: the address is this process's.
        file.lock()?;
        Ok(Self { _locked: file, path })
    }

    /// Says that it serves no more.
    ///
    /// # Errors
    /// If the file cannot be removed.
    fn end(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Holds the files against other servers, until it is dropped.
fn held(folder: &Path) -> anyhow::Result<fs::File> {
    let path = folder.join("serve.lock");
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(&path)?;
    file.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

fn removed(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", path.display()))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(OWN).open(path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
}
