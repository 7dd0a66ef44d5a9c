//! `/status`, `/init` and `/review` in the product.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{place::Place, terminal::Terminal};

fn say(chat: &mut Terminal, text: &str) {
    chat.press(text);
    chat.until(&format!("› {text}"));
    chat.press("\r");
}

fn git(folder: &Path, args: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    let done = Command::new("git").arg("-C").arg(folder).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn last_message(request: &Value) -> String {
    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

/// S12.61: a review is offered tools that read only, in a mode that would allow more, and gets what git says is changed; no
/// program that the repository names is run for it. The next turn has all tools again.
#[test]
fn a_review_sees_what_is_changed_and_can_change_nothing() {
    let writes = json!({"calls": [{"name": "write_file", "args": {"path": "new.txt", "content": "new"}}]});
    let world =
        Place::new(&json!([writes, {"text": "line 1 divides by zero"}, {"text": "hello"}, {"text": "seen"}]));
    let work = world.path("work");
    git(&work, &["init", "-q"]);
    fs::write(work.join("a.rs"), "old\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "first"]);
    let mark = world.text("was-run");
    git(&work, &["config", "diff.external", &format!("touch {mark}; true")]);
    git(&work, &["config", "core.fsmonitor", &format!("touch {mark}; true")]);

    let mut chat = world.chat(&["--mode", "edits"], &[]);
    say(&mut chat, "/review");
    chat.until("nothing to review");
    fs::write(work.join("a.rs"), "let x = 1 / 0;\n").unwrap();
    fs::write(work.join("b.rs"), "").unwrap();
    say(&mut chat, "/review");
    chat.until("[review of the uncommitted changes, with tools that read only]");
    chat.until("line 1 divides by zero");
    assert!(!work.join("new.txt").exists(), "it called a tool that it was not offered");
    chat.until("Enter sends");
    say(&mut chat, "thanks");
    chat.until("hello");
    chat.until("Enter sends");
    say(&mut chat, "/review HEAD");
    chat.until("seen");
    let requests = world.requests();
    let offers = |request: &Value, name: &str| {
        let tools = request["tools"].as_array().unwrap();
        tools.iter().any(|tool| tool.pointer("/function/name").unwrap() == name)
    };
    let is_offered = |at: usize| ["read_file", "write_file", "shell"].map(|name| offers(&requests[at], name));
    assert_eq!((is_offered(0), is_offered(1)), ([true, false, false], [true, false, false]));
    assert_eq!((is_offered(2), is_offered(3)), ([true; 3], [true, false, false]));
    let asked = last_message(&requests[0]);
    assert!(asked.contains("+let x = 1 / 0;") && asked.contains("new file, not in git yet: b.rs"), "{asked}");
    let asked = last_message(&requests[3]);
    assert!(asked.contains("+old") && asked.contains("To review: HEAD."), "{asked}");
    assert!(!world.path("was-run").exists());
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// S12.62: a chat says what holds in it.
#[test]
fn a_chat_says_what_holds_in_it() {
    let world = Place::new(&json!([{"text": "written"}]));
    let mut chat = world.chat(&["--mode", "plan", "--store", &world.text("store.db")], &[]);
    say(&mut chat, "/status");
    for row in [
        "model         openai:x at http",
        "mode          plan: ",
        "approvals     you are asked",
        "stored in ",
        "no AGENTS.md",
    ] {
        chat.until(row);
    }
    say(&mut chat, "/init");
    chat.until("written");
    assert!(last_message(&world.requests()[0]).contains("Write a file AGENTS.md"));
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}
