//! Commands of an agent in the sandbox, from outside: what runs unasked, what asks, and what no command reaches.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::{Practice, check, lines, safepoint};

/// A folder with a root in it, and what is outside of that.
struct World(tempfile::TempDir);

impl World {
    /// None, with a line that says why, where this system does not enforce everything.
    fn new() -> Option<Self> {
        let listed = safepoint(&["sandbox"]).output().unwrap();
        if !listed.status.success() {
            eprintln!("not tried: {}", String::from_utf8_lossy(&listed.stdout));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/.git/hooks")).unwrap();
        std::fs::write(folder.path().join("root/.git/config"), "[core]\n").unwrap();
        Some(Self(folder))
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn program(&self, args: &[&str]) -> Command {
        let mut command = safepoint(args);
        command.current_dir(self.path("root")).env("HOME", self.path("home"));
        command
    }

    /// A model that asks for these calls in one round.
    fn run(&self, calls: &[(&str, Value)], args: &[&str]) -> Output {
        let calls: Vec<Value> =
            calls.iter().map(|(name, args)| json!({"name": name, "args": args})).collect();
        let server = Practice::start(&json!({"replies": [{"calls": calls}, {"text": "ok"}]}).to_string());
        let usual =
            ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "all", "--json", "go"];
        self.program(&[&usual[..], args].concat()).output().unwrap()
    }
}

/// Each call's status and text, in order.
fn calls(output: &Output) -> Vec<(String, String)> {
    let seen = lines(&output.stdout);
    check(&seen, 1);
    let receipt = &seen.last().unwrap()["receipt"]["calls"];
    let texts = seen.iter().filter(|line| line["type"] == "fact" || line.to_string().contains("call_ended"));
    let texts: String = texts.map(Value::to_string).collect();
    let receipt = receipt.as_array().unwrap().iter();
    receipt.map(|call| (call["status"].as_str().unwrap().to_owned(), texts.clone())).collect()
}

/// S4.27, S8.15: in the mode that allows edits, what stays inside runs unasked; what leaves, and what git executes, asks.
#[test]
fn what_stays_inside_runs_unasked_and_nothing_else_does() {
    let Some(world) = World::new() else { return };
    let outside = world.path("out");
    let given = [
        ("shell", json!({"command": "echo in > made"})),
        ("write_file", json!({"path": "written", "content": "x"})),
        ("shell", json!({"command": format!("echo out > {}", outside.display())})),
        (
            "shell_outside",
            json!({"command": format!("echo out > {}", outside.display()), "opens": "files", "why": "x"}),
        ),
        ("write_file", json!({"path": ".git/hooks/pre-commit", "content": "evil"})),
    ];
    let output = world.run(&given, &["--approve", "edits"]);
    let statuses: Vec<String> = calls(&output).into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "denied", "denied"]);
    assert!(world.path("root/made").exists() && world.path("root/written").exists());
    assert!(!outside.exists() && !world.path("root/.git/hooks/pre-commit").exists());

    let asked = world.run(&given[..2], &["--approve", "ask"]);
    let statuses: Vec<String> = calls(&asked).into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, ["denied", "denied"], "the other modes are as they were");
    let off = world.run(&given[2..3], &["--approve", "auto", "--sandbox", "off"]);
    assert!(outside.exists(), "{}", String::from_utf8_lossy(&off.stderr));
}

/// S8.15: without all of the sandbox each command asks, and one line says why.
#[test]
fn a_root_that_holds_the_home_directory_asks() {
    let Some(world) = World::new() else { return };
    let given = [("shell", json!({"command": "echo x > made"}))];
    let root = world.path("root");
    let output =
        world.run(&given, &["--approve", "edits", "--root", root.parent().unwrap().to_str().unwrap()]);
    // The home directory is made, so that it is there to be held.
    assert_eq!(calls(&output)[0].0, "completed", "there is no home directory in it yet");
    std::fs::create_dir(world.path("home")).unwrap();
    let output =
        world.run(&given, &["--approve", "edits", "--root", root.parent().unwrap().to_str().unwrap()]);
    assert_eq!(calls(&output)[0].0, "denied");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("confined in part only, and each of them asks: the root holds your home"),
        "{told}"
    );
}

/// S4.27: no command reads or changes the store of its own session, wherever that is, nor decides for its run.
#[test]
fn no_command_reaches_its_own_store_or_session() {
    let Some(world) = World::new() else { return };
    for store in ["store.db", "root/store.db"] {
        let store = world.path(store);
        let line = format!(
            "cat {0}; rm -f {0}; echo x > {0}; ls -la {0}; {1} stop s --store {0}",
            store.display(),
            env!("CARGO_BIN_EXE_safepoint"),
        );
        let place = store.to_str().unwrap();
        let args = ["--approve", "auto", "--session", "s", "--store", place];
        let output = world.run(&[("shell", json!({ "command": line }))], &args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(calls(&output)[0].0, "completed");
        let text = calls(&output)[0].1.clone();
        assert!(!text.contains("SQLite format"), "{text}");
        let check = world.program(&["store", "check", "--store", place]).output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        assert!(std::fs::read(Path::new(place)).unwrap().starts_with(b"SQLite format"));
    }
}

/// S4.27: a person can try it: the command's code is the program's.
#[test]
fn a_person_can_try_it() {
    let Some(world) = World::new() else { return };
    let line = "echo in > made; echo out > ../out; exit 7";
    let output = world.program(&["sandbox", "--", "sh", "-c", line]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(world.path("root/made").exists() && !world.path("out").exists());
    let opened = world.program(&["sandbox", "--open", "files", "--", "sh", "-c", line]).output().unwrap();
    assert_eq!(opened.status.code(), Some(7));
    assert!(world.path("out").exists());
    let killed = world.program(&["sandbox", "--", "sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(137));
    let whole = world.program(&["sandbox", "--root", "/", "--", "true"]).output().unwrap();
    assert_eq!(whole.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&whole.stderr).contains("it is the whole system"));
}

/// S4.27: the config file opens more for every command, or turns it off.
#[test]
fn the_config_file_opens_more() {
    let Some(world) = World::new() else { return };
    std::fs::create_dir(world.path("cache")).unwrap();
    let config = world.path("config.toml");
    let cache = world.path("cache");
    std::fs::write(&config, format!("[commands]\nwrite = [{:?}]\n", cache.to_str().unwrap())).unwrap();
    let line = format!("echo x > {}/made", cache.display());
    let given = [("shell", json!({"command": line})), ("shell", json!({"command": "echo x > ../out"}))];
    let args = ["--approve", "edits", "--config", config.to_str().unwrap()];
    let output = world.run(&given, &args);
    assert!(world.path("cache/made").exists(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!world.path("out").exists());
    std::fs::write(&config, "[commands]\nsandbox = \"off\"\n").unwrap();
    let asked = world.run(&given[1..], &args);
    assert_eq!(calls(&asked)[0].0, "denied", "off, a command asks in this mode");
}
