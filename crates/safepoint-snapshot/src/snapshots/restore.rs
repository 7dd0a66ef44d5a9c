//! A restore: what a plan says, without losing what is there.
//!
//! **Invariants**
//! - What a restore takes away is in the snapshot before it, on the disk, before anything is changed.
//! - A file that changed after the plan was made is put back as it was found.
//! - A restore that was cut off is finished, or undone, by another one.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    io::Write as _,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, symlinkat, unlinkat},
    io::Errno,
};

use crate::{
    error::SnapshotError,
    place::{exchange, rename_new, set_permissions},
    snapshot::{NotTaken, Snapshot},
    snapshots::{
        Snapshots,
        plan::{KeptBack, NEW_DIRECTORY, PathChange, PlannedChange, RestorePlan, WhyKept, change_of},
    },
    tree::{NodeKind, RelPath, Seen, Tree, name_of, shown},
    walk::{PASSING, kind_at},
};

/// What a restore came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The snapshot of what was there before it: a plan that leads to it undoes the restore.
    pub before: Snapshot,
    /// The snapshot of what was there after it.
    pub after: Snapshot,
    /// What was done, by path.
    pub changes: Vec<PlannedChange>,
    /// What was left as it is, by path.
    pub kept_back: Vec<KeptBack>,
}

struct Restoring<'r> {
    snapshots: &'r Snapshots,
    plan: &'r RestorePlan,
    before: &'r Tree,
    /// The name of each file that passes through.
    passing: OsString,
    changed: BTreeSet<RelPath>,
    kept: Vec<(RelPath, WhyKept)>,
}

/// Why one path is left. Exhaustive: it changed, or something failed.
enum Refusal {
    Changed,
    Failed(String),
}

/// What is left under the passing name. Exhaustive: nothing, or a content that is stored.
enum UnderPassing {
    Nothing,
    Content,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            // What was looked at is not there any more, or something else is.
            Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::LOOP => Self::Changed,
            Errno::NOTEMPTY => Self::Failed("the directory is not empty".to_owned()),
            other => Self::Failed(io::Error::from(other).to_string()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Errno::from_raw_os_error(number).into(),
            None => Self::Failed(error.to_string()),
        }
    }
}

impl Snapshots {
    /// Does what the plan says.
    ///
    /// First it takes a snapshot of what is there, which [`Restored::before`] names. A file that changed after the plan was made
    /// is left. A process that is ended in the middle loses nothing: [`unfinished`](Self::unfinished) names the restore, and
    /// another plan to either of its snapshots completes or undoes it.
    ///
    /// # Errors
    /// [`SnapshotError::is_busy`], or those of [`take`](Self::take): nothing was changed. If only the last snapshot could not be
    /// taken, the files are restored.
    pub fn restore(&self, plan: RestorePlan) -> Result<Restored, SnapshotError> {
        let _alone = self.folder.restore_lock()?;
        let shared = self.folder.shared()?;
        if !self.folder.snapshot(&plan.target.snapshot.id).exists() {
            return Err(SnapshotError::gone(format!("the snapshot {}", plan.target.snapshot.id)));
        }
        let wanted: BTreeSet<RelPath> = plan.changes.keys().cloned().collect();
        let label = format!("before a restore of: {}", plan.target().label());
        let before = self.take_wanted(&label, &wanted, Some(&plan.target.tree))?;
        for path in &wanted {
            if let Some(NodeKind::File { hash, .. }) = before.tree.entries.get(path).map(|entry| &entry.kind)
            {
                self.blobs().settle(hash)?;
            }
        }
        let note = format!("{}\n{}\n", plan.target.snapshot.id, before.snapshot.id);
        self.folder.publish(&self.folder.restoring(), note.as_bytes())?;
        let mut restoring = Restoring {
            snapshots: self,
            plan: &plan,
            before: &before.tree,
            passing: OsString::from(format!("{PASSING}{}", before.snapshot.id)),
            changed: BTreeSet::new(),
            kept: Vec::new(),
        };
        restoring.clean();
        restoring.run();
        let Restoring { changed, kept, .. } = restoring;
        drop(shared);
        let label = format!("after a restore of: {}", plan.target().label());
        let after = self.take_wanted(&label, &BTreeSet::new(), Some(&before.tree))?;
        let note = self.folder.restoring();
        fs::remove_file(&note).map_err(SnapshotError::system(format!("cannot remove {}", note.display())))?;
        let change = |path: &RelPath| {
            Some(PlannedChange::new(path, change_of(before.tree.at(path), plan.target.tree.at(path))?))
        };
        let changes = changed.iter().filter_map(change).collect();
        let mut kept_back = plan.kept_back();
        kept_back.extend(kept.into_iter().map(|(path, why)| KeptBack { path: shown(&path), why }));
        kept_back.sort_by(|one, other| one.path.cmp(&other.path));
        let (before, after) = (before.snapshot.clone(), after.snapshot.clone());
        Ok(Restored { before, after, changes, kept_back })
    }
}

impl Restoring<'_> {
    /// Removes what a restore that was cut off has left under a passing name, if the content is stored.
    fn clean(&self) {
        let left = self.before.passed.iter().filter(|(_, why)| **why == NotTaken::Restoring);
        for (path, _) in left {
            let Ok(directory) = self.snapshots.place.parent(path) else { continue };
            let name = name_of(path);
            let is_stored = match kind_at(&directory, name, u64::MAX) {
                Ok(NodeKind::File { hash, .. }) => self.snapshots.blobs().read(&hash).is_ok(),
                // A snapshot has it, or it was made by the restore.
                Ok(NodeKind::Link { .. }) => true,
                Ok(NodeKind::Directory { .. }) | Err(_) => false,
            };
            if is_stored && unlinkat(&directory, name, AtFlags::empty()).is_err() {
                // It stays under a name that says whose it is, and is named as not taken.
            }
        }
    }

    /// What goes first, from the deepest; then what comes, from the top; then permissions, from the deepest.
    fn run(&mut self) {
        let paths: Vec<RelPath> = self.plan.changes.keys().cloned().collect();
        for path in paths.iter().rev() {
            self.note(path, Self::take_away);
        }
        for path in &paths {
            self.note(path, Self::put);
        }
        for path in paths.iter().rev() {
            self.note(path, Self::permit);
        }
    }

    fn wanted(&self, path: &[u8]) -> Seen<'_> {
        self.plan.target.tree.at(path)
    }

    /// Whether what is there cannot be replaced in one step.
    fn must_go(&self, path: &[u8]) -> bool {
        match (self.before.at(path), self.wanted(path)) {
            (Seen::There(_), Seen::Absent) => true,
            (Seen::There(NodeKind::Directory { .. }), Seen::There(NodeKind::Directory { .. })) => false,
            (Seen::There(NodeKind::Directory { .. }), Seen::There(_)) => true,
            (Seen::There(_), Seen::There(NodeKind::Directory { .. })) => true,
            _ => false,
        }
    }

    /// Does one step with a path, unless one before it was refused.
    fn note(&mut self, path: &RelPath, step: fn(&Self, &[u8]) -> Result<bool, Refusal>) {
        if self.kept.iter().any(|(kept, _)| kept == path) {
            return;
        }
        let done = if self.has_changed(path) { Err(Refusal::Changed) } else { step(self, path) };
        match done {
            Ok(true) => drop(self.changed.insert(path.clone())),
            Ok(false) => {}
            Err(Refusal::Changed) => self.kept.push((path.clone(), WhyKept::ChangedMeanwhile)),
            Err(Refusal::Failed(why)) => self.kept.push((path.clone(), WhyKept::Failed(why))),
        }
    }

    /// Whether it changed between the plan and the snapshot before this restore.
    fn has_changed(&self, path: &[u8]) -> bool {
        match self.plan.now.at(path) {
            // It was confirmed unseen, and is saved by now.
            Seen::Unknown(_) => matches!(self.before.at(path), Seen::Unknown(_)),
            now => now != self.before.at(path),
        }
    }

    fn take_away(&self, path: &[u8]) -> Result<bool, Refusal> {
        if !self.must_go(path) {
            return Ok(false);
        }
        let directory = self.snapshots.place.parent(path)?;
        let name = name_of(path);
        if let Seen::There(NodeKind::Directory { .. }) = self.before.at(path) {
            unlinkat(&directory, name, AtFlags::REMOVEDIR)?;
            return Ok(true);
        }
        let passing = self.free_name(&directory)?;
        rename_new(&directory, name, &passing)?;
        if !self.is_as_before(path, &directory, &passing) {
            rename_new(&directory, &passing, name)?;
            return Err(Refusal::Changed);
        }
        unlinkat(&directory, &passing, AtFlags::empty())?;
        Ok(true)
    }

    /// Puts there what the snapshot has. What is replaced goes under the passing name in the same step, and is looked at there.
    fn put(&self, path: &[u8]) -> Result<bool, Refusal> {
        let Seen::There(kind) = self.wanted(path) else { return Ok(false) };
        let is_new = self.must_go(path) || matches!(self.before.at(path), Seen::Absent);
        if !is_new && self.before.at(path) == Seen::There(kind) || self.is_permissions_alone(path) {
            return Ok(false);
        }
        let directory = self.snapshots.place.parent(path)?;
        let name = name_of(path);
        if let NodeKind::Directory { .. } = kind {
            // Its own permissions come when all that is in it is there.
            mkdirat(&directory, name, Mode::from_raw_mode(NEW_DIRECTORY))?;
            return Ok(true);
        }
        let passing = self.free_name(&directory)?;
        self.make(kind, &directory, &passing)?;
        let placed = if is_new {
            rename_new(&directory, &passing, name).map(|()| UnderPassing::Nothing).map_err(Refusal::from)
        } else {
            self.replace(path, &directory, &passing)
        };
        // What is under the passing name is the new content, which is stored, or the old one, which the snapshot before has.
        if !matches!(placed, Ok(UnderPassing::Nothing)) {
            unlinkat(&directory, &passing, AtFlags::empty())?;
        }
        placed.map(|_| true)
    }

    /// Replaces what is there by what is under the passing name, and looks at what it was.
    fn replace(&self, path: &[u8], directory: &OwnedFd, passing: &OsStr) -> Result<UnderPassing, Refusal> {
        let name = name_of(path);
        match exchange(directory, passing, name) {
            Ok(()) if self.is_as_before(path, directory, passing) => Ok(UnderPassing::Content),
            Ok(()) => {
                exchange(directory, passing, name)?;
                Err(Refusal::Changed)
            }
            // The file system cannot exchange two names.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if !self.is_as_before(path, directory, name) {
                    return Err(Refusal::Changed);
                }
                renameat(directory, passing, directory, name)?;
                Ok(UnderPassing::Nothing)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn make(&self, kind: &NodeKind, directory: &OwnedFd, name: &OsStr) -> Result<(), Refusal> {
        match kind {
            NodeKind::Directory { .. } => Ok(()),
            NodeKind::Link { target } => Ok(symlinkat(OsStr::from_bytes(target), directory, name)?),
            NodeKind::File { mode, hash, .. } => {
                let content = self.snapshots.blobs().read(hash);
                let content = content.map_err(|error| Refusal::Failed(error.to_string()))?;
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file = fs::File::from(openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
                let mut written = || -> io::Result<()> {
                    file.write_all(&content)?;
                    rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode))?;
                    file.sync_all()
                };
                written().map_err(|error| {
                    if unlinkat(directory, name, AtFlags::empty()).is_err() {
                        // The next restore removes it.
                    }
                    error.into()
                })
            }
        }
    }

    fn permit(&self, path: &[u8]) -> Result<bool, Refusal> {
        let mode = match (self.before.at(path), self.wanted(path)) {
            (_, Seen::There(NodeKind::Directory { mode })) => *mode,
            (_, Seen::There(NodeKind::File { mode, .. })) if self.is_permissions_alone(path) => *mode,
            _ => return Ok(false),
        };
        let directory = self.snapshots.place.parent(path)?;
        set_permissions(&directory, name_of(path), mode)?;
        Ok(true)
    }

    fn is_permissions_alone(&self, path: &[u8]) -> bool {
        let change = change_of(self.before.at(path), self.wanted(path));
        change.is_some_and(|(change, _)| change == PathChange::Permissions)
    }

    /// Whether what is under this name is what the snapshot before this restore has at the path.
    fn is_as_before(&self, path: &[u8], directory: &OwnedFd, name: &OsStr) -> bool {
        let Seen::There(before) = self.before.at(path) else { return false };
        let most = if let NodeKind::File { size, .. } = before { *size } else { 0 };
        match (kind_at(directory.as_fd(), name, most), before) {
            (Ok(NodeKind::File { hash: now, .. }), NodeKind::File { hash, .. }) => now == *hash,
            (Ok(now), before) => now == *before,
            (Err(_), _) => false,
        }
    }

    /// The passing name, free in this directory.
    fn free_name(&self, directory: &OwnedFd) -> Result<OsString, Refusal> {
        match rustix::fs::statat(directory, &self.passing, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(self.passing.clone()),
            Ok(_) => {
                let why = format!("{} is in the way", self.passing.to_string_lossy());
                Err(Refusal::Failed(why))
            }
            Err(error) => Err(error.into()),
        }
    }
}
