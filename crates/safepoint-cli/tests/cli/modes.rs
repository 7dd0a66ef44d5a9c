//! Modes in the product: what plan mode keeps from running, and how a plan is carried out.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{place::Place, terminal::Terminal};
use crate::{check, lines, safepoint};

const SHIFT_TAB: &str = "\x1b[Z";
const PLAN: &str = "1. write the file **new.txt**";

/// A home, a directory to work in, and a model.
struct World(Place);

impl World {
    fn new(replies: &Value) -> Self {
        Self(Place::new(replies))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path("work").join(name)
    }

    fn chat(&self, more: &[&str]) -> Terminal {
        self.0.chat(more, &[])
    }

    /// The names of the tools that each request offered.
    fn offered(&self) -> Vec<Vec<String>> {
        let requests = self.0.server.logged().into_iter().filter(|line| line["type"] == "request");
        let names = |request: Value| {
            let tools = request.pointer("/body/tools").and_then(Value::as_array).cloned().unwrap_or_default();
            tools
                .iter()
                .filter_map(|tool| Some(tool.pointer("/function/name")?.as_str()?.to_owned()))
                .collect()
        };
        requests.map(names).collect()
    }
}

fn say(terminal: &mut Terminal, text: &str) {
    terminal.press(text);
    terminal.until(text);
    terminal.press("\r");
}

fn write_file() -> Value {
    json!({"calls": [{"name": "write_file", "args": {"path": "new.txt", "content": "new"}}]})
}

/// S8.23, S12.61: in plan mode nothing is offered or runs that changes something; the plan is shown, a yes with edits allowed
/// carries it out, and the footer shows which mode holds.
#[test]
fn a_plan_is_made_without_a_change_and_carried_out_after_a_yes() {
    let world = World::new(&json!([
        write_file(),
        {"calls": [{"name": "present_plan", "args": {"plan": PLAN}}]},
        {"text": "as you see"},
        write_file(),
        {"text": "carried out"},
    ]));
    let mut chat = world.chat(&[]);
    chat.until("ask · openai:x");
    chat.press(SHIFT_TAB);
    chat.until("edits · openai:x");
    chat.press(SHIFT_TAB);
    chat.until("plan · openai:x");
    say(&mut chat, "make a file");
    chat.until("Carry out this plan?");
    chat.until("1. write the file new.txt");
    assert!(!world.path("new.txt").exists());
    chat.until("y yes · a yes, edits allowed");
    chat.press("a");
    chat.until("carried out");
    chat.until("edits · openai:x");
    assert_eq!(fs::read_to_string(world.path("new.txt")).unwrap(), "new");
    let offered = world.offered();
    let has = |request: usize, tool: &str| offered[request].iter().any(|name| name == tool);
    for request in 0..3 {
        assert!(has(request, "read_file") && has(request, "present_plan"), "{offered:?}");
        assert!(!has(request, "write_file") && !has(request, "shell"), "{offered:?}");
    }
    assert!(has(3, "write_file") && !has(3, "present_plan"), "{offered:?}");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// S8.23: Shift-Tab on an open question leaves it open; a yes after it, in plan mode, runs nothing.
#[test]
fn a_change_of_mode_answers_no_open_question() {
    let world = World::new(&json!([write_file(), {"text": "it was not to be"}]));
    let mut chat = world.chat(&[]);
    say(&mut chat, "make a file");
    chat.until("y yes · n no");
    chat.press(SHIFT_TAB);
    chat.until("edits · ");
    chat.until("? may it make new.txt");
    chat.press(SHIFT_TAB);
    chat.until("plan · ");
    chat.until("y yes · n no");
    assert!(!world.path("new.txt").exists());
    chat.press("y");
    chat.until("it was not to be");
    assert!(!world.path("new.txt").exists());
}

/// S8.23: `--mode plan` of a run, where the answer is the plan.
#[test]
fn a_run_in_plan_mode_changes_nothing_and_its_answer_is_the_plan() {
    let world = World::new(&json!([write_file(), {"text": "I would write new.txt"}]));
    let root = world.path("").display().to_string();
    let run =
        ["run", "--base-url", &world.0.server.url, "--model", "openai:x", "--tools", "all", "--root", &root];
    let output = safepoint(&[&run[..], &["--mode", "plan", "--approve", "auto", "--json", "go"]].concat())
        .output()
        .unwrap();
    check(&lines(&output.stdout), 1);
    assert!(String::from_utf8_lossy(&output.stdout).contains("I would write new.txt"));
    assert!(!world.path("new.txt").exists());
    assert!(world.offered()[0].iter().all(|name| name != "write_file" && name != "present_plan"));
}

/// S12.61
#[test]
fn what_cannot_hold_is_wrong_usage() {
    for (args, says) in [
        (&["--mode", "edits", "--approve", "auto"][..], "contradict"),
        (&["--mode", "plan", "--backend", "acp:true"], "an external agent has its own tools"),
    ] {
        let output = safepoint(&[&["run"], args, &["go"]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(says), "{said}");
    }
}
