//! What a conversation is about: the repository, or the directory, that it was begun in.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The root of the repository that a directory is in, without symbolic links; the directory itself if it is in none.
pub(crate) fn root_of(directory: &Path) -> PathBuf {
    let real = directory.canonicalize().unwrap_or_else(|_gone| directory.to_owned());
    let root = real.ancestors().find(|part| part.join(".git").exists() && !is_shared(part));
    root.map(Path::to_owned).unwrap_or(real)
}

/// Whether this is a place where anybody may put a file, such as `/tmp`: it can be written by all, each with files of their own. A
/// `.git` there says nothing of the folders beside it.
fn is_shared(directory: &Path) -> bool {
    /// Written by all; and who may remove a file is its owner.
    const SHARED: u32 = 0o1002;
    directory.metadata().is_ok_and(|found| found.mode() & SHARED == SHARED)
}

/// The project of the current directory, or of the one that was named.
///
/// # Errors
/// If the working directory cannot be used.
pub(crate) fn here(named: Option<&Path>) -> std::io::Result<PathBuf> {
    Ok(match named {
        Some(named) => root_of(named),
        None => root_of(&std::env::current_dir()?),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// S7.40
    #[test]
    fn the_project_of_a_directory_is_the_root_of_its_repository() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let deep = real.join("repository/src/deep");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(root_of(&deep), deep, "it is in none");
        // As in a worktree, where it is a file.
        std::fs::write(real.join("repository/.git"), "gitdir: elsewhere").unwrap();
        std::os::unix::fs::symlink(&deep, real.join("link")).unwrap();
        for directory in [deep, real.join("link"), real.join("repository")] {
            assert_eq!(root_of(&directory), real.join("repository"));
        }
    }

    /// S7.40: a `.git` that was put into `/tmp` makes no project of what others have there.
    #[test]
    fn a_folder_where_anybody_may_put_a_file_is_no_repository() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let own = real.join("own");
        for folder in [&own, &real.join(".git")] {
            std::fs::create_dir(folder).unwrap();
        }
        assert_eq!(root_of(&own), real);
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(root_of(&own), own);
    }
}
