//! Typing in a real terminal: own commands, the external editor, files and images behind an `@`, the search in earlier inputs, and
//! how soon a key is seen.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use safepoint_testkit::wait::until;
use serde_json::{Value, json};

use super::{
    place::{IDLE, Place},
    practice::DOT,
    terminal::Terminal,
};

const ESC: &str = "\x1b";
const TAB: &str = "\t";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_G: &str = "\x07";
const CTRL_R: &str = "\x12";

/// A home, a directory to work in, and a server.
struct World(Place);

impl World {
    fn new(replies: &Value) -> Self {
        Self(Place::new(replies))
    }

    /// A program of one line.
    fn program(&self, name: &str, line: &str) -> String {
        let path = self.0.path(name);
        // By another process: what a sibling thread forks meanwhile would hold a file that is written here, and it could not be run.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
        let written = Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(line).status().unwrap();
        assert!(written.success());
        self.0.text(name)
    }

    fn chat(&self, more: &[&str], variables: &[(&str, &str)]) -> Terminal {
        self.0.chat(more, variables)
    }

    fn requests(&self) -> Vec<String> {
        let all = self.0.server.logged();
        all.iter().filter(|line| line["type"] == "request").map(ToString::to_string).collect()
    }
}

fn say(chat: &mut Terminal, text: &str) {
    chat.press(text);
    // What is typed is seen before it is sent: no key is taken for another's.
    chat.until(text);
    chat.press("\r");
}

fn leave(mut chat: Terminal) -> String {
    chat.press(CTRL_D);
    let (code, screen) = chat.end();
    assert_eq!(code, 0, "{screen}");
    screen
}

/// Whether a process with this word in its command line lives.
fn lives(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .any(|line| line.contains(word) && line.starts_with("sleep"))
}

/// S12.53: a command of the person's own runs unasked, is shown as it writes, and goes with the next message; Esc stops it with all
/// that it started, and so does the end of the chat.
#[test]
fn an_own_command_is_shown_goes_with_the_next_message_and_is_stopped() {
    let world = World::new(&json!([{"text": "I see the otter"}]));
    let gate = world.0.text("gate");
    let mut chat = world.chat(&["--approve", "deny"], &[]);
    say(&mut chat, &format!("!echo an otter; until [ -e {gate} ]; do sleep 0.05; done; echo and its cub"));
    chat.until("  an otter");
    fs::write(&gate, "").unwrap();
    chat.until("  and its cub");
    chat.until("with your next message: the output of");
    assert!(world.requests().is_empty(), "nothing was asked of the model");
    say(&mut chat, "what do you see?");
    chat.until("I see the otter");
    chat.until(IDLE);
    let asked = world.requests();
    assert!(asked.len() == 1 && asked[0].contains("I ran this command myself"), "{asked:?}");
    assert!(
        asked[0].contains("an otter\\\\nand its cub") || asked[0].contains("an otter\\nand its cub"),
        "{asked:?}"
    );
    say(&mut chat, "!sleep 31415926 & sleep 31415927");
    until("both run", || lives("31415926") && lives("31415927"));
    chat.press(ESC);
    chat.until("stopped, ");
    until("neither runs", || !lives("31415926") && !lives("31415927"));
    chat.press("!sleep 27182818 & sleep 27182819");
    chat.until("27182819");
    chat.press("\r");
    until("both run", || lives("27182818") && lives("27182819"));
    leave(chat);
    until("neither runs", || !lives("27182818") && !lives("27182819"));
}

/// S12.51: the external editor has the keys and the screen, and its text stands in the input then; one that fails changes nothing.
#[test]
fn the_external_editor_has_the_terminal_and_gives_it_back() {
    let world = World::new(&json!([{"text": "fine"}]));
    let editor =
        world.program("editor", "cat \"$1\"; echo :; read line </dev/tty; echo \"$line, edited\" >\"$1\"");
    let mut chat = world.chat(&[], &[("VISUAL", &editor), ("EDITOR", "false")]);
    chat.press("a draft");
    chat.until("› a draft");
    chat.press(CTRL_G);
    chat.until("a draft:");
    chat.press("typed in the editor\r");
    chat.until("› typed in the editor, edited");
    // Keys are the chat's again, and so is Ctrl-C.
    chat.press("!");
    chat.until("edited!");
    chat.press(CTRL_G);
    chat.until("edited!:");
    chat.press(CTRL_C);
    chat.until("so nothing was changed");
    chat.until("› typed in the editor, edited!");
    chat.press("\r");
    chat.until("fine");
    chat.until(IDLE);
    leave(chat);
    let folders = fs::read_dir(world.0.path("")).unwrap().flatten();
    let folders = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with("safepoint-output"));
    let left: Vec<_> = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()).collect();
    assert!(left.is_empty(), "its files are gone: {left:?}");

    let failing = world.chat(&[], &[("EDITOR", "false")]);
    let mut chat = failing;
    chat.press("kept");
    chat.until("› kept");
    chat.press(CTRL_G);
    chat.until("false ended with exit status: 1, so nothing was changed");
    chat.until("› kept");
    chat.press("\x15");
    leave(chat);
}

/// S12.51: a turn goes on while the editor has the terminal, and all that it said is shown afterwards.
#[test]
fn a_turn_goes_on_while_the_editor_is_open() {
    let world = World::new(&json!([
        {"calls": [{"name": "shell", "args": {"command": "until [ -e ../gate ]; do sleep 0.05; done"}}]},
        {"text": "the call has ended"},
    ]));
    let editor =
        world.program("editor", &format!("until [ -e {} ]; do sleep 0.05; done", world.0.text("closed")));
    let mut chat = world.chat(&["--approve", "auto"], &[("EDITOR", &editor)]);
    say(&mut chat, "go");
    chat.until("● shell");
    chat.press(CTRL_G);
    until("the editor is open", || !chat.screen().contains("● shell"));
    fs::write(world.0.path("gate"), "").unwrap();
    until("the turn goes on", || world.requests().len() == 2);
    assert!(!chat.screen().contains("the call has ended"));
    fs::write(world.0.path("closed"), "").unwrap();
    chat.until("the call has ended");
    chat.until(IDLE);
    leave(chat);
}

/// S12.52: files behind an `@` are completed, without what git ignores; an image goes with the message on the wire.
#[test]
fn files_are_completed_and_images_attached() {
    let world = World::new(&json!([{"text": "a dot"}]));
    let work = world.0.path("work");
    fs::create_dir(work.join("pictures")).unwrap();
    fs::write(work.join("pictures/one dot.png"), DOT).unwrap();
    fs::write(work.join("pictures/ignored dot.png"), DOT).unwrap();
    fs::write(work.join(".gitignore"), "ignored*\n").unwrap();
    fs::write(work.join("broken.png"), "words").unwrap();
    let mut chat = world.chat(&[], &[]);
    chat.press("what is @dot");
    chat.until("pictures/one dot.png");
    assert!(!chat.screen().contains("ignored dot"), "{}", chat.screen());
    chat.press(TAB);
    chat.until("› what is @\"pictures/one dot.png\"");
    chat.press("\r");
    chat.until("a dot");
    chat.until(IDLE);
    let asked = world.requests();
    assert!(asked[0].contains("iVBORw0KGgoAAAANSUhEUg") && asked[0].contains("image/png"), "{asked:?}");
    say(&mut chat, "and @broken.png");
    chat.until("not sent: @broken.png: attach png");
    chat.until("› and @broken.png");
    assert_eq!(world.requests().len(), 1, "nothing was sent");
    chat.press("\x15");
    // A path that is pasted, as a terminal does it with a file that is dropped on it.
    let dropped = work.join("pictures/one dot.png").display().to_string().replace(' ', "\\ ");
    chat.press(&format!("\x1b[200~{dropped}\x1b[201~"));
    chat.until("Tab attaches it in place of its path");
    chat.press(TAB);
    chat.until("› @\"pictures/one dot.png\"");
    chat.press("\x15");
    leave(chat);
}

/// S12.53: what was entered is found in other chats; one that is not stored writes none.
#[test]
fn the_search_finds_what_was_entered_in_other_chats() {
    let world = World::new(&json!([{"text": "noted"}]));
    let store = world.0.text("store.db");
    let mut chat = world.chat(&["--session", "trip", "--store", &store], &[]);
    say(&mut chat, "feed the otter");
    chat.until("noted");
    chat.until(IDLE);
    leave(chat);
    let file = world.0.path(".local/state/safepoint/inputs.jsonl");
    until("it is kept", || fs::read_to_string(&file).is_ok_and(|kept| kept == "\"feed the otter\"\n"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut chat = world.chat(not_stored(), &[]);
    say(&mut chat, "a secret plan");
    chat.until("You said: a secret plan");
    chat.until(IDLE);
    chat.press(CTRL_R);
    chat.press("otter");
    chat.until("› feed the otter");
    chat.press("\r");
    chat.until(IDLE);
    chat.press("\x15");
    leave(chat);
    assert_eq!(kept(&file), "\"feed the otter\"\n", "it writes none");
}

/// The flags of a chat that is not stored.
fn not_stored() -> &'static [&'static str] {
    &["--no-keep"]
}

fn kept(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// S12.51: a key is seen at once while 500 pieces of text a second stream. `SAFEPOINT_FIGURES=1` prints the times beside those of
/// an idle chat.
#[test]
fn a_key_is_seen_at_once_while_text_streams() {
    const KEYS: usize = 200;
    const PIECES: usize = 20_000;
    let line = "streamed words and more of them\n";
    let text = line.repeat(PIECES * 4 / line.len());
    let world = World::new(&json!([{"text": text, "chunk_chars": 4, "delay_ms": 2}]));
    let mut chat = world.chat(&[], &[]);
    let idle = times(&mut chat, KEYS);
    say(&mut chat, "go");
    chat.until("streamed words");
    let busy = times(&mut chat, KEYS);
    assert!(chat.screen().contains("● the model"), "it streams: {}", chat.screen());
    let figures = format!(
        "a key is seen after {busy:?} (median, 99th percentile) while text streams, idle after {idle:?}"
    );
    if std::env::var_os("SAFEPOINT_FIGURES").is_some() {
        println!("{figures}");
    }
    // 16 ms on a machine that does nothing else, in a build that is optimised; this one may be busy.
    let bounds = (Duration::from_millis(50), Duration::from_millis(500));
    assert!(busy.0 <= bounds.0 && busy.1 <= bounds.1, "{figures}");
    chat.press(CTRL_C);
    chat.press(CTRL_C);
    chat.end();
}

/// The median and the 99th percentile of the times from a key to the screen that shows it.
fn times(chat: &mut Terminal, count: usize) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..count)
        .map(|number| {
            let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
            let before = typed(&chat.screen()).len();
            let began = Instant::now();
            chat.press(&letter.to_string());
            chat.until_it("the key", |screen| {
                let typed = typed(screen);
                typed.len() == before + 1 && typed.ends_with(letter)
            });
            let time = began.elapsed();
            if number % 20 == 19 {
                chat.press("\x15");
                chat.until_it("an empty input", |screen| typed(screen).is_empty());
            }
            time
        })
        .collect();
    times.sort();
    (times[count / 2], times[count * 99 / 100])
}

/// What stands in the input.
fn typed(screen: &str) -> &str {
    screen.lines().rev().find_map(|line| line.strip_prefix("›")).unwrap_or_default().trim()
}
