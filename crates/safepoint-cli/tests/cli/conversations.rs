//! Conversations that are stored without being asked for: the way back to them, from one to another, and out of the store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::terminal::{CTRL_C, Terminal};
use crate::{BIN, Practice, safepoint};

const IDLE: &str = "Enter sends";
const CTRL_D: &str = "\x04";
const NOTE: &str = "conversations are stored in";

/// A home, two projects, and a server.
struct World {
    place: tempfile::TempDir,
    server: Practice,
}

impl World {
    fn new(replies: &Value) -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["home", "run", "project/.git", "project/src", "other"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        Self { place, server: Practice::start(&json!({ "replies": replies }).to_string()) }
    }

    /// One whose model says the same again and again.
    fn talking() -> Self {
        Self::new(&json!((0..20).map(|turn| json!({"text": format!("answer {turn}")})).collect::<Vec<_>>()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A chat in this folder.
    fn chat(&self, folder: &str, args: &[&str]) -> Terminal {
        let (folder, home, run) = (self.text(folder), self.text("home"), self.text("run"));
        let chat = ["env", "-C", &folder, BIN, "chat", "--base-url", &self.server.url, "--model", "openai:x"];
        let variables = [("TERM", "xterm"), ("HOME", &*home), ("XDG_RUNTIME_DIR", &*run)];
        Terminal::spawn_it(&[&chat[..], args].concat(), &variables)
    }

    /// Its first message is this; it is left when it is answered.
    fn said(&self, folder: &str, text: &str) {
        let mut chat = self.chat(folder, &[]);
        chat.until(IDLE);
        say(&mut chat, text);
        chat.until("answer");
        chat.until(IDLE);
        leave(chat);
    }

    fn ask(&self, args: &[&str]) -> (i32, String) {
        let mut command = safepoint(args);
        command.env("HOME", self.path("home")).env("XDG_RUNTIME_DIR", self.path("run"));
        let output = command.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// The stored sessions, the newest first.
    fn stored(&self) -> Vec<Value> {
        let (_, printed) = self.ask(&["sessions", "ls", "--json"]);
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn titles(&self) -> Vec<String> {
        self.stored().iter().map(|row| row["title"].as_str().unwrap().to_owned()).collect()
    }
}

fn say(chat: &mut Terminal, text: &str) {
    chat.press(text);
    chat.until(&format!("› {text}"));
    chat.press("\r");
}

fn leave(mut chat: Terminal) -> String {
    chat.press(CTRL_D);
    let (code, screen) = chat.end();
    assert_eq!(code, 0, "{screen}");
    screen
}

fn names(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        all.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// S7.40, S7.42, S7.43: a chat is stored under the root of its repository, and nothing in the working tree; the first one says
/// so once. It says as it ends how to come back, and the next one continues it, from anywhere in the repository.
#[test]
fn a_chat_is_stored_under_its_project_and_continued() {
    let world = World::talking();
    let mut chat = world.chat("project/src", &[]);
    chat.until(NOTE);
    chat.until(IDLE);
    say(&mut chat, "fix the parser");
    chat.until("answer 0");
    chat.until(IDLE);
    let screen = leave(chat);
    assert!(screen.contains("come back with `safepoint --resume "), "{screen}");
    assert_eq!(names(&world.path("project")), [".git", "src"]);
    assert_eq!(names(&world.path("project/src")), [""; 0]);
    let stored = world.stored();
    let project = world.path("project").canonicalize().unwrap();
    assert_eq!((stored.len(), &stored[0]["title"]), (1, &json!("fix the parser")));
    assert_eq!(stored[0]["setup"]["project"], json!(project));

    let mut chat = world.chat("project", &["--continue"]);
    chat.until("Reopened fix the parser");
    chat.until("answer 0");
    chat.until(IDLE);
    assert!(!chat.screen().contains(NOTE), "{}", chat.screen());
    say(&mut chat, "go on");
    chat.until("answer 1");
    leave(chat);
    let requests = world.server.logged();
    let last = requests.iter().rev().find(|line| line["type"] == "request").unwrap().to_string();
    assert!(last.contains("fix the parser") && last.contains("go on"), "{last}");

    // One that another chat has open is not taken from it: the one before it is continued.
    let mut newer = world.chat("project", &[]);
    newer.until(IDLE);
    say(&mut newer, "plan the release");
    newer.until("answer 2");
    newer.until(IDLE);
    let beside = world.chat("project", &["--continue"]);
    beside.until("a newer conversation is open in ");
    beside.until("Reopened fix the parser");
    beside.until(IDLE);
    leave(beside);
    leave(newer);

    let chat = world.chat("other", &["--continue"]);
    chat.until("no stored conversation of this project");
    chat.until(IDLE);
    leave(chat);
    assert_eq!(
        world.titles(),
        ["plan the release", "fix the parser"],
        "and the new one, in which nothing was said, is gone"
    );
}

/// S7.40: where nothing was said nothing stays, however the chat is left.
#[test]
fn an_empty_chat_leaves_nothing_in_the_store() {
    let world = World::talking();
    let chat = world.chat("project", &[]);
    chat.until(IDLE);
    let screen = leave(chat);
    assert!(!screen.contains("come back"), "{screen}");
    let mut chat = world.chat("project", &[]);
    chat.until(IDLE);
    chat.press(CTRL_C);
    chat.until("Ctrl-C again ends this chat");
    chat.press(CTRL_C);
    assert_ne!(chat.end().0, 1);
    assert_eq!(world.titles(), [""; 0]);
}

/// S7.40: a person turns it off by a flag or in the config file; the chat says as it ends that it was not stored.
#[test]
fn a_chat_is_in_memory_where_its_person_says_so() {
    let world = World::talking();
    let config = world.text("config.toml");
    fs::write(&config, "keep = false\n").unwrap();
    for args in [&["--no-keep"][..], &["--config", &config]] {
        let mut chat = world.chat("project", args);
        chat.until(IDLE);
        say(&mut chat, "hello");
        chat.until("answer");
        chat.until(IDLE);
        let screen = leave(chat);
        assert!(screen.contains("Not stored") && !screen.contains(NOTE), "{screen}");
    }
    assert_eq!(names(&world.path("home")), [".local"], "the snapshots of files");
    assert!(!world.path("home/.local/share").exists());
}

/// S7.40: without a home, or with a store that cannot be opened, the chat says so in one line and works in memory. A store that
/// was asked for is an error.
#[test]
fn a_chat_whose_store_cannot_be_used_says_so_and_works_in_memory() {
    let world = World::talking();
    let works = |mut chat: Terminal, why: &str| {
        chat.until("not stored, in memory only:");
        chat.until(why);
        chat.until(IDLE);
        say(&mut chat, "hello");
        chat.until("answer");
        leave(chat);
    };
    let server = ["chat", "--base-url", &world.server.url, "--model", "openai:x"];
    works(Terminal::spawn(&server, &[("TERM", "xterm")]), "there is no home directory");
    fs::create_dir_all(world.path("home/.local")).unwrap();
    fs::write(world.path("home/.local/share"), "a file").unwrap();
    works(world.chat("project", &[]), "cannot be made");
    fs::remove_file(world.path("home/.local/share")).unwrap();
    let folder = world.path("home/.local/share/safepoint");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("store.db"), "no database at all, and long enough to be read as one").unwrap();
    works(world.chat("project", &[]), "not a database");
    let mut chat = world.chat("project", &["--continue"]);
    let (code, screen) = chat.end();
    assert!(code == 1 && screen.contains("cannot be opened"), "{code}: {screen}");
}

/// S7.42: the list of `--resume` is searched by what is typed, also in what was said, has this project's conversations first, and opens the one that is
/// chosen. Esc opens none.
#[test]
fn a_conversation_is_chosen_from_a_list_that_is_searched() {
    let overflow = "answer 0: the Overflow is in `parse_header`";
    let world = World::new(&json!([{"text": overflow}, {"text": "answer 1"}, {"text": "answer 2"}]));
    world.said("project", "fix the parser");
    world.said("project", "write the docs");
    world.said("other", "plan the trip");
    let mut chat = world.chat("project", &["--resume"]);
    chat.until("Conversations of this project  2");
    chat.until("tokens");
    assert!(!chat.screen().contains("plan the trip"), "{}", chat.screen());
    chat.press("\t");
    chat.until("Conversations of all projects  3");
    chat.until("❯ write the docs");
    chat.press("trip");
    chat.until("1 of 3");
    chat.until("❯ plan the trip");
    chat.press("\x15is OVERflow");
    chat.until("❯ fix the parser");
    chat.until("…parser answer 0: the Overflow is in `parse_header`");
    chat.press("\r");
    chat.until("Reopened fix the parser");
    chat.until(IDLE);
    leave(chat);
    let mut chat = world.chat("project", &["--resume"]);
    chat.until("  fix the parser");
    chat.press("\x1b");
    assert_eq!(chat.end().0, 0);
    let mut chat = world.chat("project", &["--resume", "nothing"]);
    let (code, screen) = chat.end();
    assert!(code == 3 && screen.contains("session nothing not found"), "{code}: {screen}");
}

/// S7.41, S7.43: a conversation is left for a new one, for a copy and for an earlier one, and each is there to come back to.
#[test]
fn conversations_are_left_for_one_another_and_none_is_lost() {
    let world = World::talking();
    let mut chat = world.chat("project", &[]);
    chat.until(IDLE);
    say(&mut chat, "one");
    chat.until("answer 0");
    chat.until(IDLE);
    say(&mut chat, "/rename The first");
    chat.until("renamed to The first");
    say(&mut chat, "/clear");
    chat.until("A new conversation; the one before is stored: /resume ");
    chat.until(IDLE);
    say(&mut chat, "two");
    chat.until("answer 1");
    chat.until(IDLE);
    say(&mut chat, "/fork");
    chat.until("A copy of the conversation up to the end of turn-1");
    chat.until(IDLE);
    say(&mut chat, "three");
    chat.until("answer 2");
    chat.until(IDLE);
    say(&mut chat, "/resume");
    chat.until("❯ two");
    chat.press("first");
    chat.until("❯ The first");
    chat.press("\r");
    chat.until("Reopened The first");
    chat.until(IDLE);
    leave(chat);
    assert_eq!(world.titles(), ["two", "two", "The first"]);
}

/// S7.43: where nothing is stored, a conversation that was left stays in memory until the chat ends.
#[test]
fn a_conversation_in_memory_is_come_back_to_as_long_as_the_chat_runs() {
    let world = World::talking();
    let mut chat = world.chat("project", &["--no-keep"]);
    chat.until(IDLE);
    say(&mut chat, "one");
    chat.until("answer 0");
    chat.until(IDLE);
    say(&mut chat, "/new");
    chat.until("in memory until the chat ends: /resume ");
    chat.until(IDLE);
    say(&mut chat, "/resume");
    chat.until("❯ one");
    chat.press("\r");
    chat.until("The conversation so far");
    chat.until(IDLE);
    leave(chat);
    assert_eq!(world.titles(), [""; 0]);
}

/// S12.50: an export is Markdown, or a page where the file is named so; a file that is there is overwritten only if the person
/// says so.
#[test]
fn a_conversation_is_exported_and_nothing_is_overwritten_unasked() {
    let world = World::talking();
    let mut chat = world.chat("project", &[]);
    chat.until(IDLE);
    say(&mut chat, "fix the parser");
    chat.until("answer 0");
    chat.until(IDLE);
    say(&mut chat, "/export talk.md");
    chat.until("Exported to talk.md");
    let file = world.path("project/talk.md");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# fix the parser\n"), "{text}");
    assert!(text.contains("## You\n\nfix the parser\n") && text.contains("## Model\n\nanswer 0\n"), "{text}");
    fs::write(&file, "mine").unwrap();
    say(&mut chat, "/export talk.md");
    chat.until("talk.md is there already: y overwrites it");
    chat.press("\x1b");
    chat.until("not exported");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    say(&mut chat, "/export page.html");
    chat.until("Exported to page.html");
    let page = fs::read_to_string(world.path("project/page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("fix the parser"), "{page}");
    assert_eq!(names(&world.path("project")), [".git", "page.html", "src", "talk.md"]);
    leave(chat);
}

/// S7.42: two chats of one project at the same time are two sessions. One that is open is continued by no other, which says
/// where it is open.
#[test]
fn two_chats_of_a_project_are_two_sessions() {
    let world = World::talking();
    let mut first = world.chat("project", &[]);
    let mut second = world.chat("project", &[]);
    for (chat, text) in [(&mut first, "one"), (&mut second, "two")] {
        chat.until(IDLE);
        say(chat, text);
        chat.until("answer");
        chat.until(IDLE);
    }
    let third = world.chat("project", &["--continue"]);
    third.until("a newer conversation is open in ");
    third.until("no stored conversation of this project");
    third.until(IDLE);
    leave(third);
    leave(first);
    leave(second);
    let mut titles = world.titles();
    titles.sort();
    assert_eq!(titles, ["one", "two"]);
}

/// S7.43: what is pruned was listed first. A session that is open, or waits for a person, stays unless it is named; snapshots of
/// files go with their session.
#[test]
fn what_is_old_is_listed_and_removed_and_what_waits_stays() {
    let asks = json!({"calls": [{"name": "shell", "args": {"command": "true"}}]});
    let world = World::new(&json!([{"text": "answer"}, asks, {"text": "answer"}]));
    let snapshots = || {
        let state = world.path("home/.local/state/safepoint/snapshots");
        let folders = fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path().join("snapshots"));
        folders.map(|folder| names(&folder).len()).sum::<usize>()
    };
    world.said("project", "done");
    let before = snapshots();
    assert!(before > 0, "a chat that may change files takes them");
    let mut chat = world.chat("other", &[]);
    chat.until(IDLE);
    say(&mut chat, "asks");
    chat.until("Allow shell to run?");
    leave(chat);
    let open = world.chat("project", &["--session", "open"]);
    open.until(IDLE);
    let asked = world.stored().iter().find(|row| row["title"] == "asks").unwrap()["session"].clone();
    let asked = asked.as_str().unwrap();

    let (code, listed) = world.ask(&["store", "prune", "--older", "1d"]);
    assert!(code == 0 && listed.contains("nothing to remove"), "{code}: {listed}");
    let (code, listed) = world.ask(&["store", "prune", "--older", "0"]);
    assert_eq!(code, 0, "{listed}");
    assert!(listed.contains("done\n  would be removed") && listed.contains("1 session would be"), "{listed}");
    assert!(listed.contains("waits for a decision; --also "), "{listed}");
    assert_eq!(world.stored().len(), 3, "nothing was removed");

    let (code, removed) = world.ask(&["store", "prune", "--older", "0", "--yes"]);
    assert!(code == 0 && removed.contains("removed 1 session"), "{code}: {removed}");
    assert!(!world.titles().contains(&"done".to_owned()));
    assert!(snapshots() < before + 2, "they went with it: {} of {before}", snapshots());
    let (code, removed) = world.ask(&["store", "prune", "--older", "0", "--yes", "--json", "--also", asked]);
    let line: Value = serde_json::from_str(removed.lines().next().unwrap()).unwrap();
    assert_eq!((code, &line["type"], &line["code"]), (0, &json!("removed"), &json!(0)), "{removed}");
    assert_eq!(world.stored().len(), 1, "the one that is open");
    leave(open);
    let (code, said) = world.ask(&["store", "prune", "--older", "0", "--also", "nothing"]);
    assert!(code == 3 && said.contains("session nothing not found"), "{code}: {said}");
}
