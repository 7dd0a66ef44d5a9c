//! Edits in a real terminal: the diff in the question, hunk by hunk, the pager, and a file that changes meanwhile.

use std::{fs, path::PathBuf};

use safepoint_testkit::wait::until;
use serde_json::{Value, json};

use super::{
    place::{IDLE, Place},
    terminal::Terminal,
};
use crate::safepoint;

/// The hint of a question that can be answered.
const ASKS: &str = "y yes · n no";

/// A directory to work in, and a server.
struct World(Place);

impl World {
    fn new(replies: &Value) -> Self {
        let place = Place::new(replies);
        fs::write(place.path("work/a.txt"), numbered()).unwrap();
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path("work").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn chat(&self, more: &[&str]) -> Terminal {
        // A pager that waits for a line at the terminal, so that a test sees it open.
        let pager = "cat; echo THE PAGER; read line < /dev/tty";
        let mut chat = self.0.chat(more, &[("PAGER", pager)]);
        chat.press("edit it");
        chat.until("› edit it");
        chat.press("\r");
        chat.until(ASKS);
        chat
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let (home, store) = (self.0.text(""), self.0.text("store.db"));
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        let output = command.env("HOME", &home).env("XDG_RUNTIME_DIR", &home).output().unwrap();
        let said = [&output.stdout[..], &output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    }

    /// What the model learned about its call.
    fn told(&self) -> String {
        let all = self.0.server.logged();
        all.iter().rev().find(|line| line["type"] == "request").unwrap().to_string()
    }
}

fn numbered() -> String {
    (1..=30).map(|number| format!("line {number}\n")).collect()
}

/// A call that changes two places of a file, and an answer.
fn replaces() -> Value {
    let content = numbered().replace("line 2\n", "line two\n").replace("line 29\n", "line twenty-nine\n");
    json!([{"calls": [{"name": "write_file", "args": {"path": "a.txt", "content": content}}]}, {"text": "all done"}])
}

/// S8.20, S8.22: a diff in the question, one of two hunks accepted, the diff of what was made, and what the model learns.
#[test]
fn an_edit_is_approved_hunk_by_hunk() {
    let world = World::new(&replaces());
    let mut chat = world.chat(&[]);
    chat.until("+2 -2, in 2 hunks");
    chat.until("29 +line twenty-nine");
    chat.press("h");
    chat.until("hunk 1 of 2:");
    chat.until("y make this hunk");
    chat.press("n");
    chat.until("hunk 2 of 2:");
    chat.until("y make this hunk");
    chat.press("y");
    chat.until("all done");
    chat.until(IDLE);
    assert_eq!(world.read("a.txt"), numbered().replace("line 29\n", "line twenty-nine\n"));
    let told = world.told();
    assert!(told.contains("accepted 1 of the 2 hunks") && told.contains("-line 2"), "{told}");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// S8.21
#[test]
fn a_file_that_changes_while_its_question_is_open_is_left() {
    let world = World::new(&replaces());
    let mut chat = world.chat(&[]);
    fs::write(world.path("a.txt"), "by another hand\n").unwrap();
    chat.press("y");
    chat.until("all done");
    assert_eq!(world.read("a.txt"), "by another hand\n");
    let told = world.told();
    assert!(told.contains("has changed since a person was asked"), "{told}");
    chat.press("\x04");
    chat.end();
}

/// S8.20: the pager has the terminal, Ctrl-C in it stops nothing, and the question is there again behind it.
#[test]
fn the_pager_has_the_terminal_and_gives_it_back() {
    let world = World::new(&replaces());
    let mut chat = world.chat(&[]);
    chat.press("v");
    chat.until("THE PAGER");
    chat.press("y\r");
    chat.until(ASKS);
    assert_eq!(world.read("a.txt"), numbered(), "what the pager was given answered nothing");
    chat.press("v");
    until("the pager, once more", || chat.raw().matches("THE PAGER").count() == 2);
    chat.press("\x03");
    chat.until(ASKS);
    chat.press("y");
    chat.until("all done");
    assert!(world.read("a.txt").contains("line two"));
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// S8.20, S8.21: the question in another process shows the diff, and its yes is bound to that.
#[test]
fn another_process_shows_the_diff_and_its_yes_is_bound_to_it() {
    let world = World::new(&replaces());
    let (root, url) = (world.0.text("work"), world.0.server.url.clone());
    let run = ["run", "--session", "trip", "--base-url", &url, "--model", "openai:x", "--root", &root];
    let (code, said) = world.run(&[&run[..], &["--tools", "write_file", "edit it"]].concat());
    assert_eq!(code, 11, "{said}");
    let (_, said) = world.run(&["approvals", "trip"]);
    assert!(said.contains("Allow write_file to change a.txt?  +2 -2, in 2 hunks"), "{said}");
    assert!(said.contains("    2 -line 2\n") && said.contains("   29 +line twenty-nine"), "{said}");
    let (code, said) = world.run(&["approve", "trip"]);
    assert!(code == 0 && said.contains("if the file is still as it is now"), "{said}");
    fs::write(world.path("a.txt"), "by another hand\n").unwrap();
    let (code, said) = world.run(&["resume", "trip"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(world.read("a.txt"), "by another hand\n");
    assert!(world.told().contains("has changed since a person was asked"), "{}", world.told());
}

/// S8.20: without a terminal the diff of what was made is plain text.
#[test]
fn without_a_terminal_an_edit_shows_what_it_changed() {
    let world = World::new(&replaces());
    let (root, url) = (world.0.text("work"), world.0.server.url.clone());
    let run = ["run", "--base-url", &url, "--model", "openai:x", "--root", &root, "--approve", "auto"];
    let mut command = safepoint(&[&run[..], &["--tools", "write_file", "edit it"]].concat());
    let output = command.env("HOME", world.0.text("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("    2 -line 2\n    2 +line two\n"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}
