//! Looks at every file under a root: by its stamp alone where that says that it is unchanged.
//!
//! **Invariants**
//! - Only what was opened below the root's descriptor is read, and no symbolic link is followed.
//! - A path that is there is in the tree: as an entry, or by the reason why it, or a directory above it, was not taken.
//! - The content of every file in the tree is stored, unless this only looks.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Stat, statat},
    io::Errno,
};

use crate::{
    blobs::Blobs,
    content::Hash,
    error::SnapshotError,
    ignored::{self, Rules},
    limits::SnapshotLimits,
    place::{self, RootPlace},
    snapshot::NotTaken,
    tree::{Entry, NodeKind, RelPath, Stamp, Tree, join},
};

/// How the names begin that a restore gives to files for a moment.
pub(crate) const PASSING: &str = ".safepoint-restore-";

/// A file that changed so shortly before may change again and keep its times: the clock of files is coarse.
const COARSE: Duration = Duration::from_millis(50);

/// Deeper directories are not taken: each holds a descriptor open.
const DEPTH: usize = 200;

/// What a walk is made with.
pub(crate) struct Walk<'w> {
    pub(crate) place: &'w RootPlace,
    pub(crate) limits: &'w SnapshotLimits,
    /// What is never taken: paths, and the folder of snapshots by device and inode.
    pub(crate) excluded: (&'w BTreeSet<RelPath>, (u64, u64)),
    /// The last tree, by which unchanged files are known. What it has stays taken if git ignores it by now.
    pub(crate) last: &'w Tree,
    /// Another tree of which that holds.
    pub(crate) tracked: Option<&'w Tree>,
    /// Files that are taken whatever their size.
    pub(crate) wanted: &'w BTreeSet<RelPath>,
    /// Where contents are stored; none to look alone.
    pub(crate) blobs: Option<Blobs<'w>>,
}

struct Walking<'w> {
    with: &'w Walk<'w>,
    /// In nanoseconds since 1970.
    trusted_before: i128,
    bytes: u64,
    tree: Tree,
}

/// A directory on the way.
struct At<'a> {
    directory: &'a OwnedFd,
    path: &'a [u8],
    rules: &'a Rules<'a>,
    /// Git ignores it: only what is tracked in it is taken.
    is_ignored: bool,
    depth: usize,
}

impl Walk<'_> {
    pub(crate) fn tree(&self) -> Result<Tree, SnapshotError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let trusted_before = i128::try_from(now.saturating_sub(COARSE).as_nanos()).unwrap_or(i128::MAX);
        let mut walking = Walking { with: self, trusted_before, bytes: 0, tree: Tree::default() };
        let failed = SnapshotError::system(format!("cannot read {}", self.place.path.display()));
        let read = self.place.top().and_then(|top| Ok((names(&top)?, top)));
        let (names, top) = read.map_err(|error| failed(error.into()))?;
        walking.directory((&top, names), b"", None, (false, 0))?;
        Ok(walking.tree)
    }
}

impl Walking<'_> {
    fn directory(
        &mut self,
        (directory, names): (&OwnedFd, Vec<OsString>),
        path: &[u8],
        above: Option<&Rules<'_>>,
        (is_ignored, depth): (bool, usize),
    ) -> Result<(), SnapshotError> {
        let has_rules = names.iter().any(|name| name == ignored::FILE);
        let rules = Rules::of(above, directory, path, has_rules);
        let at = At { directory, path, rules: &rules, is_ignored, depth };
        for name in names {
            self.name(&at, &name)?;
            if self.tree.entries.len() + self.tree.passed.len() > self.with.limits.files {
                return Err(SnapshotError::too_many(self.with.limits.files));
            }
        }
        Ok(())
    }

    fn name(&mut self, at: &At<'_>, name: &OsStr) -> Result<(), SnapshotError> {
        let path = join(at.path, name.as_bytes());
        let stat = match statat(at.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => return self.pass(path, NotTaken::Unreadable),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_directory = kind == FileType::Directory;
        if let Some(why) = self.excluded(&path, name, &stat) {
            return self.pass(path, why);
        }
        // What the last tree has stays taken, whatever the rules say by now: most files need not be matched.
        let is_known = !is_directory && self.with.last.entries.contains_key(&path);
        let is_ignored = at.is_ignored || !is_known && at.rules.ignores(&path, is_directory);
        if is_ignored && !self.is_tracked(&path) {
            return self.pass(path, NotTaken::Ignored);
        }
        match kind {
            FileType::Directory => self.enter(at, (path, name), &stat, is_ignored),
            FileType::RegularFile => self.file(at, (path, name), &stat),
            FileType::Symlink => {
                let Ok(target) = place::link_target(at.directory, name) else {
                    return self.pass(path, NotTaken::Unreadable);
                };
                self.add(path, NodeKind::Link { target }, None);
                Ok(())
            }
            _ => self.pass(path, NotTaken::Special),
        }
    }

    fn excluded(&self, path: &RelPath, name: &OsStr, stat: &Stat) -> Option<NotTaken> {
        let (paths, folder) = self.with.excluded;
        if name == ".git" || paths.contains(path) || (stat.st_dev, stat.st_ino) == folder {
            return Some(NotTaken::Excluded);
        }
        name.as_bytes().starts_with(PASSING.as_bytes()).then_some(NotTaken::Restoring)
    }

    fn is_tracked(&self, path: &[u8]) -> bool {
        self.with.last.reaches(path) || self.with.tracked.is_some_and(|tree| tree.reaches(path))
    }

    fn enter(
        &mut self,
        at: &At<'_>,
        (path, name): (RelPath, &OsStr),
        stat: &Stat,
        is_ignored: bool,
    ) -> Result<(), SnapshotError> {
        let opened = place::directory(at.directory, name).and_then(|inner| Ok((names(&inner)?, inner)));
        let Ok((names, inner)) = opened else { return self.pass(path, NotTaken::Unreadable) };
        if at.depth >= DEPTH {
            return self.pass(path, NotTaken::Unreadable);
        }
        self.add(path.clone(), NodeKind::Directory { mode: place::permissions(stat.st_mode) }, None);
        self.directory((&inner, names), &path, Some(at.rules), (is_ignored, at.depth + 1))
    }

    fn file(
        &mut self,
        at: &At<'_>,
        (path, name): (RelPath, &OsStr),
        stat: &Stat,
    ) -> Result<(), SnapshotError> {
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        let is_wanted = self.with.wanted.contains(&path);
        if let Some(why) = self.too_much(size).filter(|_| !is_wanted) {
            return self.pass(path, why);
        }
        let mode = place::permissions(stat.st_mode);
        if let Some((hash, stamp)) = self.unchanged(&path, stat) {
            self.bytes += size;
            self.add(path, NodeKind::File { mode, size, hash }, Some(stamp));
            return Ok(());
        }
        let most = if is_wanted { u64::MAX } else { self.with.limits.file_bytes };
        let Ok((content, after)) = place::read(at.directory, name, most) else {
            return self.pass(path, NotTaken::Unreadable);
        };
        let size = content.len() as u64;
        if let Some(why) = self.too_much(size).filter(|_| !is_wanted) {
            return self.pass(path, why);
        }
        let hash = match self.with.blobs {
            Some(blobs) => blobs.keep(&content)?,
            None => Hash::of(&content),
        };
        self.bytes += size;
        // What was written while it was read is seen the next time.
        let stamp = stamp_of(stat);
        let is_whole = stamp == stamp_of(&after) && stat.st_size == after.st_size;
        let is_old = stamp.changed < self.trusted_before && stamp.modified < self.trusted_before;
        self.add(path, NodeKind::File { mode, size, hash }, (is_whole && is_old).then_some(stamp));
        Ok(())
    }

    fn too_much(&self, size: u64) -> Option<NotTaken> {
        let limits = self.with.limits;
        if size > limits.file_bytes {
            return Some(NotTaken::TooLarge);
        }
        (self.bytes + size > limits.snapshot_bytes).then_some(NotTaken::NoRoom)
    }

    /// The content of the file by the last tree, if its stamp is the same.
    fn unchanged(&self, path: &[u8], stat: &Stat) -> Option<(Hash, Stamp)> {
        let entry = self.with.last.entries.get(path)?;
        let NodeKind::File { size, hash, .. } = &entry.kind else { return None };
        let stamp = entry.stamp.filter(|stamp| *stamp == stamp_of(stat))?;
        (u64::try_from(stat.st_size) == Ok(*size)).then_some((*hash, stamp))
    }

    fn add(&mut self, path: RelPath, kind: NodeKind, stamp: Option<Stamp>) {
        self.tree.entries.insert(path, Entry { kind, stamp });
    }

    /// Names it as not taken; the walk goes further.
    fn pass(&mut self, path: RelPath, why: NotTaken) -> Result<(), SnapshotError> {
        self.tree.passed.insert(path, why);
        Ok(())
    }
}

fn stamp_of(stat: &Stat) -> Stamp {
    const SECOND: i128 = 1_000_000_000;
    let nanos = |seconds: i128, nanos: i128| seconds * SECOND + nanos;
    Stamp {
        inode: stat.st_ino,
        modified: nanos(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        changed: nanos(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
    }
}

/// The names in a directory, in order: so that the limit of a snapshot leaves out the same files each time.
fn names(directory: impl AsFd) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The permissions and the kind of a file that a restore looks at again.
pub(crate) fn kind_at(directory: impl AsFd, name: &OsStr, most: u64) -> std::io::Result<NodeKind> {
    let directory = directory.as_fd();
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = place::permissions(stat.st_mode);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => NodeKind::Directory { mode },
        FileType::Symlink => NodeKind::Link { target: place::link_target(directory, name)? },
        _ => {
            let (content, stat) = place::read(directory, name, most)?;
            let mode = place::permissions(stat.st_mode);
            NodeKind::File { mode, size: content.len() as u64, hash: Hash::of(&content) }
        }
    })
}
