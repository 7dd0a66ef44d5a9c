//! Calls for the person while the terminal is not in front, on a real terminal.

use safepoint_testkit::wait::until;

use super::terminal::Terminal;
use crate::Practice;

const IDLE: &str = "Enter sends";
/// What a terminal sends that is left, and that comes to the front.
const LEFT: &str = "\x1b[O";
const BACK: &str = "\x1b[I";
/// What foot shows as a notification.
const CALL: &str = "\x1b]777;notify;safepoint;";

/// S12.58: a terminal that was left is called when the turn ends; one that is in front is not. Its title comes back at the end.
#[test]
fn a_terminal_that_was_left_is_called_when_the_turn_ends() {
    let server = Practice::start(r#"{"replies": [{"text": "noted"}, {"text": "again"}]}"#);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let work = folder.path().join("otter");
    std::fs::create_dir(&work).unwrap();
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--no-keep", "--root"];
    let args = [&args[..], &[work.to_str().unwrap()]].concat();
    let mut chat = Terminal::spawn(&args, &[("HOME", home), ("XDG_RUNTIME_DIR", home), ("TERM", "foot")]);
    chat.until(IDLE);
    chat.press("hello\r");
    chat.until("noted");
    chat.until(IDLE);
    assert!(!chat.raw().contains(CALL), "it is in front, for all that is known");
    chat.press(LEFT);
    chat.press("more\r");
    chat.until("again");
    until("it calls", || chat.raw().contains(&format!("{CALL}it is done\x1b\\\x07")));
    chat.press(BACK);
    chat.until(IDLE);
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
    let raw = chat.raw();
    assert!(
        raw.contains("\x1b]2;safepoint · otter\x1b\\") && raw.contains("\x1b]2;● safepoint · otter\x1b\\")
    );
    assert!(raw.contains("\x1b[?1004h") && raw.contains("\x1b[22;2t"), "{raw:?}");
    let end = &raw[raw.rfind("\x1b[?1004l").unwrap()..];
    assert!(end.contains("\x1b[23;2t"), "{end:?}");
}
