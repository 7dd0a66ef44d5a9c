//! The folder of snapshots: what is removed from it, what is found damaged, and two processes at one root.

use std::{fs, time::Duration};

use safepoint_snapshot::{Snapshot, SnapshotLimits};

use super::support::{Node, World, nodes, open};

fn files(world: &World) -> usize {
    let all = nodes(&world.place.path().join("state"));
    all.values().filter(|node| matches!(node, Node::File(..))).count()
}

/// S7.31: the oldest snapshots go when the folder is too large, with the contents that nothing else refers to.
#[test]
fn the_oldest_snapshots_go_first() {
    let world = World::new();
    let mut taken = Vec::new();
    for number in 0..5 {
        world.write("file", &format!("{number}").repeat(100));
        taken.push(world.take());
    }
    let before = files(&world);
    let snapshots = open(world.place.path(), SnapshotLimits::default().with_folder_bytes(450));
    let left = snapshots.list().unwrap();
    assert!((2..5).contains(&left.len()), "{left:?}");
    assert_eq!(left, taken[5 - left.len()..]);
    assert!(files(&world) < before);
    assert!(snapshots.diff(&taken[0], &taken[4]).unwrap_err().is_gone());
    assert_eq!(snapshots.diff(&left[0], &taken[4]).unwrap().len(), 1, "what is left can be read");
    // The other one learns that its last snapshot is as it was.
    assert_eq!(world.snapshots.diff(&world.take(), &taken[4]).unwrap(), []);
}

/// S7.31: what is too old goes; the newest one stays whatever its age.
#[test]
fn the_newest_snapshot_stays_whatever_its_age() {
    let world = World::new();
    world.write("file", "1");
    world.take();
    let newest = world.take();
    let snapshots = open(world.place.path(), SnapshotLimits::default().with_age(Duration::ZERO));
    assert_eq!(snapshots.list().unwrap(), [newest]);
}

/// S7.31: where another process has removed the last snapshot and its contents, the next one is whole all the same.
#[test]
fn a_snapshot_after_a_removal_is_whole() {
    let world = World::new();
    world.write("file", "content");
    let first = world.take();
    // As a removal by another process would leave it.
    let state = world.place.path().join("state");
    for (path, node) in nodes(&state) {
        let is_part =
            ["snapshots", "blobs", "bases"].iter().any(|part| path.iter().any(|name| name == *part));
        if is_part && matches!(node, Node::File(..)) {
            fs::remove_file(state.join(path)).unwrap();
        }
    }
    let second = world.take();
    assert!(world.snapshots.diff(&first, &second).is_err());
    fs::remove_file(world.path("file")).unwrap();
    let third = world.take();
    world.snapshots.restore(world.plan(&second, &third)).unwrap();
    assert_eq!(world.read("file"), "content");
}

/// S7.31: a file that a loss of power cut short is no snapshot, and hides no other.
#[test]
fn a_snapshot_that_was_cut_short_is_none() {
    let world = World::new();
    world.write("file", "1");
    let first = world.take();
    world.write("file", "2");
    let second = world.take();
    let state = world.place.path().join("state");
    let path = nodes(&state).into_keys().filter(|path| path.iter().any(|name| name == "snapshots"));
    let newest = path.max().unwrap();
    fs::write(state.join(&newest), "").unwrap();
    let again = open(world.place.path(), SnapshotLimits::default());
    let left: Vec<Snapshot> = again.list().unwrap();
    assert_eq!(left, std::slice::from_ref(&first));
    assert!(again.diff(&first, &second).is_err());
    let third = again.take("again").unwrap();
    assert_eq!(again.diff(&first, &third).unwrap().len(), 1);
}

/// S7.31: two processes at one root take snapshots at the same time, and each is whole.
#[test]
fn two_at_one_root_do_not_disturb_each_other() {
    let world = World::new();
    for number in 0..50 {
        world.write(format!("{number}"), "0");
    }
    let others: Vec<_> = (0..3).map(|_| open(world.place.path(), SnapshotLimits::default())).collect();
    std::thread::scope(|scope| {
        for snapshots in &others {
            scope.spawn(|| {
                for round in 0..5 {
                    snapshots.take(&format!("round {round}")).unwrap();
                    snapshots.prune().unwrap();
                }
            });
        }
        for round in 0..20 {
            world.write(format!("{round}"), &format!("{round}"));
        }
    });
    let all = world.snapshots.list().unwrap();
    assert!(all.len() >= 5, "{all:?}");
    for one in &all {
        world.snapshots.diff(one, all.last().unwrap()).unwrap();
    }
}

/// S7.43: snapshots that are removed by name go with what only they hold; the others can be restored.
#[test]
fn snapshots_that_are_named_are_removed_and_the_others_stay_whole() {
    let world = World::new();
    let take = |label: &str, content: &str| {
        world.write("file", content);
        world.snapshots.take(label).unwrap()
    };
    let first = take("before turn-1 of a", &"1".repeat(100));
    let second = take("before turn-1 of b", &"2".repeat(100));
    let third = take("after turn-1 of a", &"3".repeat(100));
    let before = files(&world);
    let removed = world.snapshots.remove(|snapshot| snapshot.label().ends_with(" of a")).unwrap();
    assert_eq!((removed, world.snapshots.list().unwrap()), (2, vec![second.clone()]));
    assert!(files(&world) < before, "their contents are gone");
    for gone in [&first, &third] {
        assert!(world.snapshots.diff(gone, &second).unwrap_err().is_gone());
    }
    let newest = take("after turn-1 of b", &"4".repeat(100));
    assert_eq!(world.snapshots.diff(&second, &newest).unwrap().len(), 1);
    assert_eq!(world.snapshots.remove(|_| false).unwrap(), 0);
}
