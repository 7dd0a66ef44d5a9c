//! A process that is killed in the middle: of a snapshot, and of a restore.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use safepoint_snapshot::{SnapshotLimits, Snapshots};
use safepoint_testkit::wait;

use super::support::{Node, Nodes, nodes, open};

const FILES: usize = 60;
const PLACE: &str = "SAFEPOINT_SNAPSHOT_PLACE";
const WORK: &str = "SAFEPOINT_SNAPSHOT_WORK";

/// This program again, as a process that can be killed, and is when it is dropped.
struct Other(Child);

impl Other {
    fn start(place: &Path, work: &str) -> Self {
        let started = Command::new(std::env::current_exe().unwrap())
            .args(["snapshots::cut_off::the_other_process", "--exact", "--nocapture"])
            .env(PLACE, place)
            .env(WORK, work)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(started.unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What the other process does; nothing where this is a test.
#[test]
fn the_other_process() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let snapshots = open(&place, SnapshotLimits::default());
    match std::env::var(WORK).unwrap().as_str() {
        "take" => {
            for round in 0.. {
                fill(&place.join("root"), &format!("round {round}"));
                snapshots.take("round").unwrap();
            }
        }
        _ => {
            let all = snapshots.list().unwrap();
            let [old, new] = [&all[0], &all[1]];
            loop {
                back(&snapshots, old, new);
                back(&snapshots, new, old);
            }
        }
    }
}

/// Goes from one of two snapshots to the other.
fn back(snapshots: &Snapshots, to: &safepoint_snapshot::Snapshot, from: &safepoint_snapshot::Snapshot) {
    let plan = snapshots.plan(to, &[(to.clone(), from.clone())]).unwrap();
    assert!(plan.kept_back().is_empty(), "{:?}", plan.kept_back());
    let restored = snapshots.restore(plan).unwrap();
    assert!(restored.kept_back.is_empty(), "{:?}", restored.kept_back);
}

fn fill(root: &Path, content: &str) {
    for number in 0..FILES {
        fs::write(root.join(format!("f{number:03}")), format!("{content} {number}")).unwrap();
    }
}

/// A place with two snapshots, of very different trees, and those trees.
fn two_trees() -> (tempfile::TempDir, [Nodes; 2]) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir(&root).unwrap();
    let snapshots = open(place.path(), SnapshotLimits::default());
    fill(&root, "old");
    for number in 0..10 {
        fs::create_dir(root.join(format!("d{number}"))).unwrap();
        fs::write(root.join(format!("d{number}/x")), "old").unwrap();
    }
    snapshots.take("old").unwrap();
    let old = nodes(&root);
    fill(&root, "new");
    for number in 0..10 {
        fs::remove_dir_all(root.join(format!("d{number}"))).unwrap();
        fs::write(root.join(format!("d{number}")), "a file now").unwrap();
        fs::remove_file(root.join(format!("f{number:03}"))).unwrap();
        fs::create_dir_all(root.join(format!("made/{number}"))).unwrap();
    }
    snapshots.take("new").unwrap();
    let new = nodes(&root);
    (place, [old, new])
}

/// How many contents are stored, while another process stores more.
fn contents(place: &Path) -> usize {
    let inner =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().filter_map(|one| Some(one.ok()?.path()));
    let folders = inner(place.join("state")).map(|folder| folder.join("blobs"));
    folders.flat_map(inner).flat_map(inner).count()
}

/// S7.31: what a killed process leaves is no snapshot, and all the others can be read.
#[test]
fn a_snapshot_that_was_cut_off_is_none() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir(&root).unwrap();
    let snapshots = open(place.path(), SnapshotLimits::default());
    fill(&root, "first");
    snapshots.take("first").unwrap();
    for round in 1..=8 {
        let other = Other::start(place.path(), "take");
        // In the middle of the contents of its second snapshot, or a little later.
        let count = snapshots.list().unwrap().len();
        wait::until("it takes its next snapshot", || snapshots.list().unwrap().len() > count);
        let so_far = contents(place.path());
        wait::until("it has stored some contents", || contents(place.path()) > so_far + round * 7);
        drop(other);
        let all = snapshots.list().unwrap();
        for pair in all.windows(2) {
            snapshots.diff(&pair[0], &pair[1]).unwrap();
        }
        let before = nodes(&root);
        let now = snapshots.take("now").unwrap();
        let all = snapshots.list().unwrap();
        back(&snapshots, &all[0], &now);
        let last = snapshots.list().unwrap().pop().unwrap();
        back(&snapshots, &now, &last);
        assert_eq!(nodes(&root), before, "round {round}: a content is missing");
    }
    let state = place.path().join("state");
    open(place.path(), SnapshotLimits::default());
    let passing = nodes(&state).into_keys().filter(|path| path.iter().any(|name| name == "passing"));
    assert_eq!(passing.count(), 1, "what it left half-written is removed");
}

/// S7.33: a restore that was killed has lost nothing; another one completes it, or undoes it.
#[test]
fn a_restore_that_was_cut_off_is_completed_or_undone() {
    let (place, [old, new]) = two_trees();
    let root = place.path().join("root");
    let snapshots = open(place.path(), SnapshotLimits::default());
    let mut met = 0;
    for round in 0..16 {
        let other = Other::start(place.path(), "restore");
        let name = root.join(format!("f{:03}", 10 + round * 3));
        let first = fs::read(&name).unwrap();
        wait::until("it has come to some file", || fs::read(&name).is_ok_and(|now| now != first));
        drop(other);
        for (path, node) in nodes(&root).iter().filter(|(_, node)| matches!(node, Node::File(..))) {
            let is_passing = path.to_string_lossy().contains(".safepoint-restore-");
            let is_known = [&old, &new].iter().any(|tree| tree.get(path) == Some(node));
            assert!(is_passing || is_known, "round {round}: {path:?} is {node:?}");
        }
        if let Some((to, before)) = snapshots.unfinished().unwrap() {
            met += 1;
            let plan = match round % 2 {
                0 => snapshots.plan(&to, &[(to.clone(), before)]).unwrap(),
                _ => snapshots.plan(&before, &[]).unwrap(),
            };
            assert_eq!(plan.kept_back(), [], "round {round}");
            let restored = snapshots.restore(plan).unwrap();
            assert_eq!(restored.kept_back, [], "round {round}");
            assert_eq!(snapshots.unfinished().unwrap(), None);
        }
        let now = nodes(&root);
        assert!(now == old || now == new, "round {round}: neither of the two trees: {now:?}");
        // The other process begins from the newer one.
        let all = snapshots.list().unwrap();
        let (first, last) = (all[1].clone(), snapshots.take("now").unwrap());
        back(&snapshots, &first, &last);
        assert_eq!(nodes(&root), new);
    }
    assert!(met > 0, "no restore was cut off");
}
