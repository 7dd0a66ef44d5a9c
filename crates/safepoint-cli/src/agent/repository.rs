//! What a change of a file below the root must not reach unasked: what git executes later, outside, for its user.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder of a repository.
const GIT: &str = ".git";

/// Whether the file that these arguments name, if they name one, lies in no repository's own folder: by its path, and by
/// where links lead to.
pub(super) fn leaves_alone(root: &Path, args: &Value) -> bool {
    let Some(path) = args.get("path").and_then(Value::as_str) else { return true };
    let path = root.join(path);
    let is_git = |path: &Path| path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(GIT));
    !is_git(&path) && !real(&path).is_some_and(|real| is_git(&real))
}

/// Where the part of it that is there really is.
fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|part| {
        let part = if part.as_os_str().is_empty() { Path::new(".") } else { part };
        part.canonicalize().ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S8.15
    #[test]
    fn what_git_executes_is_found_by_name_and_by_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("sub/.git/hooks")).unwrap();
        std::os::unix::fs::symlink(root.join("sub/.git"), root.join("link")).unwrap();
        for (path, is_free) in [
            ("src/main.rs", true),
            (".gitignore", true),
            (".git/hooks/pre-commit", false),
            ("sub/.GIT/config", false),
            ("link/hooks/pre-commit", false),
            ("link", false),
            ("new/deep/file", true),
        ] {
            assert_eq!(leaves_alone(root, &json!({ "path": path })), is_free, "{path}");
        }
        assert!(leaves_alone(root, &json!({"command": "git commit"})), "a command cannot write there");
    }
}
