//! Which files commonly hold secrets: reading one is asked about, as `read_file/secret`.

use std::{
    fs::File,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use safepoint::{ToolContext, ToolResult, tool::Asks};
use serde_json::json;

use crate::{
    Root,
    root::{refusal, why_not},
};

/// What commonly holds secrets, as lines of a `.gitignore`.
const USUAL: [&str; 41] = [
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.pem.*",
    "*.pem~",
    "*.key",
    "*.key.bak",
    "*.key~",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.tfstate",
    "*.tfstate.backup",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".kube/",
    ".docker/config.json",
    ".config/gcloud/",
    ".config/gh/",
    ".git/config",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    "credentials*",
    "secrets.*",
    "service-account*.json",
    "!*.pub",
];

/// The files that commonly hold secrets.
#[derive(Clone, Debug)]
pub struct SecretFiles(Gitignore);

/// A line that says nothing of files.
#[derive(Debug, thiserror::Error)]
#[error("`{line}` cannot be understood as a line of a .gitignore: {source}")]
pub struct WrongLine {
    line: String,
    source: ignore::Error,
}

impl Default for SecretFiles {
    fn default() -> Self {
        Self::and::<&str>(&[]).expect("the lines of this release can be read")
    }
}

impl SecretFiles {
    /// The usual ones and these, as lines of a `.gitignore`: `!NAME` takes out what was in.
    ///
    /// # Errors
    /// A line that cannot be understood.
    pub fn and<T: AsRef<str>>(lines: &[T]) -> Result<Self, WrongLine> {
        let mut builder = GitignoreBuilder::new("");
        let wrong = |line: &str| {
            let line = line.to_owned();
            move |source| WrongLine { line, source }
        };
        builder.case_insensitive(true).map_err(wrong("case"))?;
        for line in USUAL.into_iter().chain(lines.iter().map(AsRef::as_ref)) {
            builder.add_line(None, line).map_err(wrong(line))?;
        }
        builder.build().map(Self).map_err(wrong("all of them"))
    }

    /// Whether a file below the root is one, by its path.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path: PathBuf = path.components().filter(|part| part.as_os_str() != ".").collect();
        self.0.matched_path_or_any_parents(path, false).is_ignore()
    }

    /// Asks whether this open file may be read, if it is one: by the name that was given, or by the one that it has.
    ///
    /// # Errors
    /// The stop, or that it may not. Blocks until it is answered.
    pub(crate) fn ask(&self, cx: &ToolContext, root: &Root, (path, file): (&str, &File)) -> ToolResult<()> {
        let is_known = root.relative(path).is_ok_and(|given| self.holds(given));
        let real = real_path(root, file);
        if !is_known && !real.as_ref().is_some_and(|real| self.holds(real)) {
            return Ok(());
        }
        let name = real.map_or_else(|| path.to_owned(), |real| real.to_string_lossy().into_owned());
        let asking = cx.put(Asks::about("secret", json!({ "path": name })));
        // A thread of a tool that blocks may.
        let decision = tokio::runtime::Handle::current().block_on(asking)?;
        let Some(why) = why_not(decision, "another file cannot be read in its place") else { return Ok(()) };
        Err(refusal(format!("{path:?} commonly holds secrets and was not read: {why}")).into())
    }

    /// Whether an open file is one, by its path or by the name that it has.
    pub(crate) fn holds_open(&self, root: &Root, (path, file): (&str, &File)) -> bool {
        self.holds(Path::new(path)) || real_path(root, file).is_some_and(|real| self.holds(&real))
    }
}

/// The path below the root that the system has for an open file; none where it does not say it.
fn real_path(root: &Root, file: &File) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    path.strip_prefix(root.path()).ok().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.10
    #[test]
    fn what_commonly_holds_secrets_is_known_by_its_name() {
        let usual = SecretFiles::default();
        for (path, is_one) in [
            (".env", true),
            ("web/.env.local", true),
            ("./.ENV", true),
            (".env~", true),
            (".env-prod", true),
            (".env.example", false),
            ("id_ed25519.bak", true),
            ("server.key.bak", true),
            ("id_map.rs", false),
            ("deploy/server.pem", true),
            ("home/.ssh/config", true),
            ("keys/id_ed25519", true),
            ("keys/id_ed25519.pub", false),
            (".aws/credentials", true),
            ("credentials.json", true),
            ("src/main.rs", false),
            ("environment.md", false),
        ] {
            assert_eq!(usual.holds(Path::new(path)), is_one, "{path}");
        }
        let other = SecretFiles::and(&["*.vault", "!*.pem"]).unwrap();
        assert!(other.holds(Path::new("a.vault")) && !other.holds(Path::new("a.pem")));
        assert!(SecretFiles::and(&["[z-a]"]).unwrap_err().to_string().contains("`[z-a]`"));
    }
}
