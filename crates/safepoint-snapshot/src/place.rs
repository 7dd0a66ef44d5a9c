//! The root of the files, which nothing leaves.
//!
//! **Invariants**: every directory on the way to a path is opened by itself, below the one before it, and a symbolic link is never
//! followed. So no path leads out of the root, whatever is renamed meanwhile.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, chmodat, fstat, openat, readlinkat, renameat, renameat_with,
};

use crate::{error::SnapshotError, tree};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The bits of a mode that are kept.
const PERMISSIONS: u32 = 0o7777;

/// The root of the files.
#[derive(Debug)]
pub(crate) struct RootPlace {
    root: OwnedFd,
    pub(crate) path: PathBuf,
}

impl RootPlace {
    pub(crate) fn open(path: &Path) -> Result<Self, SnapshotError> {
        let open = || {
            let path = path.canonicalize()?;
            let root = openat(CWD, &path, DIRECTORY, Mode::empty())?;
            Ok(Self { root, path })
        };
        open().map_err(SnapshotError::system(format!("cannot open the directory {}", path.display())))
    }

    /// The root itself.
    pub(crate) fn top(&self) -> rustix::io::Result<OwnedFd> {
        openat(&self.root, ".", DIRECTORY, Mode::empty())
    }

    /// The directory that a path is in.
    pub(crate) fn parent(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let mut at = self.top()?;
        for part in tree::parent(path).iter().flat_map(|path| path.split(|byte| *byte == b'/')) {
            at = directory(&at, OsStr::from_bytes(part))?;
        }
        Ok(at)
    }
}

/// Opens a directory in another one.
pub(crate) fn directory(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(parent, name, DIRECTORY, Mode::empty())
}

pub(crate) fn permissions(mode: u32) -> u32 {
    mode & PERMISSIONS
}

/// Reads a regular file, and at most one byte more than `most`. Anything else is not waited for.
pub(crate) fn read(parent: impl AsFd, name: &OsStr, most: u64) -> io::Result<(Vec<u8>, rustix::fs::Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(parent, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file any more"));
    }
    let mut content = Vec::new();
    (&file).take(most.saturating_add(1)).read_to_end(&mut content)?;
    Ok((content, fstat(&file)?))
}

pub(crate) fn link_target(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<Vec<u8>> {
    Ok(readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// Gives a file or a directory these permissions; a symbolic link has none, and is not followed.
pub(crate) fn set_permissions(parent: impl AsFd, name: &OsStr, mode: u32) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(parent, name, flags, Mode::empty())?;
    // By its descriptor: the name may lead elsewhere by now. One of a link gives no way through.
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    chmodat(CWD, path, Mode::from_raw_mode(permissions(mode)), AtFlags::empty())
}

/// Gives a file another name in its directory, if none has it.
pub(crate) fn rename_new(parent: impl AsFd, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    let parent = parent.as_fd();
    match renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        // The file system cannot do it in one step.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            match rustix::fs::statat(parent, to, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => renameat(parent, from, parent, to),
                Ok(_) => Err(rustix::io::Errno::EXIST),
                Err(error) => Err(error),
            }
        }
        renamed => renamed,
    }
}

/// What a name and another one in a directory stand for, the other way round. No other process sees either missing.
pub(crate) fn exchange(parent: impl AsFd, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    let parent = parent.as_fd();
    renameat_with(parent, one, parent, other, RenameFlags::EXCHANGE)
}
