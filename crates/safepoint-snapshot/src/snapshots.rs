//! The snapshots of one root.
//!
//! **Invariants**
//! - A snapshot is in its folder once everything that it refers to is.
//! - While the folder's shared lock is held nothing that a snapshot refers to is removed.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, BufRead as _, BufReader},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use crate::{
    blobs::Blobs,
    content::Hash,
    error::SnapshotError,
    folder::Folder,
    limits::SnapshotLimits,
    manifest::{self, Manifest},
    place::RootPlace,
    snapshot::{NotTaken, Omissions, Snapshot},
    tree::{RelPath, Seen, Tree, shown},
    walk::Walk,
};

pub(crate) mod plan;
mod prune;
pub(crate) mod restore;

use plan::{PlannedChange, change_of};

/// The snapshots of one directory, in a folder outside of it.
///
/// Several processes may use one root at the same time. Every function blocks the thread.
#[derive(Debug)]
pub struct Snapshots {
    pub(crate) place: RootPlace,
    pub(crate) folder: Folder,
    pub(crate) limits: SnapshotLimits,
    excluded: BTreeSet<RelPath>,
    /// The last snapshot that was read or taken here. Held to copy or replace it, and for nothing else.
    last: Mutex<Option<Arc<Loaded>>>,
}

/// A snapshot with its tree.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) snapshot: Snapshot,
    pub(crate) tree: Tree,
    base: (Hash, Arc<Tree>),
}

/// A base is shared until so large a part of it differs.
const DIFFERS: usize = 4;
/// Lines that always may differ.
const FEW: usize = 64;

impl Snapshots {
    /// Opens the snapshots of the directory `root`. They are kept in a folder of their root's below `state`, which is made if it
    /// is not there. Snapshots that are too old, or too many, are removed first.
    ///
    /// # Errors
    /// If `root` is no directory or cannot be opened, or the folder cannot be made.
    pub fn open(
        root: impl AsRef<Path>,
        state: impl AsRef<Path>,
        limits: SnapshotLimits,
    ) -> Result<Self, SnapshotError> {
        let place = RootPlace::open(root.as_ref())?;
        let folder = Folder::open(state.as_ref(), &place.path)?;
        let below = |path: &std::path::PathBuf| {
            let name = path.file_name()?;
            // The file itself need not be there, and is excluded by the name that it has, be it a link.
            let path = path.parent()?.canonicalize().ok()?.join(name);
            let below = path.strip_prefix(&place.path).ok()?;
            Some(std::os::unix::ffi::OsStrExt::as_bytes(below.as_os_str()).to_vec())
        };
        let excluded = limits.exclude.iter().filter_map(below).collect();
        let snapshots = Self { place, folder, limits, excluded, last: Mutex::default() };
        snapshots.prune()?;
        Ok(snapshots)
    }

    /// The directory, without symbolic links on the way to it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.place.path
    }

    /// Takes a snapshot.
    ///
    /// A process that is ended meanwhile leaves no half of one. After a loss of power the newest snapshots may be gone or
    /// damaged.
    ///
    /// # Errors
    /// [`SnapshotError::is_too_many`]; or that the root cannot be read, or the folder not be written.
    pub fn take(&self, label: &str) -> Result<Snapshot, SnapshotError> {
        self.take_wanted(label, &BTreeSet::new(), None).map(|taken| taken.snapshot.clone())
    }

    /// The snapshots, the oldest first. One that cannot be read is none.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Snapshot>, SnapshotError> {
        let folder = self.folder.snapshots();
        let read = || -> io::Result<Vec<Snapshot>> {
            let mut found = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                found.extend(head(&entry.file_name().to_string_lossy(), &entry.path()));
            }
            Ok(found)
        };
        let mut found = read().map_err(SnapshotError::system(format!("cannot read {}", folder.display())))?;
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    /// What differs between two snapshots: what makes the second of the first.
    ///
    /// # Errors
    /// [`SnapshotError::is_gone`] and [`SnapshotError::is_damaged`].
    pub fn diff(&self, from: &Snapshot, to: &Snapshot) -> Result<Vec<PlannedChange>, SnapshotError> {
        let _shared = self.folder.shared()?;
        let (from, to) = (self.load(from)?, self.load(to)?);
        let change = |path: &RelPath| match (from.tree.at(path), to.tree.at(path)) {
            (Seen::Unknown(_), _) | (_, Seen::Unknown(_)) => None,
            (before, after) => Some(PlannedChange::new(path, change_of(before, after)?)),
        };
        Ok(from.tree.differing(&to.tree).filter_map(change).collect())
    }

    /// What a snapshot does not hold, and why. A directory that was not taken stands for all that is in it.
    ///
    /// # Errors
    /// [`SnapshotError::is_gone`] and [`SnapshotError::is_damaged`].
    pub fn not_taken(&self, snapshot: &Snapshot) -> Result<Omissions, SnapshotError> {
        let _shared = self.folder.shared()?;
        let loaded = self.load(snapshot)?;
        Ok(loaded.tree.passed.iter().map(|(path, why)| (shown(path), *why)).collect())
    }

    /// The restore that a process began and did not end: where it was to lead, and the snapshot of what was there before.
    /// A plan counts what that restore did as its caller's own: one that leads to the second, without spans, undoes it, and one
    /// that leads to the first, with the span from the first to the second, completes it.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn unfinished(&self) -> Result<Option<(Snapshot, Snapshot)>, SnapshotError> {
        let path = self.folder.restoring();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(SnapshotError::system(format!("cannot read {}", path.display())))?,
        };
        let mut ids = text.lines();
        let mut next = || ids.next().and_then(|id| head(id, &self.folder.snapshot(id)));
        Ok(next().zip(next()))
    }

    pub(crate) fn blobs(&self) -> Blobs<'_> {
        Blobs(&self.folder)
    }

    /// Takes one in which `wanted` files are held whatever their size, and what `tracked` has though git ignores it.
    pub(crate) fn take_wanted(
        &self,
        label: &str,
        wanted: &BTreeSet<RelPath>,
        tracked: Option<&Tree>,
    ) -> Result<Arc<Loaded>, SnapshotError> {
        let _shared = self.folder.shared()?;
        let last = self.last()?;
        let tree = self.walk(last.as_deref(), wanted, (tracked, true))?;
        let loaded = Arc::new(self.publish(label, tree, last.as_deref())?);
        *self.cached() = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// What is there now, stored nowhere.
    pub(crate) fn look(&self, tracked: &Tree) -> Result<Tree, SnapshotError> {
        let last = self.last()?;
        self.walk(last.as_deref(), &BTreeSet::new(), (Some(tracked), false))
    }

    fn walk(
        &self,
        last: Option<&Loaded>,
        wanted: &BTreeSet<RelPath>,
        (tracked, is_stored): (Option<&Tree>, bool),
    ) -> Result<Tree, SnapshotError> {
        let none = Tree::default();
        let walk = Walk {
            place: &self.place,
            limits: &self.limits,
            excluded: (&self.excluded, self.folder.id),
            last: last.map_or(&none, |last| &last.tree),
            tracked,
            wanted,
            blobs: is_stored.then_some(self.blobs()),
        };
        walk.tree()
    }

    fn publish(&self, label: &str, tree: Tree, last: Option<&Loaded>) -> Result<Loaded, SnapshotError> {
        let shared = last.map(|last| (&last.base, manifest::changes(&last.base.1, &tree)));
        let most = FEW.max(tree.entries.len() / DIFFERS);
        let (base, lines) = match shared.filter(|(_, lines)| lines.lines().count() <= most) {
            Some((base, lines)) => (base.clone(), lines),
            None => {
                let text = manifest::whole(&tree);
                let hash = Hash::of(text.as_bytes());
                self.folder.publish(&self.folder.bases().join(hash.to_string()), text.as_bytes())?;
                ((hash, Arc::new(tree.clone())), String::new())
            }
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        // A clock that was set back brings no snapshot before an earlier one.
        let taken = last.map_or(now, |last| now.max(last.snapshot.taken + 1));
        let is_named = |why: &&NotTaken| !matches!(why, NotTaken::Ignored | NotTaken::Excluded);
        let snapshot = Snapshot {
            id: format!("{taken:020}-{}", self.folder.fresh()),
            taken,
            label: label.to_owned(),
            not_taken: tree.passed.values().filter(is_named).count(),
        };
        let text = Manifest { snapshot: snapshot.clone(), base: base.0, lines }.write();
        self.folder.publish(&self.folder.snapshot(&snapshot.id), text.as_bytes())?;
        Ok(Loaded { snapshot, tree, base })
    }

    /// The newest snapshot that can be read; what it refers to is there while the shared lock is held.
    fn last(&self) -> Result<Option<Arc<Loaded>>, SnapshotError> {
        let cached = self.cached().clone();
        if let Some(cached) = cached.filter(|last| self.folder.snapshot(&last.snapshot.id).exists()) {
            return Ok(Some(cached));
        }
        let mut all = self.list()?;
        while let Some(newest) = all.pop() {
            match self.load(&newest) {
                Ok(loaded) => {
                    *self.cached() = Some(Arc::clone(&loaded));
                    return Ok(Some(loaded));
                }
                Err(error) if error.is_damaged() || error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// A snapshot with its tree. To be called under a lock of the folder.
    pub(crate) fn load(&self, snapshot: &Snapshot) -> Result<Arc<Loaded>, SnapshotError> {
        let known = self.cached().clone();
        if let Some(known) = known.as_ref().filter(|known| known.snapshot.id == snapshot.id) {
            return Ok(Arc::clone(known));
        }
        let Manifest { snapshot, base, lines } = self.manifest(snapshot)?;
        let base = match known.filter(|known| known.base.0 == base) {
            Some(known) => known.base.clone(),
            None => {
                let mut tree = Tree::default();
                let read = manifest::apply(&mut tree, &self.base_text(&base)?);
                read.ok_or_else(|| SnapshotError::damaged(format!("the base {base}")))?;
                (base, Arc::new(tree))
            }
        };
        let mut tree = (*base.1).clone();
        let read = manifest::apply(&mut tree, &lines);
        read.ok_or_else(|| SnapshotError::damaged(format!("the snapshot {}", snapshot.id)))?;
        Ok(Arc::new(Loaded { snapshot, tree, base }))
    }

    pub(crate) fn manifest(&self, snapshot: &Snapshot) -> Result<Manifest, SnapshotError> {
        let path = self.folder.snapshot(&snapshot.id);
        let named = || format!("the snapshot {}", snapshot.id);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SnapshotError::gone(named()));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(SnapshotError::damaged(named()));
            }
            read => read.map_err(SnapshotError::system(format!("cannot read {}", path.display())))?,
        };
        Manifest::read(&snapshot.id, &text).ok_or_else(|| SnapshotError::damaged(named()))
    }

    pub(crate) fn base_text(&self, hash: &Hash) -> Result<String, SnapshotError> {
        let read = fs::read_to_string(self.folder.bases().join(hash.to_string())).ok();
        let text = read.filter(|text| Hash::of(text.as_bytes()) == *hash);
        text.ok_or_else(|| SnapshotError::damaged(format!("the base {hash}")))
    }

    fn cached(&self) -> MutexGuard<'_, Option<Arc<Loaded>>> {
        // It is only ever replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The head of a manifest: what a list needs.
fn head(id: &str, path: &Path) -> Option<Snapshot> {
    let mut lines = BufReader::new(fs::File::open(path).ok()?).lines();
    let head: Vec<String> = lines.by_ref().take(5).collect::<Result<_, _>>().ok()?;
    Manifest::read(id, &format!("{}\nend 0\n", head.join("\n"))).map(|manifest| manifest.snapshot)
}
