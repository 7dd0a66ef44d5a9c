//! Going back in a chat: the conversation, the files, and what cannot be undone.

use std::{
    fs,
    path::{Path, PathBuf},
};

use safepoint_testkit::wait::until;
use serde_json::{Value, json};

use super::{
    kept::check,
    place::{IDLE, Place},
    terminal::Terminal,
};
use crate::safepoint;

const CTRL_D: &str = "\x04";
const CTRL_U: &str = "\x15";

/// A home, a directory to work in, and a server.
struct World(Place);

impl World {
    fn new(replies: &Value) -> Self {
        Self(Place::new(replies))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path("work").join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn text(&self, name: &str) -> String {
        self.0.text(name)
    }

    fn chat(&self, more: &[&str]) -> Terminal {
        self.0.chat(more, &[])
    }

    /// The exit code, what is on stdout, and all that was said.
    fn ask(&self, args: &[&str]) -> (i32, String, String) {
        let (home, store) = (self.text(""), self.text("work/store.db"));
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        let output = command.env("HOME", &home).env("XDG_RUNTIME_DIR", &home).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&[&output.stdout[..], &output.stderr].concat());
        (output.status.code().unwrap(), text(&output.stdout), said)
    }

    /// Waits until the newest snapshot is the one after this turn: it is taken once the turn is quiet, behind what is shown.
    fn until_after(&self, turn: usize) {
        let label = format!("label after%20turn-{turn}%20");
        until(format_args!("the snapshot after turn {turn}"), || {
            let newest = snapshots(&self.0.path("")).into_iter().max();
            newest.is_some_and(|(_, its)| its.starts_with(&label))
        });
    }

    /// The messages of the last request.
    fn last_request(&self) -> String {
        let all = self.0.server.logged();
        all.iter().rev().find(|line| line["type"] == "request").unwrap().to_string()
    }
}

/// The snapshots below this directory, each the lines of its file that say when it was taken, and its label.
fn snapshots(below: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(below).into_iter().flatten().filter_map(Result::ok);
    let found = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => snapshots(&path),
        path if below.ends_with("snapshots") => fs::read_to_string(path)
            .ok()
            .and_then(|text| {
                let mut lines = text.lines().skip(1).map(str::to_owned);
                lines.next().zip(lines.next())
            })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    });
    found.collect()
}

fn call(name: &str, args: Value) -> Value {
    json!({ "name": name, "args": args })
}

/// A turn that answers, and one that writes a file, runs a command and answers.
fn two_turns() -> Value {
    let calls = [
        call("write_file", json!({"path": "a.txt", "content": "agent"})),
        call("shell", json!({"command": "echo made > b.txt"})),
    ];
    json!([{"text": "the first answer"}, {"calls": calls}, {"text": "the second answer"}, {"text": "anew"}, {"text": "the fifth reply"}])
}

fn say(chat: &mut Terminal, text: &str, answer: &str) {
    chat.press(text);
    chat.until(&format!("› {text}"));
    chat.press("\r");
    chat.until(answer);
    chat.until(IDLE);
}

fn ask(chat: &mut Terminal, command: &str, answer: &str) {
    chat.press(command);
    chat.until(&format!("› {command}"));
    chat.press("\r");
    chat.until(answer);
}

/// S7.35, S7.36: before anything happens it is named what goes back and what cannot; a file that another hand changed is left;
/// the undo gives back the files and the conversation.
#[test]
fn going_back_restores_files_names_what_stays_done_and_is_undone() {
    let world = World::new(&two_turns());
    world.write("a.txt", "person");
    world.write("notes.md", "old");
    let store = world.text("work/store.db");
    let mut chat = world.chat(&["--approve", "auto", "--session", "c", "--store", &store]);
    say(&mut chat, "one", "the first answer");
    say(&mut chat, "two", "the second answer");
    assert_eq!(
        (world.read("a.txt").unwrap(), world.read("b.txt").unwrap()),
        ("agent".into(), "made\n".into())
    );
    world.until_after(2);
    world.write("notes.md", "new, by a person");

    ask(&mut chat, "/rewind", "Turns to go back to");
    // The newest turn is marked.
    chat.press("\r");
    chat.until("b both go back");
    let screen = chat.screen();
    for row in [
        "Going back to before turn-2: two",
        "without 1 turn, in a new session",
        "replaced      a.txt",
        "removed       b.txt",
        "notes.md  changed by another person or program",
        "shell echo made > b.txt (done)",
    ] {
        assert!(screen.contains(row), "{row}:\n{screen}");
    }
    let is_undone = |row: &str| row.contains("_file ") && row.contains("(done)");
    assert!(!screen.lines().any(is_undone), "its file is restored:\n{screen}");
    assert_eq!(world.read("a.txt").unwrap(), "agent", "nothing has happened yet");

    chat.press("b");
    chat.until("Restored 2 files; /undo takes that back");
    chat.until("› two");
    let is_left = chat.screen().contains("left as is    notes.md");
    assert!(is_left, "{}", chat.screen());
    assert_eq!((world.read("a.txt").unwrap(), world.read("b.txt")), ("person".into(), None));
    assert_eq!(world.read("notes.md").unwrap(), "new, by a person");
    chat.press(CTRL_U);
    say(&mut chat, "instead", "anew");
    let sent = world.last_request();
    assert!(sent.contains("the first answer") && !sent.contains("the second answer"), "{sent}");
    assert!(sent.contains("what they did stands"), "the model learns of the calls: {sent}");

    ask(&mut chat, "/undo", "Back in c");
    chat.until("Restored 2 files");
    chat.until(IDLE);
    assert_eq!(
        (world.read("a.txt").unwrap(), world.read("b.txt").unwrap()),
        ("agent".into(), "made\n".into())
    );
    say(&mut chat, "further", "the fifth reply");
    let sent = world.last_request();
    assert!(sent.contains("the second answer"), "{sent}\n{}", chat.screen());
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}

/// S7.35: a chat that is not stored goes back too; two Esc of an idle chat list the turns, and Esc changes nothing.
#[test]
fn a_chat_in_memory_goes_back_and_escape_changes_nothing() {
    let world = World::new(&two_turns());
    let mut chat = world.chat(&["--approve", "auto"]);
    say(&mut chat, "one", "the first answer");
    say(&mut chat, "two", "the second answer");
    chat.press("\x1b");
    chat.until("Esc again lists the turns to go back to");
    chat.press("\x1b");
    chat.until("Turns to go back to");
    chat.press("\r");
    chat.until("b both go back");
    chat.press("\x1b");
    chat.until(IDLE);
    assert_eq!(world.read("a.txt").unwrap(), "agent");
    ask(&mut chat, "/rewind 2", "b both go back");
    chat.press("c");
    chat.until("Went back to before turn-2");
    chat.until("› two");
    assert_eq!(world.read("a.txt").unwrap(), "agent", "the conversation alone");
    chat.press(CTRL_U);
    say(&mut chat, "instead", "anew");
    let sent = world.last_request();
    assert!(sent.contains("the first answer") && !sent.contains("the second answer"), "{sent}");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}

/// S7.35: what a turn does after its approval is the turn's; a file of another hand is restored once it is named; before the
/// first turn the conversation begins anew.
#[test]
fn what_an_approved_call_changed_goes_back_and_a_named_file_too() {
    let write = call("write_file", json!({"path": "a.txt", "content": "agent"}));
    let world = World::new(&json!([{"calls": [write]}, {"text": "written"}, {"text": "anew"}]));
    world.write("a.txt", "person");
    world.write("my notes", "old");
    let store = world.text("work/store.db");
    let mut chat = world.chat(&["--session", "c", "--store", &store]);
    ask(&mut chat, "write", "y yes · n no");
    chat.press("y");
    chat.until("written");
    chat.until(IDLE);
    world.until_after(1);
    world.write("my notes", "new");
    ask(&mut chat, "/rewind 1 nowhere", "not among the files that are left: nowhere");
    ask(&mut chat, "/rewind 1 \"my notes\"", "b both go back");
    let screen = chat.screen();
    assert!(screen.contains("replaced      a.txt") && screen.contains("replaced      my notes"), "{screen}");
    chat.press("b");
    chat.until("Restored 2 files");
    assert_eq!(
        (world.read("a.txt").unwrap(), world.read("my notes").unwrap()),
        ("person".into(), "old".into())
    );
    chat.until("› write");
    chat.press(CTRL_U);
    say(&mut chat, "hello", "anew");
    assert!(!world.last_request().contains("write_file\\\""), "{}", world.last_request());
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}

/// S7.35: without snapshots the files stay, and that is said before.
#[test]
fn without_snapshots_the_conversation_alone_goes_back() {
    let world = World::new(&two_turns());
    let mut chat = world.chat(&["--approve", "auto", "--no-snapshots"]);
    say(&mut chat, "one", "the first answer");
    say(&mut chat, "two", "the second answer");
    ask(&mut chat, "/rewind 2", "c the conversation goes back · Esc changes nothing");
    let screen = chat.screen();
    assert!(screen.contains("not restored: snapshots are off"), "{screen}");
    assert!(screen.contains("write_file a.txt (done)"), "what it wrote stays:\n{screen}");
    assert!(!world.0.path(".local/state/safepoint/snapshots").exists());
    chat.press("\x1b");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}

/// S7.36: a command does the same without a terminal; its plan changes nothing.
#[test]
fn a_command_forks_and_restores_after_its_plan_was_shown() {
    let world = World::new(&two_turns());
    world.write("notes.md", "old");
    let store = world.text("work/store.db");
    let mut chat = world.chat(&["--approve", "auto", "--session", "c", "--store", &store]);
    say(&mut chat, "one", "the first answer");
    say(&mut chat, "two", "the second answer");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
    world.write("notes.md", "new");

    let fork = ["sessions", "fork", "c", "--at", "1", "--files", "--name", "back"];
    let (code, out, said) = world.ask(&[&fork[..], &["--plan", "--json"]].concat());
    assert_eq!(code, 0, "{said}");
    let line = &check(&out)[0];
    assert_eq!(line["restored"], json!(["a.txt", "b.txt"]));
    assert_eq!(line["left"][0]["path"], "notes.md");
    assert_eq!(line["not_undone"], json!(["shell {\"command\":\"echo made > b.txt\"} (done)"]));
    assert!(line["fork"].is_null() && world.read("a.txt").is_some(), "nothing was done: {line}");

    let (code, _, said) = world.ask(&[&fork[..], &["--also", "nowhere"]].concat());
    assert!(code == 3 && said.contains("not among the files that are left: nowhere"), "{code}: {said}");
    let (code, _, said) = world.ask(&[&fork[..], &["--also", "notes.md"]].concat());
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("back continues c after turn-1") && said.contains("Restored 3 files"), "{said}");
    assert_eq!((world.read("a.txt"), world.read("notes.md").unwrap()), (None, "old".into()));
    let (code, _, said) = world.ask(&fork);
    assert!(code == 5 && said.contains("there is a session back already"), "{code}: {said}");
    let (code, _, said) = world.ask(&["sessions", "fork", "c", "--files"]);
    assert!(code == 2 && said.contains("name it with --at"), "{code}: {said}");
    let (code, _, said) = world.ask(&["sessions", "fork", "c", "--files", "--at", "2"]);
    assert!(code == 3 && said.contains("turn-2 is the last turn of c"), "{code}: {said}");
}
