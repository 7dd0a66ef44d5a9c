//! A chat that a store keeps: left and come back to, with its questions; and the way from one session to another.

use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};

use super::terminal::Terminal;
use crate::{Practice, safepoint};

const IDLE: &str = "Enter sends";
const CTRL_D: &str = "\x04";

/// A directory that is the chat user's home, with a store in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> String {
        self.0.path().join("store.db").display().to_string()
    }

    fn chat(&self, url: &str, session: &str) -> Terminal {
        let (store, home) = (self.store(), self.0.path().to_str().unwrap());
        let chat = ["chat", "--base-url", url, "--model", "openai:x", "--store", &store];
        let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
        Terminal::spawn(&[&chat[..], &["--session", session]].concat(), &variables)
    }

    fn ask(&self, args: &[&str]) -> (i32, String) {
        let (store, home) = (self.store(), self.0.path());
        let mut command = safepoint(&[args, &["--store", &store]].concat());
        let output = command.env("HOME", home).env("XDG_RUNTIME_DIR", home).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&printed).into_owned())
    }
}

/// A home, and a server.
struct World {
    home: Home,
    server: Practice,
}

impl World {
    fn new(replies: &serde_json::Value) -> Self {
        let server = Practice::start(&serde_json::json!({ "replies": replies }).to_string());
        Self { home: Home::new(), server }
    }

    fn chat(&self, session: &str) -> Terminal {
        self.home.chat(&self.server.url, session)
    }

    fn ask(&self, args: &[&str]) -> (i32, String) {
        self.home.ask(args)
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

/// S7.1: a reopened chat has what was said in it, for the person and for the model; another terminal gets an
/// error that names the owner.
#[test]
fn a_chat_is_come_back_to() {
    let world = World::new(&serde_json::json!([{"text": "the first answer"}, {"text": "the second answer"}]));
    let mut chat = world.chat("c");
    chat.until("stored as c; `safepoint chat --session c` reopens it");
    say(&mut chat, "one");
    chat.until("the first answer");
    chat.until(IDLE);
    let mut other = world.chat("c");
    let (code, printed) = other.end();
    assert!(code == 5 && printed.contains("safepoint stop c"), "{code}: {printed}");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);

    let mut chat = world.chat("c");
    chat.until("Reopened c");
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
    chat.until("Allow shell to run?");
    chat.until("y yes · n no");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
    let (_, listed) = world.ask(&["approvals", "c"]);
    assert!(listed.contains("open until") && listed.contains("echo yes > made"), "{listed}");

    let mut chat = world.chat("c");
    chat.until("the last turn waits for your answer");
    chat.until("$ echo yes > made");
    chat.until("y yes · n no");
    chat.press("y");
    chat.until("all done");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let (_, listed) = world.ask(&["approvals", "c"]);
    assert!(listed.contains("approved by"), "{listed}");
}

/// S7.42: a reopened chat shows what was done in it, too: the calls, and how they ended.
#[test]
fn a_reopened_chat_shows_its_calls() {
    let world = World::new(&serde_json::json!([shell("echo made it"), {"text": "it is made"}]));
    let mut chat = world.chat("c");
    chat.until(IDLE);
    say(&mut chat, "make it");
    chat.until("y yes");
    chat.press("y");
    chat.until("it is made");
    chat.until(IDLE);
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
    let mut chat = world.chat("c");
    chat.until("Reopened c");
    chat.until("▸ shell echo made it");
    chat.until("it is made");
    let screen = chat.screen();
    assert!(screen.contains("▪ shell: completed") && screen.contains("made it"), "{screen}");
    chat.press(CTRL_D);
}

/// S12.65: what stands behind the program's name is said first, in a new conversation and in one that is continued.
#[test]
fn a_first_message_on_the_command_line_is_sent() {
    let world = World::new(&serde_json::json!([{"text": "the first answer"}, {"text": "the second answer"}]));
    let (store, home) = (world.home.store(), world.home.0.path().to_str().unwrap());
    let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
    let model = ["--base-url", &world.server.url, "--model", "openai:x", "--store", &store];
    let mut chat = Terminal::spawn(&[&["fix the tests"][..], &model].concat(), &variables);
    chat.until("› fix the tests");
    chat.until("the first answer");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let mut chat = Terminal::spawn(&[&["--continue", "and now the docs"][..], &model].concat(), &variables);
    chat.until("Reopened fix the tests");
    chat.until("› and now the docs");
    chat.until("the second answer");
    chat.press(CTRL_D);
    chat.end();
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
    chat.until("/resume N opens one of them");
    say(&mut chat, "/resume 1");
    chat.until("Reopened old");
    chat.until("in the old one");
    chat.until(IDLE);
    say(&mut chat, "again");
    chat.until("back in the old one");
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
}

/// S6.10, S7.1: a chat that is left takes its own queue back, so that what it says was not sent is not sent; what others
/// pushed waits on, and is shown when the chat is come back to, where it can be taken out before anything runs.
#[test]
fn what_waits_at_the_end_is_told_and_shown_again() {
    let slow = serde_json::json!({"text": "a slow answer ".repeat(500), "chunk_chars": 1, "delay_ms": 1000});
    let world = World::new(&serde_json::json!([slow, {"text": "never asked"}]));
    let mut chat = world.chat("c");
    chat.until(IDLE);
    say(&mut chat, "go");
    chat.until("● the model");
    chat.press("mine alone");
    chat.until("› mine alone");
    chat.press("\x1b\r");
    chat.until("1. mine alone");
    let (code, printed) = world.ask(&["push", "c", "from afar"]);
    assert_eq!(code, 0, "{printed}");
    chat.until("2. from afar (from elsewhere)");
    chat.press(CTRL_D);
    let (code, screen) = chat.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("not sent: mine alone"), "{screen}");
    assert!(screen.contains("still queued in c: from afar"), "{screen}");

    let mut chat = world.chat("c");
    chat.until("a message is queued from before");
    chat.until("1. from afar (from before)");
    assert!(!chat.screen().contains("1. mine alone"), "{}", chat.screen());
    chat.press("\x1b[A");
    chat.until("› from afar");
    chat.until_it("it waits no more", |screen| !screen.contains("1. from afar"));
    chat.press(CTRL_D);
    chat.press("\x15");
    chat.until_it("it is cleared", |screen| !screen.contains("› from afar"));
    chat.press(CTRL_D);
    assert_eq!(chat.end().0, 0);
    let log = world.server.logged().iter().map(ToString::to_string).collect::<String>();
    assert!(!log.contains("mine alone") && !log.contains("from afar"), "{log}");

    let mut chat = world.chat("c");
    chat.until(IDLE);
    assert!(!chat.screen().contains("queued from before"), "{}", chat.screen());
    chat.press(CTRL_D);
    chat.end();
}

/// S6.1, S7.1: what waited before a chat was opened goes before what is said next, and not by itself, also where the last turn
/// had come to its end.
#[test]
fn what_waited_goes_before_what_is_said_next() {
    let world = World::new(&serde_json::json!([{"text": "first"}, {"text": "second"}, {"text": "third"}]));
    let mut chat = world.chat("c");
    chat.until(IDLE);
    say(&mut chat, "one");
    chat.until("first");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let (code, printed) = world.ask(&["push", "c", "two"]);
    assert_eq!(code, 0, "{printed}");
    let mut chat = world.chat("c");
    chat.until("1. two (from before)");
    assert_eq!(world.server.logged().iter().filter(|line| line["type"] == "request").count(), 1);
    say(&mut chat, "three");
    chat.until("third");
    chat.until(IDLE);
    let screen = chat.screen();
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(at("› two") < at("second") && at("second") < at("› three"), "{screen}");
    chat.press(CTRL_D);
    chat.end();
}

/// S7.5: a stop that was requested while the session had no owner ends the next chat, which says who asked
/// and when.
#[test]
fn a_stop_that_waited_says_who_asked_and_when() {
    let world = World::new(&serde_json::json!([{"text": "hello"}]));
    let mut chat = world.chat("c");
    chat.until(IDLE);
    chat.press(CTRL_D);
    chat.end();
    let (code, printed) = world.ask(&["stop", "c"]);
    assert_eq!(code, 0, "{printed}");
    let mut chat = world.chat("c");
    let (code, screen) = chat.end();
    assert_eq!(code, 10, "{screen}");
    assert!(
        screen.contains("c was asked to stop by user (person): from another terminal, at 20"),
        "{screen}"
    );
    assert!(screen.contains("not open"), "{screen}");
}

/// S6.5, S6.15: a steer comes while the model streams, by Enter or `safepoint steer`, and then an approval.
/// After the yes the next request has the steer, which starts no separate turn.
#[test]
fn a_steer_before_a_question_is_in_the_request_after_the_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for from_afar in [false, true] {
        let home = Home::new();
        let script = Script::of([Reply::text("in short: three")]);
        let server = runtime.block_on(ModelServer::start(script)).unwrap();
        let mut gate = server.gate();
        let mut chat = home.chat(&server.url(), "c");
        chat.until(IDLE);
        say(&mut chat, "count the files");
        runtime.block_on(gate.request());
        gate.headers();
        gate.script(&Reply::text("I look").and_call("shell", serde_json::json!({"command": "echo 3"})));
        while !gate.send_next_until(b"I look") {}
        chat.until("I look");
        if from_afar {
            let (code, printed) = home.ask(&["steer", "c", "please be brief"]);
            assert_eq!(code, 0, "{printed}");
        } else {
            say(&mut chat, "please be brief");
        }
        chat.until("steering the next request:");
        chat.until("1. please be brief");
        gate.finish();
        chat.until("Allow shell to run?");
        chat.until("y yes · n no");
        chat.press("y");
        chat.until("in short: three");
        chat.until(IDLE);
        chat.press(CTRL_D);
        assert_eq!(chat.end().0, 0);
        let asked: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
        assert_eq!(asked.len(), 2, "it was a turn of its own: {asked:#?}");
        assert_eq!(
            asked.iter().map(|asked| asked.matches("please be brief").count()).collect::<Vec<_>>(),
            [0, 1],
            "{asked:#?}"
        );
    }
}
