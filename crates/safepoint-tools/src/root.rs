//! The directory that the file tools cannot leave: not by `..`, not by symbolic links, not by a rename at the wrong
//! moment.
//!
//! **Invariants** Every path is resolved by the kernel below the directory's descriptor. Where the kernel cannot do
//! that, each component is opened by itself and a symbolic link is refused: less is possible then, never more.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, statat},
    io::Errno,
};
use safepoint::{approval::Decision, stop::Failure};

use crate::limits;

/// A directory and everything below it.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    /// Whether the kernel keeps a path below the directory; else each component is opened by itself.
    has_openat2: bool,
    /// Held from the reading of a file to its replacement, so that of two edits at once neither is lost. Only by
    /// blocking tools, off the async threads. No other lock is taken under it. Commands, and other programs, do not
    /// take it.
    changes: Mutex<()>,
}

/// Why a directory cannot be a root.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the root directory {path:?}: {source}")]
pub struct RootError {
    path: PathBuf,
    source: io::Error,
}

impl Root {
    /// Opens a directory as a root.
    ///
    /// # Errors
    /// If it is not there, not a directory, or may not be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let open = || {
            let path = path.as_ref().canonicalize()?;
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let directory = openat(CWD, &path, flags, Mode::empty())?;
            let probe = openat2(&directory, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
            Ok(Self { directory, path, has_openat2: probe.is_ok(), changes: Mutex::default() })
        };
        open().map_err(|source| RootError { path: path.as_ref().to_owned(), source })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, as a tool's declaration names it.
    pub(crate) fn place(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// The right to change files; other agents on this root wait for it.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        // It guards no data, so nothing is half-done after a panic.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file to read it; anything that is not a regular file is refused before it is read.
    pub(crate) fn open_file(&self, path: &str) -> Result<File, Failure> {
        // A pipe without a writer would otherwise block the open without end.
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let file = File::from(fd);
        let kind = file.metadata().map_err(|error| fault("read", path, &error))?.file_type();
        if kind.is_file() {
            Ok(file)
        } else if kind.is_dir() {
            Err(refusal(format!("{path:?} is a directory; use list_dir")))
        } else {
            Err(refusal(format!("{path:?} is neither a file nor a directory, and is not read")))
        }
    }

    /// Opens a file to read it, if there is one.
    pub(crate) fn find_file(&self, path: &str) -> Result<Option<File>, Failure> {
        match self.resolve(self.relative(path)?, OFlags::PATH) {
            Err(Errno::NOENT) => Ok(None),
            Ok(_) | Err(_) => self.open_file(path).map(Some),
        }
    }

    /// Whether this path names a regular file below the directory, at this moment. The last part is not followed.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let found = self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW);
        let kind = found.and_then(fstat).map(|found| FileType::from_raw_mode(found.st_mode));
        kind == Ok(FileType::RegularFile)
    }

    /// Opens a directory.
    pub(crate) fn open_directory(&self, path: &str) -> Result<OwnedFd, Failure> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens what is there, for writing in place.
    pub(crate) fn open_existing(&self, path: &str) -> Result<File, Failure> {
        self.open_at(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    /// The directory that holds `path`, made with what is missing above it, and the name in it.
    pub(crate) fn parent_of<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a OsStr), Failure> {
        let relative = self.relative(path)?;
        let (Some(name), Some(parent)) = (relative.file_name(), relative.parent()) else {
            return Err(refusal(format!("{path:?} names no file")));
        };
        let mut made = PathBuf::new();
        for part in parent.components() {
            made.push(part);
            self.make_directory(&made).map_err(|error| self.explain("make the directory of", path, error))?;
        }
        let made = if made.as_os_str().is_empty() { Path::new(".") } else { &made };
        let directory = self.resolve(made, OFlags::RDONLY | OFlags::DIRECTORY);
        Ok((directory.map_err(|error| self.explain("open the directory of", path, error))?, name))
    }

    /// The path below the root. An absolute path is understood if it lies in it.
    pub(crate) fn relative<'a>(&self, path: &'a str) -> Result<&'a Path, Failure> {
        if path.is_empty() || path.contains('\0') {
            return Err(refusal("the path is empty or holds a NUL byte".to_owned()));
        }
        let path = Path::new(path);
        let relative = if path.is_absolute() {
            path.strip_prefix(&self.path).map_err(|_outside| self.outside(path))?
        } else {
            path
        };
        Ok(if relative.as_os_str().is_empty() { Path::new(".") } else { relative })
    }

    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Failure> {
        self.resolve(self.relative(path)?, flags).map_err(|error| self.explain("open", path, error))
    }

    /// Resolves below the directory.
    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        if !self.has_openat2 {
            return self.walk(path, flags);
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = limits::OPEN_TRIES;
        loop {
            match openat2(&self.directory, path, flags, Mode::empty(), how) {
                // Something was renamed while the kernel looked, so that it could not be sure.
                Err(Errno::AGAIN) if tries > 0 => tries -= 1,
                other => return other,
            }
        }
    }

    /// One component after the other, no links, never up.
    fn walk(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(&self.directory, ".", step, Mode::empty())?;
        let mut parts = path.components().filter(|part| *part != Component::CurDir).peekable();
        if parts.peek().is_none() {
            return openat(&at, ".", flags, Mode::empty());
        }
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(Errno::XDEV) };
            let last = parts.peek().is_none();
            let flags = if last { flags | OFlags::NOFOLLOW } else { step };
            at = openat(&at, name, flags, Mode::empty())?;
        }
        Ok(at)
    }

    fn make_directory(&self, path: &Path) -> Result<(), Errno> {
        match self.resolve(path, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = self.resolve(parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let name = path.file_name().ok_or(Errno::XDEV)?;
        match mkdirat(&directory, name, Mode::from_raw_mode(NEW_DIRECTORY)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn explain(&self, verb: &str, path: &str, error: Errno) -> Failure {
        match error {
            Errno::XDEV => self.outside(Path::new(path)),
            Errno::LOOP => {
                refusal(format!("cannot {verb} {path:?}: a symbolic link on the way is not followed"))
            }
            other => fault(verb, path, &other.into()),
        }
    }

    fn outside(&self, path: &Path) -> Failure {
        let root = self.path.display();
        refusal(format!("{path:?} lies outside {root}; use a path inside it, best a relative one"))
    }
}

const NEW_DIRECTORY: u32 = 0o777;

/// What kind of thing a name is, not following it.
pub(crate) fn kind_of(directory: impl AsFd, name: &OsStr) -> Option<FileType> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// A failure that changed nothing.
pub(crate) fn refusal(message: String) -> Failure {
    Failure::new(message).without_effect()
}

/// Why a decision does not allow what was asked for; none if it does. Nothing else can be done in its place.
pub(crate) fn why_not(decision: Decision, unchanged: &str) -> Option<String> {
    match decision {
        Decision::Approve | Decision::ApproveAlways { .. } => None,
        Decision::ApproveWith { .. } => Some(unchanged.to_owned()),
        Decision::Deny { message } if message.is_empty() => Some("denied".to_owned()),
        Decision::Deny { message } | Decision::Respond { result: message } => Some(message),
    }
}

/// A failure of the system that changed nothing, with what can be done about it.
pub(crate) fn fault(verb: &str, path: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; list_dir or search shows what is there",
        io::ErrorKind::NotADirectory => "; a part of the path is not a directory",
        _ => "",
    };
    refusal(format!("cannot {verb} {path:?}: {error}{hint}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn roots() -> (tempfile::TempDir, [Root; 2]) {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("in");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/file"), "inside").unwrap();
        std::fs::write(place.path().join("secret"), "outside").unwrap();
        symlink("/etc", inside.join("etc")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("../secret", inside.join("leak")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        let walk = Root { has_openat2: false, ..Root::open(&inside).unwrap() };
        (place, [Root::open(&inside).unwrap(), walk])
    }

    #[test]
    fn what_is_inside_opens_by_any_name() {
        let (_place, roots) = roots();
        for root in roots {
            let absolute = root.path().join("sub/file");
            for path in ["sub/file", "./sub/./file", absolute.to_str().unwrap()] {
                let read = std::io::read_to_string(root.open_file(path).unwrap()).unwrap();
                assert_eq!(read, "inside", "{path}");
            }
        }
    }

    #[test]
    fn no_way_leads_out() {
        let (_place, roots) = roots();
        for root in roots {
            for path in [
                "../secret",
                "sub/../../secret",
                "/etc/passwd",
                "etc/passwd",
                "up/secret",
                "leak",
                "loop",
                "sub/../../in/../secret",
                "/proc/self/root/etc/passwd",
                "",
                "a\0b",
            ] {
                let error = root.open_file(path).err().unwrap_or_else(|| panic!("{path:?} was opened"));
                assert!(error.had_no_effect(), "{error}");
                assert!(root.parent_of(&format!("{path}/new")).is_err(), "{path:?}");
            }
            for path in ["../new", "etc/new", "up/new", "sub/../../new", "/tmp/new", ".."] {
                assert!(root.parent_of(path).is_err(), "{path:?} leads out");
            }
        }
    }

    #[test]
    fn missing_directories_are_made_inside() {
        let (_place, roots) = roots();
        for (root, path) in roots.iter().zip(["a/b/c", "d/e/f"]) {
            let (_, name) = root.parent_of(path).unwrap();
            assert_eq!(name.len(), 1);
            assert!(root.path().join(path).parent().unwrap().is_dir());
        }
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let (_place, roots) = roots();
        for root in roots {
            let pipe = root.path().join("pipe");
            if kind_of(CWD, pipe.as_os_str()).is_none() {
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
            }
            assert!(root.open_file("pipe").unwrap_err().to_string().contains("neither a file"));
        }
    }
}
