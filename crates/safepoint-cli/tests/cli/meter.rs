//! What a chat uses and what works in it, on a real terminal.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    place::{IDLE, Place},
    terminal::Terminal,
};

const CONFIG: &str = "window = 20000\n[prices.\"openai:x\"]\ninput = 2.0\noutput = 10.0\n";

struct World(Place);

impl World {
    fn new(replies: &Value) -> Self {
        let place = Place::new(replies);
        fs::write(place.path("config.toml"), CONFIG).unwrap();
        Self(place)
    }

    fn chat(&self, more: &[&str]) -> Terminal {
        let config = self.0.text("config.toml");
        let usual = ["--config", &config, "--approve", "auto", "--sandbox", "off"];
        self.0.chat(&[&usual[..], more].concat(), &[])
    }
}

fn say(terminal: &mut Terminal, text: &str) {
    terminal.press(text);
    terminal.until(text);
    terminal.press("\r");
}

/// S12.57, S12.60: what was used is below the input, also after the chat was reopened; a compacted conversation is sent as its summary,
/// which was asked to keep what the person said.
#[test]
fn a_conversation_is_measured_compacted_and_measured_again() {
    let world = World::new(&json!([
        {"text": "the answer is 42", "usage": [4000, 200]},
        {"text": "in short: they asked", "usage": [4500, 50]},
        {"text": "gladly", "usage": [1000, 10]},
    ]));
    let mut chat = world.chat(&["--session", "otter"]);
    say(&mut chat, "what is it, at length?");
    chat.until("21 % of 20k · $0.0100 · 4.0k in · 200 out · 1 round");
    say(&mut chat, "/context");
    chat.until("as the provider counted");
    chat.until("your messages");
    say(&mut chat, "/compact the number");
    chat.until("compacted to a summary and the newest messages: about");
    chat.until(IDLE);
    say(&mut chat, "and now?");
    chat.until("gladly");
    chat.until(IDLE);
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
    let requests = world.0.requests();
    let texts: Vec<String> = requests.iter().map(Value::to_string).collect();
    assert!(texts[1].contains("keeps this in particular: the number"), "{}", texts[1]);
    assert!(texts[2].contains("in short: they asked") && !texts[2].contains("at length?"), "{}", texts[2]);
    let mut again = world.chat(&["--session", "otter"]);
    again.until("$0.0216 · 9.5k in · 260 out");
    say(&mut again, "/cost");
    again.until("all  9.5k");
    again.press("\x04");
    assert_eq!(again.end().0, 0);
}

/// S12.59, S2.10, S4.35: the key of a number stops that call alone, and the turn continues; Ctrl-B lets the next command continue, and
/// the model goes on at once.
#[test]
fn one_call_is_stopped_alone_and_another_is_moved_to_the_background() {
    let wait =
        |name: &str| json!({"command": format!("echo $$ > {name}; echo begun {name}; exec sleep 1000")});
    let world = World::new(&json!([
        {"calls": [{"name": "shell", "args": wait("one")}]},
        {"calls": [{"name": "shell", "args": wait("two")}]},
        {"text": "went on"},
    ]));
    let mut chat = world.chat(&["--no-keep"]);
    say(&mut chat, "go");
    chat.until("│ begun one");
    chat.press("\x1b1");
    chat.until("stopping shell alone; the turn continues");
    chat.until("│ begun two");
    let alive = |name: &str| {
        let pid = fs::read_to_string(world.0.text("work") + "/" + name).unwrap();
        Path::new("/proc").join(pid.trim()).exists()
    };
    assert!(!alive("one") && alive("two"));
    chat.press("\x02");
    chat.until("went on");
    assert!(alive("two"), "it goes on");
    let requests = world.0.requests();
    assert!(requests[2].to_string().contains("the user moved it to the background"), "{}", requests[2]);
    chat.press("\x04");
    chat.end();
    assert!(!alive("two"), "the end of the chat ends it");
}
