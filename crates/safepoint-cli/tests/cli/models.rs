//! The list of models in a chat.

use super::terminal::Terminal;
use crate::Practice;

const IDLE: &str = "Enter sends";

/// S12.42: the models that the server lists can be searched and taken; the next turn goes to the one that was taken.
#[test]
fn a_model_is_taken_from_the_list_of_its_provider() {
    let server = Practice::start(r#"{"replies": [{"text": "noted"}]}"#);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--no-keep"];
    let mut chat = Terminal::spawn(&args, &[("HOME", home), ("XDG_RUNTIME_DIR", home), ("TERM", "xterm")]);
    chat.until(IDLE);
    chat.press("/model\r");
    chat.until("the model is openai:x");
    chat.until("openai:scripted-mini");
    chat.press("mini");
    chat.until("1 of 3");
    chat.press("\r");
    chat.until("the model is openai:scripted-mini from the next turn on");
    chat.until(IDLE);
    chat.press("hello\r");
    chat.until("noted");
    chat.until(IDLE);
    let asked = server.logged();
    assert!(asked.iter().any(|line| line.to_string().contains("\"scripted-mini\"")), "{asked:?}");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// A server that is not there is named, and the practice model can be taken.
#[test]
fn a_provider_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let args = ["chat", "--base-url", "http://127.0.0.1:9/v1", "--model", "openai:x", "--no-keep"];
    let mut chat = Terminal::spawn(&args, &[("HOME", home), ("XDG_RUNTIME_DIR", home), ("TERM", "xterm")]);
    chat.until(IDLE);
    chat.press("/model\r");
    chat.until("no list of models from openai: ");
    chat.until("practice");
    chat.press("\x1b");
    chat.until(IDLE);
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}
