//! Search: names and contents, bounded, without what git ignores.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::support::Bench;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put(".gitignore", "target/\n*.log\n");
    bench.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    bench.put("src/lib.rs", "// Needle, and needle again\n");
    bench.put("target/out.rs", "needle\n");
    bench.put("noise.log", "needle\n");
    bench.put(".git/config", "needle\n");
    bench.put("blob", b"needle\0needle");
    bench
}

#[tokio::test]
async fn contents_are_found_with_place_and_line() {
    let text = bench().call("search", json!({"pattern": "needle"})).await.good();
    let expected = "src/lib.rs:1:// Needle, and needle again\nsrc/main.rs:2:    needle();\n\
                    [1 files that are binary, too large or unreadable were passed over]\n";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn names_are_found() {
    let text = bench().call("search", json!({"pattern": r"main\.rs$", "in": "names"})).await.good();
    assert_eq!(text, "src/main.rs\n");
}

#[tokio::test]
async fn the_search_is_narrowed_by_directory_glob_and_case() {
    let bench = bench();
    let text = bench.call("search", json!({"pattern": "needle", "glob": "main.*"})).await.good();
    assert_eq!(text, "src/main.rs:2:    needle();\n");
    let text =
        bench.call("search", json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src"})).await.good();
    assert_eq!(text.lines().count(), 2, "{text}");
    let text = bench.call("search", json!({"pattern": "nowhere", "path": "src"})).await.good();
    assert_eq!(text, "[nothing found]\n");
}

#[tokio::test]
async fn many_and_long_matches_are_cut_with_notice() {
    let bench = Bench::new();
    bench.put("many.txt", "hit\n".repeat(500));
    let text = bench.call("search", json!({"pattern": "hit"})).await.good();
    assert!(text.ends_with("[there may be more: narrow the pattern, the path or the glob]\n"), "{text}");
    assert_eq!(text.lines().count(), 201);
    bench.put("many.txt", "hit".repeat(1000));
    let text = bench.call("search", json!({"pattern": "hit"})).await.good();
    assert!(text.ends_with("[cut]\n") && text.len() < 400, "{text}");
}

#[tokio::test]
async fn a_bad_pattern_and_a_bad_glob_say_what_to_mend() {
    let bench = Bench::new();
    let text = bench.call("search", json!({"pattern": "("})).await.refused();
    assert!(text.contains("`pattern` is not a regular expression"), "{text}");
    let text = bench.call("search", json!({"pattern": "a", "glob": "[" })).await.refused();
    assert!(text.contains("`glob` cannot be understood"), "{text}");
}

/// S4.16: a directory that becomes a link while it is walked leads to no name outside of the root.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_outside_are_not_told_while_a_directory_is_exchanged_for_a_link() {
    const SEARCHES: usize = 150;
    const PAIRS: usize = 24;
    let bench = Bench::new();
    std::fs::create_dir_all(bench.outside("secret/deep")).unwrap();
    std::fs::write(bench.outside("secret/deep/outside-name"), "").unwrap();
    let mut pairs = Vec::new();
    for number in 0..PAIRS {
        let (folder, link) = (format!("sub{number}"), format!("link{number}"));
        bench.put(&format!("{folder}/deep/plain-{number}"), "");
        std::os::unix::fs::symlink(bench.outside("secret"), bench.path(&link)).unwrap();
        pairs.push((bench.path(&folder), bench.path(&link)));
    }
    let over = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&over);
    let exchanging = std::thread::spawn(move || {
        for (one, other) in pairs.iter().cycle().take_while(|_| !reported.load(Ordering::Relaxed)) {
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }
    });
    let mut found = Vec::new();
    for _ in 0..SEARCHES {
        found.push(bench.call("search", json!({"pattern": "-", "in": "names"})).await.good());
    }
    over.store(true, Ordering::Relaxed);
    exchanging.join().unwrap();
    let leaks = found.iter().filter(|text| text.contains("outside-name")).count();
    assert_eq!(leaks, 0, "of {SEARCHES} searches");
    assert!(found.iter().any(|text| text.contains("plain-")), "what is inside is found");
}
