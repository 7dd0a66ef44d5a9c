//! A chat that a store keeps: left and come back to, with its questions; and the way from one session to another.

use super::terminal::Terminal;
use crate::{Practice, safepoint};

const IDLE: &str = "Enter sends";
const CTRL_D: &str = "\x04";

/// A store, and a directory that is the home of whoever chats.
struct World {
    folder: tempfile::TempDir,
    server: Practice,
}

impl World {
    fn new(replies: &serde_json::Value) -> Self {
        let server = Practice::start(&serde_json::json!({ "replies": replies }).to_string());
        Self { folder: tempfile::tempdir().unwrap(), server }
    }

    fn store(&self) -> String {
        self.folder.path().join("store.db").display().to_string()
    }

    fn chat(&self, session: &str) -> Terminal {
        let (store, home) = (self.store(), self.folder.path().to_str().unwrap());
        let chat = ["chat", "--base-url", &self.server.url, "--model", "openai:x", "--store", &store];
        let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
        Terminal::spawn(&[&chat[..], &["--session", session]].concat(), &variables)
    }

    fn ask(&self, args: &[&str]) -> (i32, String) {
        let (store, home) = (self.store(), self.folder.path());
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        let output = command.env("HOME", home).env("XDG_RUNTIME_DIR", home).output().unwrap();
        let told = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&told).into_owned())
    }
}

fn say(chat: &mut Terminal, text: &str) {
    chat.press(text);
    // What is typed is seen before it is sent: no key is taken for another's.
    chat.until(&format!("› {text}"));
    chat.press("\r");
}

fn shell(command: &str) -> serde_json::Value {
    serde_json::json!({"calls": [{"name": "shell", "args": {"command": command}}]})
}

/// S7.1: what was said in a chat is there when it is come back to, for the person and for the model; another terminal is
/// told who has it.
#[test]
fn a_chat_is_come_back_to() {
    let world = World::new(&serde_json::json!([{"text": "the first answer"}, {"text": "the second answer"}]));
    let mut chat = world.chat("c");
    chat.until("kept as c: safepoint chat --session c comes back to it");
    say(&mut chat, "one");
    chat.until("the first answer");
    chat.until(IDLE);
    let mut other = world.chat("c");
    let (code, told) = other.end();
    assert!(code == 5 && told.contains("safepoint stop c"), "{code}: {told}");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);

    let mut chat = world.chat("c");
    chat.until("c, as it was left");
    chat.until("› one");
    chat.until("the first answer");
    chat.until(IDLE);
    say(&mut chat, "two");
    chat.until("the second answer");
    let asked = world.server.logged();
    let last = asked.iter().rev().find(|line| line["type"] == "request").unwrap().to_string();
    assert!(last.contains("the first answer"), "{last}");
    chat.press(CTRL_D);
    chat.end();
}

/// S8.3, S8.4: a chat that is left while it asks leaves the question open: another process sees it, and the chat puts it
/// again when it is come back to.
#[test]
fn a_question_outlives_its_chat_and_is_put_again() {
    let world = World::new(&serde_json::json!([shell("echo yes > made"), {"text": "all done"}]));
    let mut chat = world.chat("c");
    chat.until(IDLE);
    say(&mut chat, "go");
    chat.until("? shell wants to run with");
    chat.until("y yes · n no");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
    let (_, listed) = world.ask(&["approvals", "c"]);
    assert!(listed.contains("open until") && listed.contains("echo yes > made"), "{listed}");

    let mut chat = world.chat("c");
    chat.until("the last turn waits for your answer");
    chat.until("\"command\": \"echo yes > made\"");
    chat.until("y yes · n no");
    chat.press("y");
    chat.until("all done");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let (_, listed) = world.ask(&["approvals", "c"]);
    assert!(listed.contains("approved by"), "{listed}");
}

/// The sessions are listed with their last state, and one that is kept is gone on with.
#[test]
fn another_session_is_listed_and_gone_on_with() {
    let world = World::new(&serde_json::json!([{"text": "in the old one"}, {"text": "back in the old one"}]));
    let mut chat = world.chat("old");
    chat.until(IDLE);
    say(&mut chat, "hello");
    chat.until("in the old one");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let mut chat = world.chat("new");
    chat.until(IDLE);
    say(&mut chat, "/sessions");
    chat.until("1  old");
    chat.until("/resume N goes on with one of them");
    say(&mut chat, "/resume 1");
    chat.until("old, as it was left");
    chat.until("in the old one");
    chat.until(IDLE);
    say(&mut chat, "again");
    chat.until("back in the old one");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}
