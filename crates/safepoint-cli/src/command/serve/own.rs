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
    time::Duration,
};

use anyhow::Context as _;
use safepoint_server::{AccessScope, NewToken, Principal, TokenFile};
use tokio::time::{Instant, sleep};

use crate::control::{self, SERVED_AT};

/// Only the user may read it.
const OWN: u32 = 0o600;
/// The file that who reads or writes the token holds.
const LOCK: &str = "serve.lock";
/// How long a file may be another program's, and how often it is asked for.
const LOCKS: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(10);

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
    ///
    /// # Cancel safety
    /// There may be a new token.
    pub(super) async fn of(address: SocketAddr) -> anyhow::Result<Self> {
        let (folder, read) = (control::folder()?, own_file()?);
        let shown = folder.join(control::SERVE_TOKEN);
        let _held = locked(&folder.join(LOCK)).await?;
        if control::served(&folder)?.is_empty() || !shown.exists() || !read.exists() {
            removed(&read)?;
            let principal =
                Principal::new("local", [AccessScope::Read, AccessScope::Talk, AccessScope::Stop]);
            let token = TokenFile::new(&read).add(NewToken { principal, expires: None })?;
            write(&shown, &token)?;
        }
        let path = folder.join(format!("{SERVED_AT}{address}"));
        let held = HeldAddress { _locked: locked(&path).await?, path };
        Ok(Self { held, shown })
    }

    /// It serves no more. The token of the last one is gone with it.
    ///
    /// # Errors
    /// If the files cannot be removed.
    ///
    /// # Cancel safety
    /// The token may stay; it opens nothing.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        let folder = control::folder()?;
        let _held = locked(&folder.join(LOCK)).await?;
        removed(&self.held.path)?;
        if !control::served(&folder)?.is_empty() {
            return Ok(());
        }
        [self.shown, own_file()?].iter().try_for_each(|path| removed(path))
    }
}

/// What says that a server of this process serves at an address.
struct HeldAddress {
    _locked: fs::File,
    path: PathBuf,
}

/// A file that is locked until it is dropped. Others hold one for a moment, to look or to write.
async fn locked(path: &Path) -> anyhow::Result<fs::File> {
    let shown = path.display();
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(path);
    let file = file.with_context(|| format!("{shown} cannot be made"))?;
    let over = Instant::now() + LOCKS;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < over => sleep(AGAIN).await,
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be locked")),
        }
    }
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
