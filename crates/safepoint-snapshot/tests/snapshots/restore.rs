//! A plan, what it keeps, and a restore that is undone by another.

use std::fs;

use safepoint_snapshot::{NotTaken, PathChange, SnapshotLimits, WhyKept};

use super::support::{World, chmod, link, said};

/// S7.32, S7.33: every kind of change is taken back, by whatever means it was made within the span, and the undo brings it again.
#[test]
fn a_restore_takes_back_every_kind_of_change_and_is_undone() {
    let world = World::new();
    for name in ["changed", "removed", "mode", "file-to-dir", "dir-to-file/a/b", "dir-to-link/x", "gone/x"] {
        world.write(name, "old");
    }
    link("changed", world.path("link"));
    link("changed", world.path("link-to-file"));
    fs::create_dir(world.path("empty")).unwrap();
    let (before, first) = (world.take(), world.nodes());

    world.write("changed", "new");
    world.write("made/deep/x", "new");
    chmod(world.path("mode"), 0o755);
    for name in ["removed", "file-to-dir", "link", "link-to-file"] {
        fs::remove_file(world.path(name)).unwrap();
    }
    for name in ["dir-to-file", "dir-to-link", "gone", "empty"] {
        fs::remove_dir_all(world.path(name)).unwrap();
    }
    world.write("file-to-dir/x", "new");
    world.write("dir-to-file", "new");
    link("elsewhere", world.path("dir-to-link"));
    link("removed", world.path("link"));
    world.write("link-to-file", "new");
    chmod(world.path("made"), 0o700);
    let (after, second) = (world.take(), world.nodes());

    let plan = world.plan(&before, &after);
    let (changes, kept) = said(&plan);
    assert_eq!(kept, []);
    assert!(changes.contains(&"dir-to-file/a/b".to_owned()), "{changes:?}");
    assert_eq!(world.nodes(), second, "a plan changes nothing");
    let restored = world.snapshots.restore(plan).unwrap();
    assert_eq!((world.nodes(), restored.kept_back.as_slice()), (first, [].as_slice()));
    let done: Vec<_> = restored.changes.iter().map(|one| one.path.to_string_lossy().into_owned()).collect();
    assert_eq!(done, changes);
    let undone = world.undo(&restored);
    assert_eq!((world.nodes(), undone.kept_back.as_slice()), (second, [].as_slice()));
}

/// S7.32: a file that was changed outside of the spans is kept, with what stands in its way, and restored once confirmed.
#[test]
fn what_others_changed_is_kept_until_it_is_confirmed_by_name() {
    let world = World::new();
    for name in ["both", "agent", "person", "between"] {
        world.write(name, "0");
    }
    let turn_1 = world.take();
    world.write("agent", "1");
    world.write("both", "1");
    world.write("made/by-agent", "1");
    let turn_1_end = world.take();
    world.write("between", "person");
    let turn_2 = world.take();
    world.write("between", "agent");
    let turn_2_end = world.take();
    world.write("both", "person");
    world.write("person", "person");
    world.write("made/by-person", "person");

    let spans = [(turn_1.clone(), turn_1_end), (turn_2, turn_2_end)];
    let mut plan = world.snapshots.plan(&turn_1, &spans).unwrap();
    let others = |path: &str| (path.to_owned(), WhyKept::ChangedByOthers);
    let blocked = ("made".to_owned(), WhyKept::Blocked);
    let kept = vec![others("between"), others("both"), blocked, others("made/by-person"), others("person")];
    assert_eq!(said(&plan), (vec!["agent".to_owned(), "made/by-agent".to_owned()], kept));
    assert!(
        !plan.confirm("made") && !plan.confirm("agent") && !plan.confirm("nowhere"),
        "by its own name only"
    );
    assert!(plan.confirm("both") && plan.confirm("made/by-person"));
    let (changes, kept) = said(&plan);
    assert_eq!(changes, ["agent", "both", "made", "made/by-agent", "made/by-person"]);
    assert_eq!(kept, [others("between"), others("person")]);
    let restored = world.snapshots.restore(plan).unwrap();
    assert_eq!((world.read("agent"), world.read("both")), ("0".into(), "0".into()));
    assert_eq!((world.read("between"), world.read("person")), ("agent".into(), "person".into()));
    assert!(!world.path("made").exists());
    world.undo(&restored);
    assert_eq!((world.read("both"), world.read("made/by-person")), ("person".into(), "person".into()));
}

/// S7.32: of what a snapshot does not say, nothing is removed.
#[test]
fn what_was_ignored_or_too_large_then_is_never_removed() {
    let world = World::with(SnapshotLimits::default().with_file_bytes(10));
    world.write(".gitignore", "target\n");
    world.write("target/kept", "1");
    world.write("large", &"x".repeat(11));
    let before = world.take();
    world.write(".gitignore", "");
    world.write("large", "small");
    world.write("target/new", "1");
    let after = world.take();
    let plan = world.plan(&before, &after);
    let unknown = |path: &str, why| (path.to_owned(), WhyKept::NotInSnapshot(why));
    let kept = vec![
        unknown("large", NotTaken::TooLarge),
        unknown("target", NotTaken::Ignored),
        unknown("target/kept", NotTaken::Ignored),
        unknown("target/new", NotTaken::Ignored),
    ];
    assert_eq!(said(&plan), (vec![".gitignore".to_owned()], kept));
    world.snapshots.restore(plan).unwrap();
    assert_eq!((world.read("target/kept"), world.read("large")), ("1".into(), "small".into()));
}

/// S7.32: a file that git ignores by now is still restored, and a directory with ignored files stays.
#[test]
fn a_rule_that_was_added_hides_no_change() {
    let world = World::new();
    world.write("code", "1");
    let before = world.take();
    world.write(".gitignore", "code\n*.o\n");
    world.write("code", "2");
    world.write("made/x.o", "built");
    world.write("made/x.c", "2");
    let after = world.take();
    let plan = world.plan(&before, &after);
    let (changes, kept) = said(&plan);
    assert_eq!(changes, [".gitignore", "code", "made/x.c"]);
    assert_eq!(kept, [("made".to_owned(), WhyKept::Blocked)]);
    world.snapshots.restore(plan).unwrap();
    assert_eq!((world.read("code"), world.read("made/x.o")), ("1".into(), "built".into()));
}

/// S7.33: what cannot be saved first is kept; once confirmed it is saved whatever its size, and the undo brings it back.
#[test]
fn a_file_that_became_too_large_is_saved_before_it_is_replaced() {
    let world = World::with(SnapshotLimits::default().with_file_bytes(10));
    world.write("log", "short");
    let before = world.take();
    world.write("log", &"y".repeat(100));
    let after = world.take();
    let mut plan = world.plan(&before, &after);
    assert_eq!(said(&plan).1, [("log".to_owned(), WhyKept::NotSaved(NotTaken::TooLarge))]);
    assert!(plan.confirm("log"));
    assert_eq!(plan.changes()[0].change, PathChange::Replace);
    let restored = world.snapshots.restore(plan).unwrap();
    assert_eq!(world.read("log"), "short");
    world.undo(&restored);
    assert_eq!(world.read("log"), "y".repeat(100));
}

/// S7.33: what changes between the plan and the restore is left as it is.
#[test]
fn what_changes_after_the_plan_is_left() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.write(name, "old");
    }
    let before = world.take();
    for name in ["a", "b", "new"] {
        world.write(name, "new");
    }
    fs::remove_file(world.path("c")).unwrap();
    let after = world.take();
    let plan = world.plan(&before, &after);
    world.write("a", "person");
    world.write("c", "person");
    world.write("new", "person");
    let restored = world.snapshots.restore(plan).unwrap();
    let kept: Vec<_> =
        restored.kept_back.iter().map(|kept| (kept.path.to_str().unwrap(), &kept.why)).collect();
    let meanwhile = &WhyKept::ChangedMeanwhile;
    assert_eq!(kept, [("a", meanwhile), ("c", meanwhile), ("new", meanwhile)]);
    let read = ["a", "b", "c", "new"].map(|name| world.read(name));
    assert_eq!(read, ["person", "old", "person", "person"]);
}

/// S7.33: a content that is damaged in the store is found before anything is changed.
#[test]
fn a_damaged_content_is_kept_out_of_the_plan() {
    let world = World::new();
    world.write("d/x", "old content");
    let before = world.take();
    fs::remove_dir_all(world.path("d")).unwrap();
    world.write("d", "a file");
    let after = world.take();
    let mut found = 0;
    for (path, node) in super::support::nodes(&world.place.path().join("state")) {
        if node == super::support::Node::File(0o600, b"old content".to_vec()) {
            fs::write(world.place.path().join("state").join(path), "other content").unwrap();
            found += 1;
        }
    }
    assert_eq!(found, 1);
    let plan = world.plan(&before, &after);
    let (changes, kept) = said(&plan);
    assert_eq!(changes, ["d"]);
    assert!(
        matches!(&kept[..], [(path, WhyKept::Failed(why))] if path == "d/x" && why.contains("altered")),
        "{kept:?}"
    );
}
