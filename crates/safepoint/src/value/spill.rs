//! Files for what is too large to be kept elsewhere, which only their owner can see or replace (S4.16).
//!
//! **Invariants** Nothing is written below a folder that another user has made, may enter, or could have guessed: the
//! folder has a random name of this process, and each file is a new one.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use safepoint_model::raw::ids::unique;

/// A new, empty file below `directory`, in a folder of this process. It stays when the process ends.
///
/// # Errors
/// The system's error; or the folder does not belong to this user alone, for example because another user put
/// one in its place.
pub fn private_file(directory: &Path) -> io::Result<(File, PathBuf)> {
    let folder = directory.join(folder());
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let path = folder.join(format!("output-{}.txt", unique().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    #[cfg(unix)]
    if let Err(error) = check(&folder, &file) {
        drop(fs::remove_file(&path));
        return Err(error);
    }
    Ok((file, path))
}

/// The same for all files of this process, and for no other.
fn folder() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("safepoint-output-{}", unique().simple()))
}

/// The file is ours, because this process created it. If the folder has the same owner, so is the folder.
#[cfg(unix)]
fn check(folder: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    const OTHERS: u32 = 0o077;
    let (found, owner) = (fs::symlink_metadata(folder)?, file.metadata()?.uid());
    if found.is_dir() && found.uid() == owner && found.mode() & OTHERS == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is not ours alone", folder.display())))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    /// S4.16
    #[test]
    fn a_file_and_its_folder_are_for_their_owner_alone() {
        let place = tempfile::tempdir().expect("there is a place");
        let (_, path) = private_file(place.path()).expect("it is made");
        assert_eq!((mode(&path), mode(path.parent().expect("it is in a folder"))), (0o600, 0o700));
        let (_, other) = private_file(place.path()).expect("and another one");
        assert_ne!(path, other);
    }

    /// S4.16: a folder that another has made for us, or left open, is not used, and nothing is left in it.
    #[test]
    fn a_folder_that_is_not_ours_alone_is_not_used() {
        let place = tempfile::tempdir().expect("there is a place");
        let trap = place.path().join(folder());
        fs::create_dir(&trap).expect("it is made");
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o777)).expect("it is opened");
        let error = private_file(place.path()).expect_err("others can write there");
        assert!(error.to_string().contains("is not ours alone"), "{error}");
        assert_eq!(fs::read_dir(&trap).expect("it is there").count(), 0);
        fs::remove_dir(&trap).expect("it is empty");
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("it is made");
        std::os::unix::fs::symlink(&elsewhere, &trap).expect("it is a link");
        private_file(place.path()).expect_err("a link leads elsewhere");
        assert_eq!(fs::read_dir(&elsewhere).expect("it is there").count(), 0);
    }
}
