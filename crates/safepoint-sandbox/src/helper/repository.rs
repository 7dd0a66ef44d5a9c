//! The repository of a root: what git runs of it later, outside, with the rights of its user, is not a command's to change.

use std::{fs, io, path::Path};

use super::{Failed, at, namespaces};

/// What git executes, or takes the names of programs from.
const EXECUTED: [&str; 2] = ["hooks", "config"];

/// Protects the hooks and the configuration of the repository whose working tree this is, if it is one.
pub(super) fn protect(root: &Path) -> Result<(), Failed> {
    let git = root.join(".git");
    let found = match fs::symlink_metadata(&git) {
        Ok(found) => found,
        Err(error) if is_none(&error) => return Ok(()),
        Err(error) => return Err(at("look at", &git)(error)),
    };
    if found.is_symlink() {
        let why = "is a symbolic link, so the hooks of git cannot be protected";
        return Err(Failed(format!("{} {why}", git.display())));
    }
    if !found.is_dir() {
        // It only says where the repository is: that must stay what it says.
        return namespaces::protect(&git);
    }
    let hooks = git.join("hooks");
    match fs::create_dir(&hooks) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at("make", &hooks)(error)),
        _ => {}
    }
    // A link among them could be replaced by another one: then all of it is protected.
    let is_plain = |name: &&str| fs::symlink_metadata(git.join(name)).is_ok_and(|found| !found.is_symlink());
    if !EXECUTED.iter().all(is_plain) {
        return namespaces::protect(&git);
    }
    // Held in its place, or it could be moved away with what is protected in it, and another one put there.
    namespaces::hold(&git)?;
    EXECUTED.iter().try_for_each(|name| namespaces::protect(&git.join(name)))
}

fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
