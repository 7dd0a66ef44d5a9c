//! Which settings files of projects a person has agreed to: their bytes, by digest.
//!
//! **Invariants**: consent holds for exactly these bytes of the file at this path; a change of one byte needs it anew.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

/// What a person decided about a file, if they did. Exhaustive: yes, no, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Refused,
    NotAsked,
}

/// The digest of a file at a path.
pub(crate) fn digest(path: &Path, bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(bytes);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was decided about these bytes.
pub(crate) fn consent(digest: &str) -> Consent {
    let Some(text) = file().and_then(|path| fs::read_to_string(path).ok()) else { return Consent::NotAsked };
    let said = text.lines().rev().find_map(|line| line.strip_suffix(digest));
    match said {
        Some("yes ") => Consent::Given,
        Some("no ") => Consent::Refused,
        _ => Consent::NotAsked,
    }
}

/// Keeps the answer; the last one holds.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn keep(digest: &str, consent: Consent) -> io::Result<()> {
    use std::{
        io::Write as _,
        os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    };
    let path = file().ok_or_else(|| io::Error::other("there is no home directory; set XDG_STATE_HOME"))?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let said = match consent {
        Consent::Given => "yes",
        Consent::Refused => "no",
        Consent::NotAsked => return Ok(()),
    };
    let mut file = fs::File::options().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{said} {digest}\n").as_bytes())
}

/// `$XDG_STATE_HOME/safepoint/projects`, or the same under `~/.local/state`.
fn file() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("safepoint").join("projects"))
}
