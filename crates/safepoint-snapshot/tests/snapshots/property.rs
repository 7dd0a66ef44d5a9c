//! For random trees and random edits: a restore gives the snapshot, but for what it keeps, and the undo gives back the rest.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, path::PathBuf};

use proptest::prelude::*;
use safepoint_snapshot::{Restored, Snapshot};

use super::support::{Nodes, World, chmod, link};

#[derive(Clone, Debug)]
enum Edit {
    Write(PathBuf, u8),
    Directory(PathBuf),
    Link(PathBuf, u8),
    Remove(PathBuf),
    Mode(PathBuf, u32),
}

/// Few names, so that edits meet.
fn path() -> impl Strategy<Value = PathBuf> {
    let name = prop::sample::select(vec![&b"a"[..], b"b", b"b-", b"\xfe", b"%2f"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.into_iter().map(OsStr::from_bytes).collect())
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (path(), 0..4_u8).prop_map(|(path, content)| Edit::Write(path, content)),
        1 => path().prop_map(Edit::Directory),
        1 => (path(), 0..3_u8).prop_map(|(path, target)| Edit::Link(path, target)),
        2 => path().prop_map(Edit::Remove),
        1 => (path(), prop::sample::select(vec![0o755, 0o700, 0o4755])).prop_map(|(path, mode)| Edit::Mode(path, mode)),
    ]
}

fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(edit(), 0..most)
}

fn remove(path: PathBuf) {
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

impl World {
    /// Makes room for a path: every directory above it is one.
    fn room(&self, path: &PathBuf) -> PathBuf {
        let mut at = self.root();
        for part in path.parent().unwrap() {
            at.push(part);
            if !fs::symlink_metadata(&at).is_ok_and(|found| found.is_dir()) {
                remove(at.clone());
                fs::create_dir(&at).unwrap();
            }
        }
        self.path(path)
    }

    fn make(&self, edits: &[Edit]) {
        for edit in edits {
            match edit {
                Edit::Write(path, content) => {
                    let path = self.room(path);
                    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
                        remove(path.clone());
                    }
                    fs::write(path, [*content]).unwrap();
                }
                Edit::Directory(path) => {
                    let path = self.room(path);
                    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                        remove(path.clone());
                        fs::create_dir(path).unwrap();
                    }
                }
                Edit::Link(path, target) => {
                    let path = self.room(path);
                    remove(path.clone());
                    // Some lead out of the root, to where something is.
                    link(["a", "..", "/"][usize::from(*target)], path);
                }
                Edit::Remove(path) => {
                    if is_real(self, path) {
                        remove(self.path(path));
                    }
                }
                Edit::Mode(path, mode) => {
                    let is_link = fs::symlink_metadata(self.path(path)).is_ok_and(|found| found.is_symlink());
                    if is_real(self, path) && !is_link && self.path(path).exists() {
                        chmod(self.path(path), *mode);
                    }
                }
            }
        }
    }

    fn went_back(&self, before: &Snapshot, after: &Snapshot) -> Restored {
        self.snapshots.restore(self.plan(before, after)).unwrap()
    }
}

/// Whether the path leads through directories alone, and so stays below the root.
fn is_real(world: &World, path: &std::path::Path) -> bool {
    path.ancestors().skip(1).all(|above| {
        fs::symlink_metadata(world.path(above)).is_ok_and(|found| found.is_dir())
            || above.as_os_str().is_empty()
    })
}

/// What the tree is to be: the wanted one, but for the paths that are kept.
fn expected(wanted: &Nodes, now: &Nodes, kept: &[PathBuf]) -> Nodes {
    let mut expected: Nodes = wanted.clone();
    expected.retain(|path, _| !kept.contains(path));
    let stays = now.iter().filter(|(path, _)| kept.contains(*path));
    expected.extend(stays.map(|(path, node)| (path.clone(), node.clone())));
    expected
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// S7.32, S7.33
    #[test]
    fn a_restore_gives_the_snapshot_and_its_undo_gives_back_the_rest(
        first in edits(20), own in edits(20),
    ) {
        let world = World::new();
        world.make(&first);
        let (before, wanted) = (world.take(), world.nodes());
        world.make(&own);
        let (after, now) = (world.take(), world.nodes());
        let restored = world.went_back(&before, &after);
        prop_assert_eq!(&restored.kept_back, &[]);
        prop_assert_eq!(world.nodes(), wanted);
        let undone = world.undo(&restored);
        prop_assert_eq!(&undone.kept_back, &[]);
        prop_assert_eq!(world.nodes(), now);
    }

    /// S7.32, S7.33: with the edits of another person among them.
    #[test]
    fn what_a_restore_keeps_is_named_and_everything_else_is_the_snapshots(
        first in edits(20), own in edits(20), theirs in edits(8),
    ) {
        let world = World::new();
        world.make(&first);
        let (before, wanted) = (world.take(), world.nodes());
        world.make(&own);
        let (after, mine) = (world.take(), world.nodes());
        world.make(&theirs);
        let now = world.nodes();
        let plan = world.plan(&before, &after);
        let kept: Vec<PathBuf> = plan.kept_back().into_iter().map(|kept| kept.path).collect();
        let restored = world.snapshots.restore(plan).unwrap();
        prop_assert_eq!(restored.kept_back.len(), kept.len(), "{:?}", restored);
        prop_assert_eq!(world.nodes(), expected(&wanted, &now, &kept));
        // Every path that they changed, and that is not as it is wanted by chance, is kept.
        for (path, node) in now.iter().filter(|(path, node)| mine.get(*path) != Some(node)) {
            prop_assert!(wanted.get(path) == Some(node) || kept.contains(path), "{path:?} was theirs");
        }
        let undone = world.undo(&restored);
        prop_assert_eq!(&undone.kept_back, &[]);
        prop_assert_eq!(world.nodes(), now);
    }

    /// S7.30: a snapshot that is read by another process is the tree that was taken.
    #[test]
    fn every_snapshot_of_a_row_can_be_gone_back_to(rounds in prop::collection::vec(edits(8), 1..6)) {
        let world = World::new();
        let taken: Vec<_> = rounds
            .iter()
            .map(|edits| {
                world.make(edits);
                (world.take(), world.nodes())
            })
            .collect();
        let snapshots = super::support::open(world.place.path(), Default::default());
        let last = &taken.last().unwrap().0;
        let mut at = last.clone();
        for (snapshot, wanted) in &taken {
            let plan = snapshots.plan(snapshot, &[(snapshot.clone(), at.clone())]).unwrap();
            at = snapshots.restore(plan).unwrap().after;
            prop_assert_eq!(&world.nodes(), wanted);
        }
    }
}
