//! Where the sockets are: a directory that only its owner can enter, one socket for each session that runs.
//!
//! **Invariants**: a directory that another user could write to is not used.

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
/// If the directory cannot be created, or another user could write to it.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    // One that is not there, as after `su`, is not made: its place is the system's to choose.
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| Path::new(folder).is_dir());
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

/// Opens the socket of a session. One that was left behind is replaced.
///
/// # Errors
/// If it cannot be opened, or another process has it open.
pub(super) async fn bind(session: &str) -> anyhow::Result<(UnixListener, PathBuf)> {
    let path = folder()?.join(format!("{}{ENDING}", name(session)));
    let shown = path.display();
    let is_short = path.as_os_str().len() <= LONGEST_PATH;
    anyhow::ensure!(is_short, "{shown} is too long for a socket: set XDG_RUNTIME_DIR to a shorter one");
    if path.exists() {
        let other = connect(&path).await;
        anyhow::ensure!(other.is_none(), "another process has {shown} open");
    }
    let listener = listen(&path).with_context(|| format!("{shown} cannot be opened"))?;
    Ok((listener, path))
}

/// Listens there. The socket has its name only once it listens and is its user's alone: who connects to one that does not
/// listen takes it for one that was left behind.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let passing = path.with_file_name(format!(".{}", std::process::id()));
    if let Err(error) = fs::remove_file(&passing)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let listener = UnixListener::bind(&passing)?;
    fs::set_permissions(&passing, Permissions::from_mode(0o600))?;
    fs::rename(&passing, path)?;
    Ok(listener)
}

/// A session's id as the name of a file, whatever is in it.
fn name(session: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let written =
        |byte: u8| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    session.bytes().map(written).collect()
}

/// The id whose name this is; none if it is no session's.
fn id(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
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
            Some((id(name.strip_suffix(ENDING)?)?, entry.path()))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Connects. Removes a socket without a listener.
pub(super) async fn connect(path: &Path) -> Option<UnixStream> {
    match UnixStream::connect(path).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused && fs::remove_file(path).is_err() {
                // Another process removed it.
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.6: who lists the sessions while one begins does not take its socket away.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_socket_that_has_its_name_listens() {
        const TIMES: usize = 300;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.sock");
        let looked_at = path.clone();
        let looking = tokio::spawn(async move {
            loop {
                drop(connect(&looked_at).await);
                tokio::task::yield_now().await;
            }
        });
        for time in 0..TIMES {
            let listener = listen(&path).unwrap();
            tokio::task::yield_now().await;
            assert!(path.exists(), "the socket is gone at the {time}th try");
            fs::remove_file(&path).unwrap();
            drop(listener);
        }
        looking.abort();
    }

    #[test]
    fn any_id_has_a_name_of_its_own_that_leads_nowhere_else() {
        for session in ["ses_01a", "../../x", "a b%2f", "grüße", "."] {
            let named = name(session);
            assert!(!named.contains(['/', '.', ' ']), "{named}");
            assert_eq!(id(&named).as_deref(), Some(session));
        }
        assert_eq!(id("a%zz"), None);
        assert_eq!(id("a%2"), None);
    }
}
