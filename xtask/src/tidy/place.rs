//! What may lie in the repository: no large binaries, and at the root only what is named here.

use std::fs;

use super::Fault;
use crate::source;

/// The largest file that is not text, in bytes: a picture fits, what a tool downloaded does not.
const BINARY: u64 = 200 << 10;

/// What lies at the root. A new name here is a decision.
const ROOT: &[&str] = &[
    ".cargo",
    ".ci",
    ".config",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "clippy.toml",
    "crates",
    "deny.toml",
    "docs",
    "examples",
    "fuzz",
    "rustfmt.toml",
    "typos.toml",
    "xtask",
];

/// A file as it lies there.
struct Lying {
    path: String,
    bytes: u64,
    is_text: bool,
}

/// The faults of every file of the project, by path.
///
/// # Errors
/// If git cannot list the files.
pub(super) fn faults() -> anyhow::Result<Vec<(String, Fault)>> {
    let root = source::root();
    let lying = source::paths()?.into_iter().filter_map(|path| {
        // What was deleted and not yet committed lies nowhere.
        let read = fs::read(root.join(&path)).ok()?;
        Some(Lying { bytes: read.len() as u64, is_text: std::str::from_utf8(&read).is_ok(), path })
    });
    Ok(lying.filter_map(|file| fault(&file).map(|fault| (file.path, fault))).collect())
}

fn fault(file: &Lying) -> Option<Fault> {
    let top = file.path.split('/').next().unwrap_or_default();
    if !ROOT.contains(&top) {
        return Some(Fault::new(
            1,
            format!("`{top}` does not belong at the root: move it, or name it in `ROOT`"),
        ));
    }
    (!file.is_text && file.bytes > BINARY).then(|| {
        let size = file.bytes >> 10;
        Fault::new(1, format!("a binary of {size} KiB, at most {}: install it by name instead", BINARY >> 10))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fault(path: &str, bytes: u64, is_text: bool) -> bool {
        fault(&Lying { path: path.into(), bytes, is_text }).is_some()
    }

    #[test]
    fn downloads_and_strangers_are_refused() {
        assert!(is_fault("greenlet-3.5.6-cp311.whl", 1, false), "a file at the root that no list names");
        assert!(is_fault("docs/pictures/browser.bin", BINARY + 1, false));
        assert!(!is_fault("docs/pictures/busy.png", BINARY, false));
        assert!(!is_fault("Cargo.lock", BINARY + 1, true));
    }
}
