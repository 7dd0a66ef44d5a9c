//! Commands in the background, and a stopped turn that is come back to.

use serde_json::json;

use super::{
    place::{IDLE, Place},
    terminal::Terminal,
};

fn say(chat: &mut Terminal, text: &str) {
    chat.press(text);
    chat.until(&format!("› {text}"));
    chat.press("\r");
}

/// S12.59: a command that was moved to the background is listed and ended by its number, while its turn continues.
#[test]
fn a_command_in_the_background_is_listed_and_ended() {
    let runs = json!({"calls": [{"name": "shell", "args": {"command": "echo begun; exec sleep 600"}}]});
    let world = Place::new(&json!([runs, {"text": "it continues"}]));
    let mut chat = world.chat(&["--approve", "auto", "--no-keep"], &[]);
    say(&mut chat, "go");
    chat.until("│ begun");
    chat.press("\x02");
    chat.until("/tasks lists it");
    chat.until("it continues");
    say(&mut chat, "/tasks");
    chat.until("exec sleep 600");
    chat.until("/tasks end N ends it");
    say(&mut chat, "/tasks 1");
    chat.until("it has written nothing since");
    say(&mut chat, "/tasks end 1");
    chat.until("asked to end");
    chat.until(IDLE);
    say(&mut chat, "/tasks");
    chat.until("no command runs in the background");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}

/// A stopped turn of a conversation that was reopened can be resumed, and the foot says so.
#[test]
fn the_foot_of_a_reopened_chat_offers_to_resume_a_stopped_turn() {
    let slow = json!({"text": "word ".repeat(200), "chunk_chars": 5, "delay_ms": 100});
    let world = Place::new(&json!([slow]));
    let store = world.text("store.db");
    let mut chat = world.chat(&["--session", "trip", "--store", &store], &[]);
    say(&mut chat, "go");
    chat.until("word word");
    chat.press("\x1b");
    chat.until("/resume resumes · /help");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
    let mut chat = world.chat(&["--session", "trip", "--store", &store], &[]);
    chat.until("was stopped: /resume resumes it");
    chat.until("Enter sends · /resume resumes · /help");
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}
