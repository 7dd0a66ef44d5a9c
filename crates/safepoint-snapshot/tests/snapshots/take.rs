//! What a snapshot holds, and what it names instead.

use std::{fs, path::Path};

use safepoint_snapshot::{NotTaken, PathChange, SnapshotLimits};

use super::support::{World, chmod, link};

fn omitted(world: &World, snapshot: &safepoint_snapshot::Snapshot) -> Vec<(String, NotTaken)> {
    let all = world.snapshots.not_taken(snapshot).unwrap();
    all.into_iter().map(|(path, why)| (path.to_string_lossy().into_owned(), why)).collect()
}

/// S7.30: contents, permissions, links and directories differ; a touched file with the same content does not.
#[test]
fn a_diff_names_what_differs_and_nothing_else() {
    let world = World::new();
    for name in ["same", "changed", "removed", "mode", "touched", "d/inner"] {
        world.write(name, "1");
    }
    link("a", world.path("link"));
    let before = world.take();
    world.write("changed", "2");
    world.write("new/file", "1");
    world.write("touched", "1");
    fs::remove_file(world.path("removed")).unwrap();
    chmod(world.path("mode"), 0o700);
    fs::remove_file(world.path("link")).unwrap();
    link("b", world.path("link"));
    let after = world.take();
    let changes = world.snapshots.diff(&before, &after).unwrap();
    let changes: Vec<_> = changes.iter().map(|one| (one.path.to_str().unwrap(), one.change)).collect();
    assert_eq!(
        changes,
        [
            ("changed", PathChange::Replace),
            ("link", PathChange::Replace),
            ("mode", PathChange::Permissions),
            ("new", PathChange::Create),
            ("new/file", PathChange::Create),
            ("removed", PathChange::Remove),
        ]
    );
}

/// S7.30: `.gitignore` is honoured, also in a directory and without a repository; what was taken before stays taken.
#[test]
fn what_git_ignores_is_not_taken_and_named() {
    let world = World::new();
    world.write(".gitignore", "/target\n*.log\n!keep.log\n");
    world.write("sub/.gitignore", "own\n");
    for name in ["target/x", "a.log", "keep.log", "sub/own", "own", "src/b.log", ".git/config", "tracked"] {
        world.write(name, "1");
    }
    let first = world.take();
    let ignored = NotTaken::Ignored;
    assert_eq!(
        omitted(&world, &first),
        [
            (".git".to_owned(), NotTaken::Excluded),
            ("a.log".to_owned(), ignored),
            ("src/b.log".to_owned(), ignored),
            ("sub/own".to_owned(), ignored),
            ("target".to_owned(), ignored),
        ]
    );
    assert_eq!(first.left_out(), 0, "what git ignores is no surprise");
    world.write(".gitignore", "tracked\nsrc\n");
    world.write("tracked", "2");
    let second = world.take();
    let changes = world.snapshots.diff(&first, &second).unwrap();
    let changes: Vec<_> = changes.iter().map(|one| one.path.to_str().unwrap()).collect();
    assert_eq!(changes, [".gitignore", "tracked"], "what was ignored before is unknown, and no new file");
}

/// S7.30: what is too large, too much, or no file is named with its reason.
#[test]
fn what_is_too_large_or_no_file_is_named() {
    let limits = SnapshotLimits::default().with_file_bytes(10).with_snapshot_bytes(20);
    let world = World::with(limits);
    for (name, size) in [("a", 8), ("b", 11), ("c", 8), ("d", 8), ("e", 4)] {
        world.write(name, &"x".repeat(size));
    }
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, world.path("pipe"), rustix::fs::FileType::Fifo, pipe, 0).unwrap();
    let taken = world.take();
    let named = |name: &str, why| (name.to_owned(), why);
    assert_eq!(
        omitted(&world, &taken),
        [named("b", NotTaken::TooLarge), named("d", NotTaken::NoRoom), named("pipe", NotTaken::Special)]
    );
    assert_eq!(taken.left_out(), 3);
}

/// S7.30: a root with more files than the limit has no snapshot, and says what to do.
#[test]
fn a_root_of_too_many_files_is_refused() {
    let world = World::with(SnapshotLimits::default().with_files(10));
    for number in 0..11 {
        world.write(format!("{number}"), "");
    }
    let error = world.snapshots.take("x").unwrap_err();
    assert!(error.is_too_many() && error.to_string().contains("more than 10 files"), "{error}");
    assert!(world.snapshots.list().unwrap().is_empty());
}

/// S7.30: excluded files, the folder of snapshots itself, and git's own are never taken.
#[test]
fn what_is_excluded_is_never_taken() {
    let world = World::new();
    let root = world.root();
    world.write("chat.db", "1");
    world.write("state/other", "1");
    let limits = SnapshotLimits::default().excluding(root.join("chat.db")).excluding("/nowhere/else");
    let inside = safepoint_snapshot::Snapshots::open(&root, root.join("state/snapshots"), limits).unwrap();
    let taken = inside.take("x").unwrap();
    let own = inside.not_taken(&taken).unwrap();
    let own: Vec<_> = own.iter().map(|(path, why)| (path.as_path(), *why)).collect();
    assert_eq!(own[0], (Path::new("chat.db"), NotTaken::Excluded));
    assert_eq!(own.len(), 2, "{own:?}");
    assert!(own[1].0.starts_with("state/snapshots") && own[1].1 == NotTaken::Excluded, "{own:?}");
}
