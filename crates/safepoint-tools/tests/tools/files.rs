//! Files: what is done, what is refused, and that nothing leads out of the root.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use safepoint_tools::{EditPreview, Root};

use super::support::Bench;

#[tokio::test]
async fn a_file_is_read_whole() {
    let bench = Bench::new();
    bench.put("a.txt", "one\ntwo\n");
    assert_eq!(bench.call("read_file", json!({"path": "a.txt"})).await.good(), "one\ntwo\n");
}

#[tokio::test]
async fn a_part_of_a_file_is_read_and_the_way_on_is_told() {
    let bench = Bench::new();
    bench.put("a.txt", "1\n2\n3\n4\n5\n");
    let text = bench.call("read_file", json!({"path": "a.txt", "offset": 2, "limit": 2})).await.good();
    assert_eq!(text, "2\n3\n\n[lines 2 to 3 are shown; more follow from offset 4]");
    let text = bench.call("read_file", json!({"path": "a.txt", "offset": 4})).await.good();
    assert_eq!(text, "4\n5\n");
    let text = bench.call("read_file", json!({"path": "a.txt", "offset": 9})).await.refused();
    assert!(text.contains("has fewer than 9 lines"), "{text}");
}

/// S4.7
#[tokio::test]
async fn an_oversized_file_is_read_in_bounded_parts() {
    let bench = Bench::new();
    bench.put("lines.txt", "0123456789\n".repeat(1 << 20));
    let text = bench.call("read_file", json!({"path": "lines.txt"})).await.good();
    assert!(text.len() < 64 << 10 && text.ends_with("more follow from offset 2001]"), "{} bytes", text.len());
    bench.put("one-line.txt", "x".repeat(5 << 20));
    let text = bench.call("read_file", json!({"path": "one-line.txt"})).await.good();
    assert!(text.len() < 8 << 10 && text.contains("the line is cut"), "{} bytes", text.len());
}

#[tokio::test]
async fn what_is_not_text_is_refused_or_marked() {
    let bench = Bench::new();
    bench.put("image.png", b"\x89PNG\0\0");
    let text = bench.call("read_file", json!({"path": "image.png"})).await.refused();
    assert!(text.contains("is not a text file (6 bytes)"), "{text}");
    bench.put("latin.txt", b"caf\xe9\n");
    let text = bench.call("read_file", json!({"path": "latin.txt"})).await.good();
    assert_eq!(text, "caf\u{fffd}\n\n[some bytes are not UTF-8 and are shown as \u{fffd}]");
    bench.put("empty.txt", "");
    assert_eq!(bench.call("read_file", json!({"path": "empty.txt"})).await.good(), "[the file is empty]");
}

#[tokio::test]
async fn a_missing_file_and_a_directory_are_clear_errors() {
    let bench = Bench::new();
    let text = bench.call("read_file", json!({"path": "none"})).await.refused();
    assert!(text.contains("list_dir or search shows what is there"), "{text}");
    let text = bench.call("read_file", json!({"path": "."})).await.refused();
    assert!(text.contains("is a directory; use list_dir"), "{text}");
}

#[tokio::test]
async fn a_file_is_written_with_the_directories_it_needs() {
    let bench = Bench::new();
    let args = json!({"path": "new/deep/a.txt", "content": "hello"});
    assert_eq!(bench.call("write_file", args).await.good(), "wrote 5 bytes to new/deep/a.txt");
    assert_eq!(bench.text("new/deep/a.txt"), "hello");
    assert_eq!(std::fs::read_dir(bench.path("new/deep")).unwrap().count(), 1, "nothing else is left there");
}

#[tokio::test]
async fn a_file_that_is_replaced_keeps_its_mode() {
    let bench = Bench::new();
    bench.put("run.sh", "old");
    std::fs::set_permissions(bench.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    bench.call("write_file", json!({"path": "run.sh", "content": "new"})).await.good();
    assert_eq!(bench.text("run.sh"), "new");
    assert_eq!(std::fs::metadata(bench.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
}

#[tokio::test]
async fn writing_through_a_link_inside_keeps_the_link() {
    let bench = Bench::new();
    bench.put("real.txt", "a longer old content");
    symlink("real.txt", bench.path("link")).unwrap();
    bench.call("write_file", json!({"path": "link", "content": "new"})).await.good();
    assert_eq!(bench.text("real.txt"), "new");
    assert!(std::fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn no_path_leads_out_of_the_root() {
    let bench = Bench::new();
    std::fs::write(bench.outside("secret"), "SECRET").unwrap();
    std::fs::create_dir(bench.outside("beside")).unwrap();
    symlink(bench.outside("secret"), bench.path("leak")).unwrap();
    symlink("../secret", bench.path("leak2")).unwrap();
    symlink("..", bench.path("up")).unwrap();
    symlink(bench.outside("nothing-yet"), bench.path("dangling")).unwrap();
    bench.put("sub/keep", "");
    let absolute = bench.outside("secret").display().to_string();
    let ways = [
        "../secret",
        "sub/../../secret",
        "leak",
        "leak2",
        "up/secret",
        absolute.as_str(),
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "sub/../../root/../secret",
        "dangling",
        "",
    ];
    for path in ways {
        let text = bench.call("read_file", json!({"path": path})).await.refused();
        assert!(!text.contains("SECRET"), "{path}: {text}");
        bench.call("write_file", json!({"path": path, "content": "mine"})).await.refused();
        bench.call("edit_file", json!({"path": path, "old": "SECRET", "new": "mine"})).await.refused();
    }
    for path in
        ["../new", "up/new", "sub/../../new", "../beside/new", "/tmp/safepoint-escape", "up/beside/new"]
    {
        let text = bench.call("write_file", json!({"path": path, "content": "mine"})).await.refused();
        assert!(text.contains("outside"), "{path}: {text}");
    }
    for path in ["..", "up", "up/beside", "/", "../beside"] {
        bench.call("list_dir", json!({"path": path})).await.refused();
        bench.call("search", json!({"pattern": "SECRET", "path": path})).await.refused();
    }
    let text = bench.call("search", json!({"pattern": "SECRET"})).await.good();
    assert!(text.contains("nothing found"), "links are not followed: {text}");
    assert_eq!(std::fs::read_to_string(bench.outside("secret")).unwrap(), "SECRET");
    assert!(!bench.outside("nothing-yet").exists() && !bench.outside("new").exists());
    assert_eq!(std::fs::read_dir(bench.outside("beside")).unwrap().count(), 0);
}

#[tokio::test]
async fn an_edit_replaces_what_is_unique() {
    let bench = Bench::new();
    bench.put("a.rs", "fn one() {}\nfn two() {}\n");
    let args = json!({"path": "a.rs", "old": "fn two()", "new": "fn three()"});
    assert_eq!(bench.call("edit_file", args).await.good(), "replaced 1 occurrence in a.rs");
    assert_eq!(bench.text("a.rs"), "fn one() {}\nfn three() {}\n");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_changes_nothing_and_says_what_to_mend() {
    let bench = Bench::new();
    bench.put("a.txt", "same\nsame\nother  blanks\n");
    let cases = [
        (json!({"path": "a.txt", "old": "same", "new": "x"}), "occurs 2 times"),
        (json!({"path": "a.txt", "old": "absent", "new": "x"}), "read the file again"),
        (json!({"path": "a.txt", "old": "other blanks", "new": "x"}), "with other blanks"),
        (json!({"path": "a.txt", "old": "", "new": "x"}), "use write_file"),
        (json!({"path": "a.txt", "old": "same", "new": "same"}), "nothing to do"),
    ];
    for (args, hint) in cases {
        let text = bench.call("edit_file", args).await.refused();
        assert!(text.contains(hint), "{text}");
    }
    assert_eq!(bench.text("a.txt"), "same\nsame\nother  blanks\n");
    let args = json!({"path": "a.txt", "old": "same", "new": "x", "all": true});
    assert_eq!(bench.call("edit_file", args).await.good(), "replaced 2 occurrences in a.txt");
    assert_eq!(bench.text("a.txt"), "x\nx\nother  blanks\n");
}

/// S4.2 orders the calls of one run; several agents on one root lose no edit to each other either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_by_several_agents_at_once_are_all_there() {
    const AGENTS: usize = 12;
    let bench = Bench::new();
    let padding = "x".repeat(1 << 20);
    let lines: String = (0..AGENTS).map(|agent| format!("old<{agent}>\n")).collect();
    bench.put("shared", lines + &padding);
    let edits = (0..AGENTS).map(|agent| {
        let args = json!({"path": "shared", "old": format!("old<{agent}>"), "new": format!("new<{agent}>")});
        bench.call("edit_file", args)
    });
    for reported in futures_util::future::join_all(edits).await {
        reported.good();
    }
    let text = bench.text("shared");
    assert_eq!((text.matches("new<").count(), text.matches("old<").count()), (AGENTS, 0));
}

#[tokio::test]
async fn an_edit_of_what_is_not_text_is_refused() {
    let bench = Bench::new();
    bench.put("bin", b"a\0b");
    bench.put("latin", b"a\xe9b");
    for path in ["bin", "latin"] {
        let text = bench.call("edit_file", json!({"path": path, "old": "a", "new": "b"})).await.refused();
        assert!(text.contains("is not"), "{text}");
    }
}

#[tokio::test]
async fn a_directory_is_listed_in_order_with_kinds() {
    let bench = Bench::new();
    bench.put("b.txt", "12345");
    bench.put("a/inner", "");
    symlink("b.txt", bench.path("c")).unwrap();
    assert_eq!(bench.call("list_dir", json!({})).await.good(), "a/\nb.txt  5 bytes\nc@\n");
    assert_eq!(bench.call("list_dir", json!({"path": "a"})).await.good(), "inner  0 bytes\n");
    let text = bench.call("list_dir", json!({"path": "b.txt"})).await.refused();
    assert!(text.contains("not a directory"), "{text}");
}

#[tokio::test]
async fn a_large_directory_is_listed_in_part() {
    let bench = Bench::new();
    for number in 0..1005 {
        bench.put(&format!("{number:04}"), "");
    }
    let text = bench.call("list_dir", json!({})).await.good();
    assert!(text.ends_with("[5 more entries are not shown; use search]\n"), "{text}");
    assert_eq!(text.lines().count(), 1001);
}

/// A read-only place: a clear error, nothing half-written.
#[tokio::test]
async fn a_file_that_cannot_be_written_is_a_clear_error() {
    let bench = Bench::new();
    bench.put("dir/keep", "");
    let text = bench.call("write_file", json!({"path": "dir", "content": "x"})).await.refused();
    assert!(text.contains("is a directory"), "{text}");
    let text = bench.call("write_file", json!({"path": "dir/keep/below", "content": "x"})).await.refused();
    assert!(text.contains("a part of the path is not a directory"), "{text}");
}

/// S4.16: a file without an end in reach is looked through so far and no further, whichever lines are wanted.
#[tokio::test]
async fn an_endless_file_is_read_no_further_than_the_limit() {
    const SIZE: u64 = 1 << 40;
    let bench = Bench::new();
    bench.put("sparse.txt", "first\n".repeat(4096));
    let file = std::fs::File::options().write(true).open(bench.path("sparse.txt")).unwrap();
    if file.set_len(SIZE).is_err() {
        return safepoint_testkit::skipped("this file system holds no sparse file of a terabyte");
    }
    let text = bench.call("read_file", json!({"path": "sparse.txt", "offset": 4096})).await.good();
    assert!(text.starts_with("first\n") && text.contains("the file is longer, but only its first"), "{text}");
    let text = bench.call("read_file", json!({"path": "sparse.txt", "offset": 4098})).await.refused();
    assert!(text.contains("lies more than 268435456 bytes into it; use shell"), "{text}");
    assert!(text.len() < 1000, "{} bytes", text.len());
}

/// S8.10: a file that commonly holds secrets is not read unasked, by whatever name; `search` does not look into it.
#[tokio::test]
async fn a_file_that_commonly_holds_secrets_is_not_read_unasked() {
    let mut bench = Bench::new();
    bench.put("web/.env", "KEY=hunter2\n");
    bench.put("notes.txt", "nothing\n");
    symlink("web/.env", bench.path("link.txt")).unwrap();
    for path in ["web/.env", "./web/../web/.env", "link.txt"] {
        let text = bench.call("read_file", json!({"path": path})).await.refused();
        assert!(text.contains("commonly holds secrets") && !text.contains("hunter2"), "{text}");
    }
    let text = bench.call("search", json!({"pattern": "hunter2|nothing"})).await.good();
    assert!(text.contains("notes.txt:1:nothing") && !text.contains("hunter2"), "{text}");
    assert!(text.contains("[1 files that commonly hold secrets were passed over"), "{text}");
    bench.allowed = vec!["read_file/secret"];
    assert_eq!(bench.call("read_file", json!({"path": "web/.env"})).await.good(), "KEY=hunter2\n");
}

/// S8.21
#[tokio::test]
async fn a_file_that_changed_since_it_was_shown_is_left_as_it_is() {
    let bench = Bench::new();
    let root = Root::open(bench.path("")).unwrap();
    bench.put("a.txt", "one\ntwo\n");
    let edit = json!({"path": "a.txt", "old": "two", "new": "three"});
    let write = json!({"path": "a.txt", "content": "new\n"});
    let shown = [
        ("edit_file", edit),
        ("write_file", write),
        ("write_file", json!({"path": "b.txt", "content": "b"})),
    ]
    .map(|(tool, args)| (tool, EditPreview::of(&root, tool, &args).unwrap().bound_args()));
    bench.put("a.txt", "two\nby another\n");
    bench.put("b.txt", "by another\n");
    for (tool, args) in &shown {
        let text = bench.call(tool, args.clone()).await.refused();
        assert!(text.contains("has changed since a person was asked"), "{text}");
    }
    assert_eq!(
        (bench.text("a.txt"), bench.text("b.txt")),
        ("two\nby another\n".into(), "by another\n".into())
    );
    bench.put("a.txt", "one\ntwo\n");
    bench.call(shown[0].0, shown[0].1.clone()).await.good();
    assert_eq!(bench.text("a.txt"), "one\nthree\n");
}

/// S8.21: a call that ran, was cut off before its end was recorded, and runs again.
#[tokio::test]
async fn a_write_that_has_been_done_is_no_change_since_it_was_shown() {
    let bench = Bench::new();
    let root = Root::open(bench.path("")).unwrap();
    let args = json!({"path": "a.txt", "content": "new\n"});
    let args = EditPreview::of(&root, "write_file", &args).unwrap().bound_args();
    bench.call("write_file", args.clone()).await.good();
    bench.call("write_file", args).await.good();
}

/// S8.20
#[tokio::test]
async fn what_an_edit_changed_is_reported_as_it_was_done() {
    let bench = Bench::new();
    bench.put("a.txt", "one\ntwo\none\n");
    let edit = json!({"path": "a.txt", "old": "one", "new": "1", "all": true});
    bench
        .start("edit_file", edit)
        .until_progress("--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n-one\n+1\n")
        .await;
    let write = json!({"path": "new.txt", "content": "x\n"});
    bench.start("write_file", write).until_progress("--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+x\n").await;
    bench.put("b.bin", b"\0\0");
    let write = json!({"path": "b.bin", "content": "x\n"});
    bench.start("write_file", write).until_progress("replaced a binary file of 2 bytes").await;
}

/// S8.22
#[tokio::test]
async fn only_the_accepted_hunks_are_made() {
    let bench = Bench::new();
    let root = Root::open(bench.path("")).unwrap();
    let old: String = (1..=30).map(|number| format!("line {}\n", number % 10)).collect();
    let new = old.replacen("line 2\n", "line two\n", 1) + "line 31\n";
    let whole = json!({"path": "a.txt", "content": new});
    let every = json!({"path": "a.txt", "old": "line 5\n", "new": "five\n", "all": true});
    bench.put("a.txt", &old);
    let of = |tool, args: &serde_json::Value| EditPreview::of(&root, tool, args).unwrap();
    let (write, edit) = (of("write_file", &whole), of("edit_file", &every));
    assert_eq!((write.hunks().len(), edit.hunks().len()), (2, 3));
    assert!(edit.with_hunks(&[]).is_none() && edit.with_hunks(&[7]).is_none());
    bench.call("write_file", write.with_hunks(&[0]).unwrap()).await.good();
    assert_eq!(bench.text("a.txt"), old.replacen("line 2\n", "line two\n", 1));
    // One of three equal places: the edit names the place, and needs no `all`.
    bench.put("a.txt", &old);
    bench.call("edit_file", edit.with_hunks(&[1]).unwrap()).await.good();
    let lines: Vec<String> = old
        .lines()
        .enumerate()
        .map(|(at, line)| if at == 14 { "five".into() } else { line.into() })
        .collect();
    assert_eq!(bench.text("a.txt"), lines.join("\n") + "\n");
}

/// S8.20
#[test]
fn a_call_that_would_fail_says_so_before_it_is_made() {
    let bench = Bench::new();
    let root = Root::open(bench.path("")).unwrap();
    bench.put("a.txt", "one\n");
    bench.put("b.bin", b"\0");
    bench.put("l.txt", b"caf\xe9\n");
    let of = |tool, args| EditPreview::of(&root, tool, &args).unwrap();
    for (tool, args, why) in [
        ("edit_file", json!({"path": "a.txt", "old": "two", "new": "x"}), "`old` does not occur"),
        ("edit_file", json!({"path": "none", "old": "two", "new": "x"}), "list_dir or search"),
        ("edit_file", json!({"path": "b.bin", "old": "two", "new": "x"}), "not a text file"),
        ("write_file", json!({"path": "../a", "content": "x"}), "lies outside"),
        ("write_file", json!({"path": ".", "content": "x"}), "is a directory"),
    ] {
        let failure = of(tool, args).failure().map(str::to_owned).unwrap();
        assert!(failure.contains(why), "{failure}");
    }
    let replaced =
        |path| of("write_file", json!({"path": path, "content": "x"})).replaced().map(str::to_owned);
    assert_eq!(replaced("b.bin").as_deref(), Some("a binary file of 1 bytes"));
    assert_eq!(replaced("l.txt").as_deref(), Some("a file of 5 bytes that is not UTF-8"));
    assert!(of("write_file", json!({"path": "new", "content": "x"})).is_new());
    assert!(EditPreview::of(&root, "shell", &json!({"command": "ls"})).is_none());
}
