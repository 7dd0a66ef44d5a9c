//! A first message on the command line.

use std::{
    io::Write as _,
    process::{Output, Stdio},
};

use super::terminal::Terminal;
use crate::{Practice, safepoint};

const IDLE: &str = "Enter sends";
const REPLIES: &str = r#"{"replies": [{"text": "noted"}, {"text": "again"}]}"#;

fn piped(args: &[&str], server: &Practice, lines: &str) -> Output {
    let wired = ["--base-url", &server.url, "--model", "openai:x"];
    let mut child = safepoint(&[args, &wired].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// S12.65: a text behind the name of the program opens a chat that says it.
#[test]
fn a_text_behind_the_name_is_said_first() {
    let server = Practice::start(REPLIES);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let args = ["fix the tests", "--base-url", &server.url, "--model", "openai:x", "--no-keep"];
    let mut chat = Terminal::spawn(&args, &[("HOME", home), ("XDG_RUNTIME_DIR", home), ("TERM", "xterm")]);
    chat.until("› fix the tests");
    chat.until("noted");
    chat.until(IDLE);
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// `-p` answers one message and ends, as `run` does; a lone word is a command or an error, and no message.
#[test]
fn a_message_is_answered_once() {
    let server = Practice::start(REPLIES);
    let output = piped(&["-p", "hello"], &server, "");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "noted", "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    let output = piped(&["rnu"], &server, "");
    assert_eq!(output.status.code(), Some(2));
}

/// S12.65: without a terminal each line is a turn, behind the first message if there is one, also for `safepoint` alone.
#[test]
fn lines_of_a_pipe_are_turns() {
    let server = Practice::start(REPLIES);
    let output = piped(&["say hello", "--no-keep"], &server, "and more\n");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("noted") && said.contains("again"), "{output:?}");
    let mut child =
        safepoint(&[]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("You said: \"hello\""), "{output:?}");
}
