//! What the command line says of an argument that hides something, and what a session may be called.

use std::process::Command;

use serde_json::Value;

use super::{super::safepoint, trace::journal::Journal};

/// Letters that show nothing, look like a blank and are none, or turn what is read around.
const HIDDEN: [char; 8] =
    ['\u{200b}', '\u{200d}', '\u{2060}', '\u{ad}', '\u{3164}', '\u{202e}', '\u{feff}', '\u{9b}'];

fn printed(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// S11.5: an error about an argument with hidden characters names them, whichever mistake it is.
#[test]
fn a_mistake_in_the_command_line_hides_nothing() {
    for hidden in HIDDEN {
        let name = hidden.escape_unicode().to_string();
        for line in [
            &["run", "--modle%"][..],
            &["run%"],
            &["sessions", "lst%"],
            &["run", "--approve", "aut%"],
            &["run", "--grace", "5%"],
            &["run", "--session", "s%"],
            &["run", "hi", "--model", "openai%"],
            &["run", "hi", "--tools", "shel%"],
            &["chat", "hi", "one%"],
            &["trace", "none%"],
            &["stop", "none%"],
        ] {
            let line: Vec<String> = line.iter().map(|arg| arg.replace('%', &hidden.to_string())).collect();
            let folder = tempfile::tempdir().unwrap();
            let mut command = safepoint(&line.iter().map(String::as_str).collect::<Vec<_>>());
            let (code, out, said) =
                printed(command.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path()));
            assert!(!out.contains(hidden) && !said.contains(hidden), "{name}, {line:?}: {said:?}");
            assert!(code == Some(2) && said.contains(&name), "{name}, {line:?}: {code:?} {said:?}");
        }
    }
}

/// S11.5: an argument stays within its line: it starts no new line, which would read as ours.
#[test]
fn an_argument_begins_no_line_of_its_own() {
    for line in [["run", "--nothing\nsafepoint: all is well"], ["run\nsafepoint: all is well", "x"]] {
        let (code, _, said) = printed(&mut safepoint(&line));
        assert!(code == Some(2) && said.contains(r"\nsafepoint: all is well"), "{said}");
        assert!(said.lines().all(|line| !line.starts_with("safepoint: ")), "{said}");
    }
    let (code, _, said) = printed(&mut safepoint(&["run", "--grace", "5\nsafepoint: all is well"]));
    assert!(code == Some(2) && said.lines().all(|line| !line.starts_with("safepoint: ")), "{said}");
}

/// A store of one test.
struct Store(tempfile::TempDir);

impl Store {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn tell(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let home = self.0.path();
        let store = home.join("s.db");
        // Before what follows `--`.
        let end = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
        let (flags, rest) = args.split_at(end);
        let args = [flags, &["--store", store.to_str().unwrap()], rest].concat();
        printed(safepoint(&args).env("HOME", home).env("XDG_RUNTIME_DIR", home))
    }
}

/// What names a session, with `%` where the name stands.
const NAMING: [&[&str]; 12] = [
    &["resume", "%"],
    &["trace", "%"],
    &["approvals", "%"],
    &["approve", "%"],
    &["sessions", "show", "%"],
    &["sessions", "rm", "%"],
    &["store", "export", "%"],
    &["push", "%", "x"],
    &["steer", "%", "x"],
    &["withdraw", "%", "item-1"],
    &["stop", "%"],
    &["stop", "%", "--json"],
];

/// S11.6: what can be no name of a session is a mistake in how the program was called, and not a session that is not
/// there; the program says what a name may be.
#[test]
fn what_can_be_no_session_is_wrong_usage_wherever_it_stands() {
    let long = "n".repeat(129);
    let store = Store::new();
    for name in ["", " ", "a\u{200b}", "a\nb", " a", "a ", &long] {
        for line in NAMING {
            let line: Vec<&str> = line.iter().map(|arg| if *arg == "%" { name } else { arg }).collect();
            let (code, out, said) = store.tell(&line);
            assert_eq!(code, Some(2), "{line:?}: {out}{said}");
            assert!(
                [&out, &said].iter().any(|printed| printed.contains("1 to 128 characters")),
                "{line:?}: {out}{said}"
            );
            assert!(said.len() < 1000, "{said}");
        }
        for command in ["run", "chat"] {
            let (code, _, said) = store.tell(&[command, "--session", name]);
            assert!(code == Some(2) && said.contains("1 to 128 characters"), "{command} {name:?}: {said}");
        }
    }
    let (code, _, said) = store.tell(&["run", "--session=-x", "hi"]);
    assert!(code == Some(2) && said.contains("1 to 128 characters"), "{said}");
    let (code, _, said) = store.tell(&["trace", "none"]);
    assert!(code == Some(3) && said.contains("session none not found"), "{said}");
}

/// S11.6: a name is no path. One with dots and slashes leads nowhere else, and names its session in every command.
#[test]
fn a_name_that_looks_like_a_path_is_a_name() {
    let store = Store::new();
    for name in ["..", "/x", "a/b", "../../x", "My trip", "grüße", &"n".repeat(128)] {
        let (code, out, said) = store.tell(&["run", "--session", name, "hi"]);
        assert_eq!(code, Some(0), "{name}: {out}{said}");
        let (code, out, said) = store.tell(&["sessions", "show", name, "--json"]);
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &shown["session"]), (Some(0), &name.into()), "{out}{said}");
        let (code, _, said) = store.tell(&["sessions", "rm", name]);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    let mut left: Vec<_> =
        std::fs::read_dir(store.0.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.retain(|file| !file.to_string_lossy().starts_with("s.db"));
    assert_eq!(left, ["safepoint"], "nothing is written anywhere else");
}

/// S11.6: a session that is there is found by its name, also where no new one may be called so.
#[test]
fn a_session_of_an_older_name_stays_usable() {
    let store = Store::new();
    for name in [&*"n".repeat(300), " a", "-x", "a\u{200b}"] {
        Journal::new().keep(&store.0.path().join("s.db"), name);
        for line in [&["trace"][..], &["approvals"], &["sessions", "show"], &["store", "export"], &["resume"]]
        {
            let (code, out, said) = store.tell(&[line, &["--", name]].concat());
            assert!(code.is_some_and(|code| code != 2), "{line:?} {name:?}: {out}{said}");
        }
        if name != "a\u{200b}" {
            let (code, out, said) = store.tell(&["run", &format!("--session={name}"), "and now"]);
            assert_eq!(code, Some(0), "{name:?}: {out}{said}");
        }
        assert_eq!(store.tell(&["sessions", "rm", "--", name]).0, Some(0), "{name:?}");
    }
}
