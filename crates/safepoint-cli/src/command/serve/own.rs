//! The token of the user who serves: one for all servers of this user here, and the list of their addresses beside it.
//!
//! **Invariants**: the token goes to an address on the list alone; while a server on the list lives, its token stays as it is; it
//! answers no question, because an agent's own commands could read it.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use safepoint_server::{AccessScope, NewToken, Principal, TokenFile};

use crate::control;

/// Only the user may read it.
const OWN: u32 = 0o600;
/// How long another server on this machine may take to be connected to.
const CONNECTS: Duration = Duration::from_millis(500);

/// A server's place on the list.
pub(super) struct OwnToken {
    address: SocketAddr,
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
    /// Puts the server that listens at this address on the list. Its token is that of the others that live, else a new one.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub(super) fn of(address: SocketAddr) -> anyhow::Result<Self> {
        let (folder, read) = (control::folder()?, own_file()?);
        let (shown, list) = (folder.join(control::SERVE_TOKEN), folder.join(control::SERVE_ADDRESSES));
        let _held = held(&folder)?;
        let mut addresses = listed(&list)?;
        // This one listens there now, so a server that was on the list with it is gone.
        addresses.retain(|other| *other != address && TcpStream::connect_timeout(other, CONNECTS).is_ok());
        if addresses.is_empty() || !shown.exists() || !read.exists() {
            removed(&read)?;
            let principal =
                Principal::new("local", [AccessScope::Read, AccessScope::Talk, AccessScope::Stop]);
            let token = TokenFile::new(&read).add(NewToken { principal, expires: None })?;
            write(&shown, &token)?;
        }
        addresses.insert(address);
        write(&list, &lines(&addresses))?;
        Ok(Self { address, shown })
    }

    /// Takes it off the list. The token of the last one is gone with it.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        let folder = control::folder()?;
        let list = folder.join(control::SERVE_ADDRESSES);
        let _held = held(&folder)?;
        let mut addresses = listed(&list)?;
        addresses.remove(&self.address);
        if !addresses.is_empty() {
            return write(&list, &lines(&addresses));
        }
        [&self.shown, &list, &own_file()?].into_iter().try_for_each(|path| removed(path))
    }
}

/// Holds the files against other servers, until it is dropped.
fn held(folder: &Path) -> anyhow::Result<fs::File> {
    let path = folder.join("serve.lock");
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(&path)?;
    file.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

fn listed(list: &Path) -> anyhow::Result<BTreeSet<SocketAddr>> {
    let text = match fs::read_to_string(list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("{} cannot be read", list.display()))?,
    };
    Ok(control::served_addresses(&text).collect())
}

fn lines(addresses: &BTreeSet<SocketAddr>) -> String {
    addresses.iter().map(|address| format!("{address}\n")).collect()
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
