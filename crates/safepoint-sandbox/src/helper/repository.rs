//! The repository of a root: git runs hooks and programs of its configuration later, outside, with the rights of its user.
//!
//! All of it is protected, not its hooks alone: by a file `commondir` git takes both from elsewhere.

use std::fs;

use super::{Failed, at, namespaces};
use crate::plan::Plan;

/// Protects the repository of each root, if it has one and it was not named as what may be written.
pub(super) fn protect(plan: &Plan) -> Result<(), Failed> {
    for root in &plan.write {
        let git = root.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(_) if plan.write.contains(&git) => {}
            Ok(found) if found.is_symlink() => {
                let why = "is a symbolic link, which cannot be protected: allow commands to write it, or do without it";
                return Err(Failed(format!("{} {why}", git.display())));
            }
            Ok(_) => namespaces::protect(&git)?,
            Err(error) if is_none(&error) => {}
            Err(error) => return Err(at("look at", &git)(error)),
        }
    }
    Ok(())
}

fn is_none(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
