//! What the program asks the model for its person, and what it says of itself.

use crossterm::event::KeyCode;

use super::World;
use crate::{
    args::mode::WorkMode,
    render::chat::{
        asked::{ReviewOf, is_review},
        queue::PushKind,
        state::Action,
        status::Status,
    },
};

impl World {
    fn commands(&mut self, line: &str) -> Vec<Action> {
        self.state.input.set(line.to_owned());
        self.tap(KeyCode::Enter)
    }
}

/// S12.61: a review is asked for in an idle chat alone, and is shown in a few words.
#[test]
fn a_review_is_a_message_of_its_own_kind() {
    let mut world = World::new();
    assert_eq!(world.commands("/review"), [Action::Review(String::new())]);
    assert_eq!(world.commands("/review main..HEAD"), [Action::Review("main..HEAD".to_owned())]);
    let of = ReviewOf { what: "main..HEAD".to_owned(), changes: "+ secret @file.png".to_owned() };
    world.state.review(&of);
    let sent = world.state.take_actions();
    let [Action::Push { text, how: PushKind::Queue }] = &sent[..] else { panic!("{sent:?}") };
    assert!(is_review(text) && text.contains("+ secret"), "{text}");
    world.state.said(text, "");
    world.shows("[review of main..HEAD, with tools that read only]");
    world.hides("+ secret");

    let mut world = World::running();
    assert_eq!(world.commands("/review"), []);
    world.shows("/review when it has ended");
    world.state.review(&of);
    assert_eq!(world.state.take_actions(), [], "a turn has begun meanwhile");
}

#[test]
fn init_asks_for_the_file_and_takes_more_words() {
    let mut world = World::new();
    let sent = world.commands("/init name the owner of each part");
    let [Action::Push { text, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert!(text.contains("AGENTS.md") && text.ends_with("\n\nname the owner of each part"), "{text}");
    world.state.said(text, "");
    world.shows("[write an AGENTS.md for this project]");
    world.hides("manifests");
}

/// S12.51: the key is one only where nothing is typed.
#[test]
fn a_question_mark_with_an_empty_input_shows_the_keys() {
    let mut world = World::new();
    assert_eq!(world.tap(KeyCode::Char('?')), []);
    world.shows("Ctrl-Z      back to the shell");
    assert!(world.state.input.is_empty());
    let mut world = World::new();
    "why?".chars().for_each(|letter| drop(world.tap(KeyCode::Char(letter))));
    world.hides("Ctrl-Z      back to the shell");
    assert_eq!(world.state.input.text(), "why?");
    assert_eq!(world.commands("/keys"), []);
    world.shows("Ctrl-Z      back to the shell");
}

/// S12.66
#[test]
fn the_status_has_short_lines() {
    let mut world = World::new();
    assert_eq!(world.commands("/status"), [Action::Status]);
    world.state.kept.returns = Some("safepoint --resume 6e658e95".to_owned());
    let status = Status {
        at: Some("http://localhost:1".to_owned()),
        root: "/srv/project".into(),
        mode: WorkMode::Edits,
        commands: "in the sandbox".to_owned(),
        approvals: "you are asked".to_owned(),
        store: Some("/srv/store.db".into()),
        servers: vec![("github".to_owned(), 12)],
        files: vec!["AGENTS.md".to_owned()],
    };
    world.state.tell_status(&status);
    for row in [
        "root          /srv/project",
        "mode          edits: ",
        "commands      in the sandbox",
        "approvals     you are asked",
        "`safepoint --resume 6e658e95`",
        "context       nothing was sent yet",
        "servers       github (12 tools)",
        "instructions  AGENTS.md",
    ] {
        world.shows(row);
    }
    world.state.tell_status(&Status { servers: Vec::new(), files: Vec::new(), store: None, ..status });
    for row in ["in memory, until the chat ends", "no AGENTS.md (/init writes one)", "servers       none"] {
        world.shows(row);
    }
}
