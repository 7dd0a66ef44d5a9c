//! What may lie at the root of the repository: only what is named here.

use super::Fault;
use crate::source;

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
    "tests",
    "typos.toml",
    "xtask",
];

/// The faults of every file of the project, by path.
///
/// # Errors
/// If git cannot list the files.
pub(super) fn faults() -> anyhow::Result<Vec<(String, Fault)>> {
    // A file that was deleted and not yet committed is no longer there.
    let root = source::root();
    let paths = source::paths()?.into_iter().filter(|path| root.join(path).exists());
    Ok(paths.filter_map(|path| fault(&path).map(|fault| (path, fault))).collect())
}

fn fault(path: &str) -> Option<Fault> {
    let top = path.split('/').next().unwrap_or_default();
    let what = || format!("`{top}` does not belong at the root: move it, or name it in `ROOT`");
    (!ROOT.contains(&top)).then(|| Fault::new(1, what()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_at_the_root_are_refused() {
        assert!(fault("greenlet-3.5.6-cp311.whl").is_some());
        assert!(fault("docs/pictures/busy.png").is_none());
    }
}
