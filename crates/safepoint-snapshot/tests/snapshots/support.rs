//! A root with a folder of snapshots beside it, and what stands under the root.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use safepoint_snapshot::{RestorePlan, Restored, Snapshot, SnapshotLimits, Snapshots, WhyKept};

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Directory(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
    Other,
}

pub(crate) type Nodes = BTreeMap<PathBuf, Node>;

pub(crate) struct World {
    pub(crate) place: tempfile::TempDir,
    pub(crate) snapshots: Snapshots,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(SnapshotLimits::default())
    }

    pub(crate) fn with(limits: SnapshotLimits) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("root")).unwrap();
        let snapshots = open(place.path(), limits);
        Self { place, snapshots }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn take(&self) -> Snapshot {
        self.snapshots.take("test").unwrap()
    }

    /// A plan to go back to the first of these, where the changes between them are the caller's own.
    pub(crate) fn plan(&self, before: &Snapshot, after: &Snapshot) -> RestorePlan {
        self.snapshots.plan(before, &[(before.clone(), after.clone())]).unwrap()
    }

    pub(crate) fn undo(&self, restored: &Restored) -> Restored {
        let plan = self.plan(&restored.before, &restored.after);
        self.snapshots.restore(plan).unwrap()
    }

    pub(crate) fn nodes(&self) -> Nodes {
        nodes(&self.root())
    }
}

pub(crate) fn open(place: &Path, limits: SnapshotLimits) -> Snapshots {
    Snapshots::open(place.join("root"), place.join("state"), limits).unwrap()
}

/// Everything below a directory.
pub(crate) fn nodes(root: &Path) -> Nodes {
    let mut found = Nodes::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let node = if meta.is_dir() {
                open.push(path.clone());
                Node::Directory(mode)
            } else if meta.is_symlink() {
                Node::Link(fs::read_link(&path).unwrap())
            } else if meta.is_file() {
                Node::File(mode, fs::read(&path).unwrap())
            } else {
                Node::Other
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), node);
        }
    }
    found
}

pub(crate) fn link(target: &str, at: PathBuf) {
    symlink(target, at).unwrap();
}

pub(crate) fn chmod(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The paths of a plan's changes, and what it keeps.
pub(crate) fn said(plan: &RestorePlan) -> (Vec<String>, Vec<(String, WhyKept)>) {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let changes = plan.changes().iter().map(|change| shown(&change.path)).collect();
    let kept = plan.kept_back().into_iter().map(|kept| (shown(&kept.path), kept.why)).collect();
    (changes, kept)
}
