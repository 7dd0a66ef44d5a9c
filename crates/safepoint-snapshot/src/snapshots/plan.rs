//! What a restore would do, file by file, and what it would leave.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Bound,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    error::SnapshotError,
    snapshot::{NotTaken, Snapshot},
    snapshots::{Loaded, Snapshots},
    tree::{NodeKind, RelPath, Seen, Tree, shown, with_parents},
};

/// What happens to what is at a path. Exhaustive: it is made, replaced, removed, or gets other permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathChange {
    /// Nothing is there, and something will be.
    Create,
    /// Something else takes its place.
    Replace,
    /// Nothing will be there.
    Remove,
    /// Only its permissions change.
    Permissions,
}

/// One path, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChange {
    /// The path, relative to the root. It need not be UTF-8.
    pub path: PathBuf,
    /// What happens.
    pub change: PathChange,
    /// Whether it is a directory, before or after.
    pub is_directory: bool,
}

/// One path that a restore leaves as it is, though the snapshot differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptBack {
    /// The path, relative to the root.
    pub path: PathBuf,
    /// Why.
    pub why: WhyKept,
}

/// Why a restore leaves a path as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyKept {
    /// It changed outside of the spans that were named: another person or program changed it.
    ChangedByOthers,
    /// The snapshot does not say what was there.
    NotInSnapshot(NotTaken),
    /// What is there now cannot be saved first.
    NotSaved(NotTaken),
    /// A path that is kept stands in its way, or in it.
    Blocked,
    /// It changed after the restore was planned.
    ChangedMeanwhile,
    /// The system refused, or the stored content is damaged.
    Failed(String),
}

/// What a restore would do. Nothing has happened yet.
#[derive(Clone, Debug)]
#[must_use = "a plan does nothing by itself"]
pub struct RestorePlan {
    pub(crate) target: Arc<Loaded>,
    pub(crate) now: Tree,
    pub(crate) changes: BTreeMap<RelPath, PathChange>,
    /// The paths that are left, before what stands in the way of others.
    kept: BTreeMap<RelPath, WhyKept>,
    blocked: BTreeMap<RelPath, PathChange>,
}

impl WhyKept {
    /// Whether the person who restores may decide that it is restored all the same.
    #[must_use]
    pub fn can_be_confirmed(&self) -> bool {
        matches!(self, Self::ChangedByOthers | Self::NotSaved(NotTaken::TooLarge | NotTaken::NoRoom))
    }
}

/// For people: `changed since by another hand`.
impl fmt::Display for WhyKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangedByOthers => f.write_str("changed by another person or program"),
            Self::NotInSnapshot(why) => write!(f, "not in the snapshot: {why}"),
            Self::NotSaved(why) => write!(f, "what is there now cannot be saved first: {why}"),
            Self::Blocked => f.write_str("something that is kept is in it or in its way"),
            Self::ChangedMeanwhile => f.write_str("changed just now"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl PlannedChange {
    pub(crate) fn new(path: &[u8], (change, is_directory): (PathChange, bool)) -> Self {
        Self { path: shown(path), change, is_directory }
    }
}

impl Snapshots {
    /// Plans a restore of the files as they were when `to` was taken. What is there now is looked at and not changed.
    ///
    /// `spans` are pairs of snapshots, in order: what changed between the two of a pair may be undone. A file that changed at
    /// any other time since `to` was changed by another person or program, and is kept unless it is confirmed.
    ///
    /// # Errors
    /// [`SnapshotError::is_gone`], [`SnapshotError::is_damaged`], [`SnapshotError::is_too_many`]; or that the root cannot be read.
    pub fn plan(&self, to: &Snapshot, spans: &[(Snapshot, Snapshot)]) -> Result<RestorePlan, SnapshotError> {
        let _shared = self.folder.shared()?;
        let target = self.load(to)?;
        let mut trees = Vec::new();
        for (before, after) in spans {
            trees.push((self.load(before)?, self.load(after)?));
        }
        let cut_off = match self.unfinished()? {
            Some((target, before)) => Some((self.load(&before)?, self.load(&target)?)),
            None => None,
        };
        let now = self.look(&target.tree)?;
        let mut plan = RestorePlan {
            changes: BTreeMap::new(),
            kept: BTreeMap::new(),
            blocked: BTreeMap::new(),
            target: Arc::clone(&target),
            now: Tree::default(),
        };
        for path in now.differing(&target.tree) {
            let (there, wanted) = (now.at(path), target.tree.at(path));
            let why = match (there, wanted) {
                (Seen::Unknown(why), _) => Some(WhyKept::NotSaved(why)),
                (_, Seen::Unknown(why)) => Some(WhyKept::NotInSnapshot(why)),
                _ if is_of_others(path, (wanted, there), &trees, cut_off.as_ref()) => {
                    Some(WhyKept::ChangedByOthers)
                }
                _ => self.missing(wanted).map(|error| WhyKept::Failed(error.to_string())),
            };
            match why {
                Some(why) => drop(plan.kept.insert(path.clone(), why)),
                None => {
                    plan.changes.extend(change_of(there, wanted).map(|(change, _)| (path.clone(), change)))
                }
            }
        }
        plan.now = now;
        plan.block();
        Ok(plan)
    }

    /// Why the content of a file cannot be had; it is looked at before anything is changed.
    fn missing(&self, wanted: Seen<'_>) -> Option<SnapshotError> {
        let Seen::There(NodeKind::File { hash, .. }) = wanted else { return None };
        self.blobs().read(hash).err()
    }
}

/// The permissions of a directory until all that is in it is there.
pub(crate) const NEW_DIRECTORY: u32 = 0o700;

/// Whether a path changed outside of the spans.
fn is_of_others(
    path: &[u8],
    (wanted, now): (Seen<'_>, Seen<'_>),
    spans: &[(Arc<Loaded>, Arc<Loaded>)],
    cut_off: Option<&(Arc<Loaded>, Arc<Loaded>)>,
) -> bool {
    let mut at = wanted;
    for (before, after) in spans {
        if before.tree.at(path) != at {
            return true;
        }
        at = after.tree.at(path);
    }
    if let Some((before, target)) = cut_off {
        if before.tree.at(path) != at {
            return true;
        }
        // The restore has come to this path, has not, or is between two steps with it.
        let reached = target.tree.at(path);
        let is_between = match (now, reached) {
            (Seen::Absent, _) => at != reached,
            (Seen::There(NodeKind::Directory { mode }), Seen::There(NodeKind::Directory { .. })) => {
                *mode == NEW_DIRECTORY
            }
            _ => false,
        };
        at = if now == reached || is_between { now } else { at };
    }
    at != now
}

/// What makes the one of the other, and whether that is about a directory; none if nothing does.
pub(crate) fn change_of(from: Seen<'_>, to: Seen<'_>) -> Option<(PathChange, bool)> {
    let is_directory = |kind: &NodeKind| matches!(kind, NodeKind::Directory { .. });
    Some(match (from, to) {
        (Seen::Absent, Seen::There(kind)) => (PathChange::Create, is_directory(kind)),
        (Seen::There(kind), Seen::Absent) => (PathChange::Remove, is_directory(kind)),
        (Seen::There(from), Seen::There(to)) if from == to => return None,
        (Seen::There(NodeKind::Directory { .. }), Seen::There(NodeKind::Directory { .. })) => {
            (PathChange::Permissions, true)
        }
        (Seen::There(NodeKind::File { hash: from, .. }), Seen::There(NodeKind::File { hash: to, .. }))
            if from == to =>
        {
            (PathChange::Permissions, false)
        }
        (Seen::There(from), Seen::There(to)) => (PathChange::Replace, is_directory(from) || is_directory(to)),
        (Seen::Unknown(_), _) | (_, Seen::Unknown(_)) | (Seen::Absent, Seen::Absent) => return None,
    })
}

impl RestorePlan {
    /// The snapshot that it leads to.
    #[must_use]
    pub fn target(&self) -> &Snapshot {
        &self.target.snapshot
    }

    /// What would happen, by path.
    #[must_use]
    pub fn changes(&self) -> Vec<PlannedChange> {
        let is_directory = |seen| matches!(seen, Seen::There(NodeKind::Directory { .. }));
        let change = |(path, change): (&RelPath, &PathChange)| {
            let is_one = is_directory(self.now.at(path)) || is_directory(self.target.tree.at(path));
            PlannedChange::new(path, (*change, is_one))
        };
        self.changes.iter().map(change).collect()
    }

    /// What would be left as it is, by path, though the snapshot differs.
    #[must_use]
    pub fn kept_back(&self) -> Vec<KeptBack> {
        let kept = self.kept.iter().map(|(path, why)| (path, why.clone()));
        let blocked = self.blocked.keys().map(|path| (path, WhyKept::Blocked));
        let all: BTreeMap<&RelPath, WhyKept> = kept.chain(blocked).collect();
        all.into_iter().map(|(path, why)| KeptBack { path: shown(path), why }).collect()
    }

    /// Includes a path that is kept back. Returns whether it was kept back for a reason that can be confirmed
    /// ([`WhyKept::can_be_confirmed`]).
    pub fn confirm(&mut self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref().as_os_str().as_bytes();
        if !self.kept.get(path).is_some_and(WhyKept::can_be_confirmed) {
            return false;
        }
        self.kept.remove(path);
        // What was not looked at is there, and is replaced or removed.
        let change = match (self.now.at(path), self.target.tree.at(path)) {
            (Seen::Unknown(_), Seen::There(_)) => Some(PathChange::Replace),
            (Seen::Unknown(_), _) => Some(PathChange::Remove),
            (now, wanted) => change_of(now, wanted).map(|(change, _)| change),
        };
        self.changes.extend(change.map(|change| (path.to_vec(), change)));
        self.block();
        true
    }

    /// Whether nothing differs from the snapshot, as far as it says.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.kept.is_empty() && self.blocked.is_empty()
    }

    /// Takes out what cannot be done because of what is kept, and in what was taken out before what can be done now.
    fn block(&mut self) {
        self.changes.append(&mut self.blocked);
        let mut stays: BTreeSet<RelPath> = self.kept.keys().chain(self.now.passed.keys()).cloned().collect();
        for path in self.changes.keys() {
            stays.remove(path);
        }
        // From the deepest: a directory that stays is in the way of the one above it.
        let goes = |path: &RelPath| {
            let is_directory = |seen| matches!(seen, Seen::There(NodeKind::Directory { .. }));
            is_directory(self.now.at(path)) && !is_directory(self.target.tree.at(path))
        };
        let going: Vec<RelPath> = self.changes.keys().filter(|path| goes(path)).cloned().collect();
        for path in going.into_iter().rev() {
            if has_below(&stays, &path) {
                self.blocked.extend(self.changes.remove(&path).map(|change| (path.clone(), change)));
                stays.insert(path);
            }
        }
        // From the top: what cannot be a directory has nothing in it.
        let wanted: Vec<RelPath> = self.changes.keys().cloned().collect();
        for path in wanted {
            let is_wanted = matches!(self.target.tree.at(&path), Seen::There(_));
            if is_wanted && with_parents(&path).skip(1).any(|above| self.is_no_directory(above)) {
                self.blocked.extend(self.changes.remove(&path).map(|change| (path, change)));
            }
        }
    }

    /// Whether a path will be no directory, though the snapshot has one there.
    fn is_no_directory(&self, path: &[u8]) -> bool {
        let is_one = matches!(self.now.at(path), Seen::There(NodeKind::Directory { .. }));
        !is_one && !self.changes.contains_key(path)
    }
}

fn has_below(paths: &BTreeSet<RelPath>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let first = paths.range::<[u8], _>((Bound::Included(&*below), Bound::Unbounded)).next();
    first.is_some_and(|other| other.starts_with(&below))
}
