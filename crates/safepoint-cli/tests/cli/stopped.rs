//! A command stops a session that waits for a person and has no owner: what may still be answered.

use std::process::Output;

use serde_json::{Value, json};

use crate::{Practice, lines, safepoint};

/// A session `s` without an owner that waits for approval of a command that creates a file.
struct World {
    folder: tempfile::TempDir,
    server: Practice,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = format!("echo ran >> {}", folder.path().join("made").display());
        let call = json!({"calls": [{"name": "shell", "args": {"command": command}}]});
        let replies = json!({"replies": [call, {"text": "all done"}]});
        let world = Self { folder, server: Practice::start(&replies.to_string()) };
        assert_eq!(world.work(&["run", "go", "--session", "s"]).status.code(), Some(11));
        world
    }

    fn work(&self, args: &[&str]) -> Output {
        let usual = ["--base-url", &self.server.url, "--model", "openai:x", "--tools", "shell", "--json"];
        let root = self.folder.path().to_str().unwrap();
        self.safepoint(&[args, &usual, &["--root", root]].concat())
    }

    fn safepoint(&self, args: &[&str]) -> Output {
        let store = self.folder.path().join("store.db").display().to_string();
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        command.env("TMPDIR", self.folder.path()).output().unwrap()
    }

    fn ask(&self, args: &[&str]) -> (i32, String) {
        let output = self.safepoint(args);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    fn questions(&self) -> Vec<Value> {
        lines(&self.safepoint(&["approvals", "s", "--json"]).stdout)
    }

    fn id(&self) -> String {
        self.questions()[0]["approval_id"].as_str().unwrap().to_owned()
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("made")).map_or(0, |made| made.lines().count())
    }

    fn asked_model(&self) -> usize {
        self.server.logged().iter().filter(|line| line["type"] == "request").count()
    }
}

/// S8.3, S7.5 / T9: a session without an owner is stopped while it waits. A later yes is refused and says
/// why; opening the session runs nothing and calls no model; an explicit resume asks again, under a new id.
#[test]
fn a_yes_after_a_stop_is_refused_and_revives_nothing() {
    for how in [&["stop", "s"][..], &["stop", "s", "--now"], &["stop", "s", "--at", "after-model"]] {
        let world = World::new();
        let id = world.id();
        let (code, printed) = world.ask(how);
        assert!(code == 0 && printed.contains("withdrawn"), "{how:?}: {printed}");
        let (code, printed) = world.ask(&["approve", "s", &id]);
        assert!(code == 4 && printed.contains("a stop took this question back"), "{how:?}: {printed}");
        let (code, printed) = world.ask(&["approve", "s"]);
        assert!(code == 4 && printed.contains("a stop took this question back"), "{how:?}: {printed}");
        let (_, listed) = world.ask(&["sessions", "ls"]);
        assert!(listed.contains("stopped") && !listed.contains("suspended"), "{how:?}: {listed}");
        let (_, shown) = world.ask(&["sessions", "show", "s"]);
        assert!(shown.contains("s: stopped") && shown.contains("stops    1 waiting"), "{how:?}: {shown}");
        let asked = world.asked_model();
        assert!(asked > 0);
        assert_eq!(world.work(&["resume", "s"]).status.code(), Some(10), "{how:?}: the stop is seen to");
        assert_eq!((world.runs(), world.asked_model()), (0, asked), "{how:?}");
        assert_eq!(world.work(&["resume", "s"]).status.code(), Some(11), "{how:?}: it asks again");
        assert_eq!((world.runs(), world.asked_model()), (0, asked), "{how:?}");
        let again = world.questions().into_iter().find(|one| one["open"] == true).unwrap();
        assert_ne!(again["approval_id"], json!(id), "{how:?}");
        assert_eq!(world.ask(&["approve", "s"]).0, 0, "{how:?}");
        assert_eq!((world.work(&["resume", "s"]).status.code(), world.runs()), (Some(0), 1), "{how:?}");
    }
}

/// S8.3, S6.7: the end of the session's loop leaves the question as it is: it may still be answered.
#[test]
fn the_end_of_the_loop_leaves_the_question_open() {
    let world = World::new();
    assert_eq!(world.ask(&["stop", "s", "--at", "turn-end"]).0, 0);
    assert_eq!(world.ask(&["approve", "s"]).0, 0);
    let codes = [world.work(&["resume", "s"]).status.code(), world.work(&["resume", "s"]).status.code()];
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert_eq!(world.runs(), 1);
}
