//! Items for a stored session: an owner that answers takes them, the store does where none lives, and a
//! waiting client sees the same outcome.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
};

use rustix::process::Signal;
use safepoint_testkit::wait::until;
use serde_json::Value;

use super::{
    kept::{Kept, check, until_printed},
    terminal::Terminal,
};
use crate::{pause, signal};

const SLEEPS: &str = r#"{"calls":[{"name":"shell","args":{"command":"sleep 1000"}}]}"#;

/// A chat on a kept session, without a terminal; ended with its test, also where that fails.
struct Chat<'a> {
    kept: &'a Kept,
    child: Child,
}

impl<'a> Chat<'a> {
    /// Started, and reachable.
    fn start(kept: &'a Kept) -> Self {
        let model = ["--base-url", &kept.server.url, "--model", "openai:x", "--approve", "auto"];
        let chat = [&["chat", "--session", "s", "--tools", "shell"][..], &model].concat();
        let child = kept
            .command(&chat, kept.store().to_str().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let chat = Self { kept, child };
        chat.until("it answers", |shown| shown["detail"]["pid"].is_u64());
        chat
    }

    /// The same, with a turn whose call is running.
    fn at_work(kept: &'a Kept) -> Self {
        let mut chat = Self::start(kept);
        chat.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let mut stderr = BufReader::new(chat.child.stderr.as_mut().unwrap());
        let mut printed = String::new();
        while !printed.contains("▸ shell") {
            assert!(stderr.read_line(&mut printed).unwrap() > 0, "ended: {printed}");
        }
        chat
    }

    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        until(what, || {
            let shown = self.kept.tell(&["sessions", "show", "s", "--json"]).1;
            serde_json::from_str(&shown).is_ok_and(|shown| is_so(&shown))
        });
    }
}

impl Drop for Chat<'_> {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It has ended.
        }
    }
}

fn asked(kept: &Kept, args: &[&str]) -> (i32, Vec<Value>) {
    let (code, said, printed) = kept.tell(&[args, &["--json"]].concat());
    let lines = check(&said);
    assert!(lines.last().is_some_and(|line| line["last"] == true), "{args:?}: {said}{printed}");
    (code, lines)
}

/// The code and the status of the last reply, and how many replies there were.
fn word(kept: &Kept, args: &[&str]) -> (i32, String, usize) {
    let (code, lines) = asked(kept, args);
    (code, lines.last().unwrap()["status"].as_str().unwrap().to_owned(), lines.len())
}

fn is(code: i32, status: &str, lines: usize) -> (i32, String, usize) {
    (code, status.to_owned(), lines)
}

/// A client that waits for an item and has seen its acceptance.
fn waiter(kept: &Kept, args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let args = [args, &["--wait", "--json"]].concat();
    let mut child =
        kept.command(&args, kept.store().to_str().unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&reply["status"], &reply["last"]), (&"accepted".into(), &false.into()), "{line}");
    (child, said)
}

fn ends(waiter: (Child, BufReader<std::process::ChildStdout>)) -> (i32, Value) {
    let (mut child, mut said) = waiter;
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    (child.wait().unwrap().code().unwrap(), serde_json::from_str(&rest).unwrap())
}

/// S6.2, S6.3, S6.6, S6.10, S6.12: the owner of a stored session answers a push as any other does. Each
/// rejection has its code and its reason, each item one name, and a waiting client gets the outcome or a
/// timeout.
#[test]
fn a_living_owner_refuses_with_a_reason() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS}]}}"#));
    let _chat = Chat::at_work(&kept);
    assert_eq!(word(&kept, &["push", "s", "no", "--policy", "reject", "--wait"]), is(5, "busy", 1));
    assert_eq!(word(&kept, &["push", "s", "no", "--policy", "reject"]), is(5, "busy", 1));
    let other = ["push", "s", "no", "--policy", "preempt", "--turn", "turn-77", "--wait"];
    assert_eq!(word(&kept, &other), is(5, "turn_mismatch", 1));
    let (code, lines) = asked(&kept, &["push", "s", "two", "--id", "mine"]);
    let item = lines[0]["detail"]["item"].as_str().unwrap();
    assert_eq!((code, &lines[0]["status"]), (0, &"accepted".into()));
    let again = asked(&kept, &["push", "s", "two", "--id", "mine"]);
    assert_eq!((again.0, again.1[0]["detail"]["item"].as_str()), (0, Some(item)), "the same is the same");
    assert_eq!(word(&kept, &["push", "s", "other", "--id", "mine"]), is(5, "other_content", 1));
    let shown = asked_one(&kept, &["sessions", "show", "s"]);
    assert_eq!(shown["items_waiting"], 1, "what was refused is nowhere: {shown}");
    assert_eq!(shown["detail"]["waiting"], serde_json::json!([{"item": item, "text": "two"}]));
    let late = ["push", "s", "three", "--wait", "--timeout", "300ms"];
    assert_eq!(word(&kept, &late), is(7, "timed_out", 2));
    let (code, lines) = asked(&kept, &["withdraw", "s", item]);
    assert_eq!((code, &lines[0]["detail"]["text"]), (0, &"two".into()));
    assert_eq!(asked(&kept, &["withdraw", "s", item]).0, 4);
    assert_eq!(asked(&kept, &["withdraw", "s", "item-99"]).0, 3);
}

fn asked_one(kept: &Kept, args: &[&str]) -> Value {
    check(&kept.tell(&[args, &["--json"]].concat()).1).remove(0)
}

/// S6.5: a steer with `return` comes back at once without a running turn, and one that may wait is answered.
#[test]
fn an_idle_owner_gives_a_steer_back_or_answers_it() {
    let kept = Kept::start(r#"{"replies":[{"text":"hello"}]}"#);
    let _chat = Chat::start(&kept);
    assert_eq!(word(&kept, &["steer", "s", "x", "--or", "return", "--wait"]), is(4, "no_active_turn", 1));
    let (code, lines) = asked(&kept, &["steer", "s", "x", "--wait"]);
    assert_eq!((code, &lines[1]["detail"]["fate"]["fate"]), (0, &"completed".into()), "{lines:?}");
    assert_eq!(lines[0]["detail"]["item"], lines[1]["detail"]["item"]);
}

/// S6.2, S6.10: without an owner the store takes the item and rejects what is certain to fail. A waiting
/// client gets the outcome from a later owner.
#[test]
fn without_an_owner_the_store_answers() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "s", "a"]).0, 0);
    assert_eq!(word(&kept, &["steer", "s", "x", "--or", "return", "--wait"]), is(4, "no_active_turn", 1));
    let other = ["push", "s", "x", "--policy", "preempt", "--turn", "turn-1", "--wait"];
    assert_eq!(word(&kept, &other), is(5, "turn_mismatch", 1));
    assert_eq!(asked_one(&kept, &["sessions", "show", "s"])["items_waiting"], 0);
    let wait = ["push", "s", "x", "--policy", "reject", "--wait", "--timeout", "200ms"];
    let (code, lines) = asked(&kept, &wait);
    assert_eq!((code, &lines[0]["last"], &lines[1]["status"]), (7, &false.into(), &"timed_out".into()));
    let item = lines[0]["detail"]["item"].as_str().unwrap();
    assert_eq!(asked(&kept, &["withdraw", "s", item]).0, 0);
    let waits = waiter(&kept, &["push", "s", "b", "--id", "mine"]);
    assert_eq!(kept.turn(&["resume", "s"]).0, 0);
    let (code, reply) = ends(waits);
    assert_eq!((code, &reply["detail"]["fate"]["fate"]), (0, &"completed".into()), "{reply}");
    // The same again is the same item, and where it is is known.
    let (code, lines) = asked(&kept, &["push", "s", "b", "--id", "mine", "--wait"]);
    assert_eq!((code, &lines[0]["status"]), (0, &"same".into()));
    assert_eq!((&lines[1]["status"], &lines[1]["detail"]), (&"settled".into(), &reply["detail"]));
    let waits = waiter(&kept, &["push", "s", "c"]);
    assert_eq!(asked(&kept, &["withdraw", "s", "item-4"]).0, 0);
    assert_eq!(ends(waits).0, 4);
}

/// S6.3, S6.6: a turn that waits for a decision is in the way of what comes only to an idle session, and can be meant.
#[test]
fn a_suspended_session_without_an_owner_refuses_what_it_must() {
    let kept = Kept::start(r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"true"}}]}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "s", "go"]).0, 11);
    assert_eq!(word(&kept, &["push", "s", "x", "--policy", "reject"]), is(5, "busy", 1));
    let meant = |turn| asked(&kept, &["push", "s", "x", "--policy", "preempt", "--turn", turn]).0;
    assert_eq!((meant("turn-2"), meant("turn-1")), (5, 0));
}

/// S6.2: one id is one item, whichever way it came: into the store before the owner lived, and then to the owner.
#[test]
fn an_item_of_the_store_is_the_same_for_its_owner() {
    let kept = Kept::start(&format!(r#"{{"replies":[{{"text":"one"}},{SLEEPS}]}}"#));
    assert_eq!(kept.turn(&["run", "--session", "s", "a"]).0, 0);
    let first = asked(&kept, &["push", "s", "b", "--id", "mine"]).1.remove(0);
    let chat = Chat::start(&kept);
    chat.until("its turn is at work", |shown| shown["detail"]["turn"].is_string());
    let (code, lines) = asked(&kept, &["push", "s", "b", "--id", "mine"]);
    assert_eq!((code, &lines[0]["status"]), (0, &"same".into()));
    assert_eq!(lines[0]["detail"]["item"], first["detail"]["item"]);
    assert_eq!(word(&kept, &["push", "s", "c", "--id", "mine"]), is(5, "other_content", 1));
    let late = ["push", "s", "b", "--id", "mine", "--wait", "--timeout", "3s"];
    assert_eq!(word(&kept, &late), is(7, "timed_out", 2));
}

/// S6.10: an item whose owner dies is in the store for the next one, and a waiting client learns that.
#[test]
fn whoever_waits_outlives_the_owner() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS}]}}"#));
    let mut chat = Chat::at_work(&kept);
    let waits = waiter(&kept, &["push", "s", "later"]);
    chat.child.kill().unwrap();
    chat.child.wait().unwrap();
    let (code, reply) = ends(waits);
    assert_eq!((code, &reply["detail"]["fate"]["fate"]), (4, &"unhandled".into()), "{reply}");
    assert!(reply["message"].as_str().unwrap().contains("it waits in the store"), "{reply}");
    assert_eq!(asked(&kept, &["withdraw", "s", "item-2"]).1[0]["detail"]["text"], "later");
}

/// S6.2: an owner that does not answer in time, and continues later, has the item once.
#[test]
fn an_owner_that_wakes_up_has_the_item_once() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS}]}}"#));
    let chat = Chat::at_work(&kept);
    pause::between_writes(&chat.child, &kept.store());
    let (code, lines) = asked(&kept, &["push", "s", "later"]);
    assert_eq!((code, &lines[0]["detail"]["item"]), (0, &"item-2".into()));
    assert!(lines[0]["message"].as_str().unwrap().contains("does not answer"), "{lines:?}");
    signal(&chat.child, Signal::CONT);
    let (code, lines) = asked(&kept, &["push", "s", "and this"]);
    assert_eq!((code, &lines[0]["detail"]["item"]), (0, &"item-3".into()));
    assert_eq!(asked_one(&kept, &["sessions", "show", "s"])["items_waiting"], 2);
}

/// S6.11: an item whose turn was stopped was not answered, and the exit code says so.
#[test]
fn an_interrupted_item_is_no_success() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS},{SLEEPS}]}}"#));
    let chat = Chat::at_work(&kept);
    let waits = waiter(&kept, &["push", "s", "instead", "--policy", "preempt"]);
    chat.until("its turn is at work", |shown| shown["detail"]["turn"] == "turn-2");
    let unhandled = waiter(&kept, &["push", "s", "later"]);
    assert_eq!(asked(&kept, &["stop", "s", "--now"]).0, 0);
    let (code, reply) = ends(waits);
    assert_eq!((code, &reply["detail"]["fate"]["fate"]), (4, &"interrupted".into()), "{reply}");
    let (code, reply) = ends(unhandled);
    assert_eq!((code, &reply["detail"]["fate"]["fate"]), (4, &"unhandled".into()), "{reply}");
    assert!(reply["message"].as_str().unwrap().contains("it waits in the store"), "{reply}");
}

/// S6.6, S6.10: a kept session that a single run has is talked to as any other; what its run has no turn for is the next owner's.
#[test]
fn the_run_of_a_kept_session_answers_as_a_chat_does() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS}]}}"#));
    let args = ["run", "--session", "s", "--approve", "auto", "--tools", "shell", "--grace", "0", "go"];
    let (mut child, mut stderr) = kept.spawn(&args);
    until_printed(&mut stderr, "▸ shell");
    assert_eq!(word(&kept, &["push", "s", "no", "--policy", "reject"]), is(5, "busy", 1));
    assert_eq!(word(&kept, &["push", "s", "no", "--policy", "preempt", "--turn", "turn-9"]).0, 5);
    let waits = waiter(&kept, &["push", "s", "later"]);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (code, reply) = ends(waits);
    assert_eq!((code, &reply["detail"]["fate"]["fate"]), (4, &"unhandled".into()), "{reply}");
    assert_eq!(asked_one(&kept, &["sessions", "show", "s"])["items_waiting"], 1);
}

/// With `--json`, a missing session is reported as one object.
#[test]
fn what_is_not_there_is_told_as_json() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    for args in [
        &["sessions", "show", "nosuch"][..],
        &["sessions", "rm", "nosuch"],
        &["approvals", "nosuch"],
        &["approve", "nosuch"],
        &["trace", "nosuch"],
        &["steer", "nosuch", "hi"],
        &["stop", "nosuch"],
    ] {
        assert_eq!(word(&kept, args), is(3, "no_such_session", 1), "{args:?}");
    }
}

/// What cannot be asked of any session is wrong usage, before one is looked for.
#[test]
fn what_is_asked_is_judged_before_the_session_is_looked_for() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    for args in [
        &["stop", "nosuch", "--at", "bogus"][..],
        &["stop", "nosuch", "--within", "0s"],
        &["stop", "nosuch", "--when-idle", "0s"],
        &["stop", "nosuch", "--call", "c", "--at", "bogus"],
        &["push", "nosuch", "hi", "--policy", "enqueue", "--at", "any"],
        &["push", "nosuch", "hi", "--policy", "preempt", "--at", "bogus"],
        &["push", "nosuch", "hi", "--policy", "preempt", "--turn", "seven"],
        &["push", "nosuch", " "],
    ] {
        assert_eq!(kept.tell(args).0, 2, "{args:?}");
        assert_eq!(word(&kept, args), is(2, "refused", 1), "{args:?}");
    }
}

/// The stop of a call names the call, also without a running call.
#[test]
fn the_stop_of_a_call_speaks_of_it() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    let _chat = Chat::start(&kept);
    assert_eq!(word(&kept, &["stop", "s", "--call", "call_1"]), is(3, "no_such_call", 1));
    assert_eq!(word(&kept, &["stop", "s", "--run", "run_1"]), is(3, "no_such_run", 1));
}

/// A line that is no text is reported and skipped: the lines after it have their turns.
#[test]
fn a_line_that_is_no_text_is_passed_over() {
    let kept = Kept::start(r#"{"replies":[{"text":"heard"}]}"#);
    let chat = ["chat", "--base-url", &kept.server.url, "--model", "openai:x", "--session", "s"];
    let mut child = kept
        .command(&chat, kept.store().to_str().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\xff\xfe bad\r\nhello\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"heard\n".to_vec()), "{printed}");
    assert!(printed.contains("a line is not UTF-8; it was not sent"), "{printed}");
}

/// S6.2: what is pushed from elsewhere while a turn works is listed in the queue of the chat that has the session.
#[test]
fn what_comes_from_elsewhere_is_listed_at_once() {
    let kept = Kept::start(&format!(r#"{{"replies":[{SLEEPS}]}}"#));
    let (store, url) = (kept.store().display().to_string(), &kept.server.url);
    let chat = ["chat", "--base-url", url, "--model", "openai:x", "--store", &store, "--session", "s"];
    let variables = [("TERM", "xterm"), ("HOME", kept.home()), ("XDG_RUNTIME_DIR", kept.home())];
    let mut terminal = Terminal::spawn(&[&chat[..], &["--approve", "auto"]].concat(), &variables);
    terminal.until("Enter sends");
    terminal.press("go");
    terminal.until("› go");
    terminal.press("\r");
    terminal.until("▸ shell");
    assert_eq!(asked(&kept, &["push", "s", "after that"]).0, 0);
    terminal.until("after that");
}

/// A terminal that hangs up ends its chat with the code of that signal.
#[test]
fn a_chat_whose_terminal_hangs_up_says_so() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    let (store, url) = (kept.store().display().to_string(), &kept.server.url);
    let chat = ["chat", "--base-url", url, "--model", "openai:x", "--store", &store, "--session", "s"];
    let mut terminal = Terminal::spawn(&chat, &[("TERM", "xterm"), ("XDG_RUNTIME_DIR", kept.home())]);
    terminal.until("Enter sends");
    terminal.signal(Signal::HUP);
    assert_eq!(terminal.end().0, 129);
}
