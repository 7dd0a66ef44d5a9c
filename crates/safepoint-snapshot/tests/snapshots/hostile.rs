//! Names, links and files that try to lead a restore elsewhere.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
};

use safepoint_snapshot::Snapshots;

use super::support::{World, chmod, said};

/// S7.34: a directory that became a link out of the root is not followed: what it leads to is neither read nor changed.
#[test]
fn a_directory_that_became_a_link_leads_nowhere() {
    let world = World::new();
    world.write("d/file", "inside");
    let before = world.take();
    let outside = world.place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    fs::write(outside.join("more"), "outside").unwrap();
    fs::remove_dir_all(world.path("d")).unwrap();
    symlink(&outside, world.path("d")).unwrap();
    let after = world.take();
    let restored = world.snapshots.restore(world.plan(&before, &after)).unwrap();
    assert_eq!(world.read("d/file"), "inside");
    assert!(!world.path("d").is_symlink());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
    world.undo(&restored);
    assert_eq!(fs::read_link(world.path("d")).unwrap(), outside);
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside");
}

/// S7.34: the same where it becomes one between the plan and the restore.
#[test]
fn a_directory_that_becomes_a_link_after_the_plan_leads_nowhere() {
    let world = World::new();
    world.write("d/file", "old");
    world.write("d/gone", "old");
    let before = world.take();
    world.write("d/file", "new");
    world.write("d/made", "new");
    fs::remove_file(world.path("d/gone")).unwrap();
    let after = world.take();
    let plan = world.plan(&before, &after);
    let outside = world.place.path().join("outside");
    fs::rename(world.path("d"), &outside).unwrap();
    symlink(&outside, world.path("d")).unwrap();
    let restored = world.snapshots.restore(plan).unwrap();
    assert!(restored.changes.is_empty(), "{restored:?}");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "new");
    assert!(outside.join("made").exists() && !outside.join("gone").exists());
}

/// S7.34: names that are no text, or look like the lines of a manifest, come back byte by byte.
#[test]
fn names_of_any_bytes_come_back() {
    let world = World::new();
    let names: [&[u8]; 6] = [b"\xff\xfe", b"a\nb", b" ", b"- x", b"%41", b"d\x01/\xc3"];
    for name in names {
        world.write(OsStr::from_bytes(name), "old");
    }
    let (before, first) = (world.take(), world.nodes());
    for name in names {
        fs::remove_file(world.path(OsStr::from_bytes(name))).unwrap();
    }
    let after = world.take();
    world.snapshots.restore(world.plan(&before, &after)).unwrap();
    assert_eq!(world.nodes(), first);
    let again = super::support::open(world.place.path(), safepoint_snapshot::SnapshotLimits::default());
    assert_eq!(again.diff(&before, &after).unwrap().len(), names.len());
}

/// S7.34: a pipe is neither waited for nor removed, and permissions beyond read and write come back.
#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let world = World::new();
    world.write("file", "old");
    world.write("script", "old");
    chmod(world.path("script"), 0o4751);
    let before = world.take();
    fs::remove_file(world.path("file")).unwrap();
    chmod(world.path("script"), 0o600);
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, world.path("file"), rustix::fs::FileType::Fifo, pipe, 0).unwrap();
    let after = world.take();
    let plan = world.plan(&before, &after);
    assert_eq!(said(&plan).1.len(), 1, "{plan:?}");
    world.snapshots.restore(plan).unwrap();
    let nodes = world.nodes();
    assert_eq!(nodes[std::path::Path::new("file")], super::support::Node::Other);
    assert!(
        matches!(nodes[std::path::Path::new("script")], super::support::Node::File(0o4751, _)),
        "{nodes:?}"
    );
}

/// S7.34: what may not be read is named, not removed and not replaced. Root reads everything, so that there it is restored.
#[test]
fn what_may_not_be_read_is_kept() {
    let world = World::new();
    world.write("secret", "old");
    world.write("closed/x", "old");
    let before = world.take();
    world.write("secret", "new");
    chmod(world.path("secret"), 0);
    chmod(world.path("closed"), 0);
    let after = world.take();
    let plan = world.plan(&before, &after);
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(said(&plan).1.is_empty(), is_root, "{plan:?}");
    world.snapshots.restore(plan).unwrap();
    if is_root {
        assert_eq!((world.read("secret"), world.read("closed/x")), ("old".into(), "old".into()));
    }
    chmod(world.path("closed"), 0o755);
}

/// S7.34: a root that is no directory is a clear error, and the folder of snapshots is the user's alone.
#[test]
fn the_folder_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.write("a", "1");
    world.take();
    for (path, node) in super::support::nodes(&world.place.path().join("state")) {
        let mode = fs::metadata(world.place.path().join("state").join(&path)).unwrap().permissions().mode();
        let is_below_private = path.components().count() > 1;
        assert!(is_below_private || mode & 0o077 == 0, "{path:?}: {node:?}");
    }
    let error =
        Snapshots::open(world.path("a"), world.place.path().join("state"), Default::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot open the directory "), "{error}");
}
