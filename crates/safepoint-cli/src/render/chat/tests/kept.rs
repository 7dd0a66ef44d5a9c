//! Conversations that are kept: what the commands ask for, the list, and the question about a file.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyModifiers};

use super::World;
use crate::render::chat::{
    choosing::OfferedModels,
    kept::KeptAsk,
    keys::CALM,
    rewind::RewindAsk,
    sessions::{Offer, SessionPicker},
    state::{Action, Leave},
};

impl World {
    /// One in which something was said.
    fn begun() -> Self {
        let mut world = Self::new();
        world.state.kept.is_begun = true;
        world
    }

    fn enters(&mut self, text: &str) -> Vec<Action> {
        self.state.input.set(text.to_owned());
        self.tap(KeyCode::Enter)
    }

    fn with_list() -> Self {
        Self::begun().and_list()
    }

    fn and_list(mut self) -> Self {
        let offer = |id: &str, title: &str| Offer {
            id: id.to_owned(),
            title: title.to_owned(),
            is_here: true,
            ..Offer::default()
        };
        let offers = vec![offer("ses_1", "the parser"), offer("ses_2", "the docs")];
        self.state.pick(SessionPicker::new(offers));
        self
    }
}

fn asks(ask: KeptAsk) -> Vec<Action> {
    vec![Action::Kept(ask)]
}

/// S7.43
#[test]
fn the_commands_ask_for_what_they_say() {
    let mut world = World::begun();
    for (line, ask) in [
        ("/new", KeptAsk::New),
        ("/clear", KeptAsk::New),
        ("/rename The parser ", KeptAsk::Rename("The parser".into())),
        ("/fork", KeptAsk::Fork(None)),
        ("/fork turn-2", KeptAsk::Fork(Some(safepoint::ids::TurnId::new(2)))),
        ("/export", KeptAsk::Export(None)),
        ("/export \"a b.html\"", KeptAsk::Export(Some("a b.html".into()))),
        ("/resume all", KeptAsk::Pick),
    ] {
        assert_eq!(world.enters(line), asks(ask), "{line}");
    }
    for line in ["/rename", "/fork here"] {
        assert_eq!(world.enters(line), [], "{line}");
    }
}

/// S7.43: a conversation in which a turn runs is not left, and one in which nothing was said needs no other.
#[test]
fn a_running_turn_and_an_empty_conversation_are_not_left() {
    let mut world = World::running();
    world.state.kept.is_begun = true;
    for line in ["/new", "/clear", "/fork"] {
        assert_eq!(world.enters(line), [], "{line}");
    }
    world.shows("a turn is running");
    let mut world = World::new();
    for line in ["/new", "/fork", "/export"] {
        assert_eq!(world.enters(line), [], "{line}");
    }
    world.shows("nothing was said yet");
}

/// S7.42: keys and what is pasted go to the list, until it is closed; then they are the input's again.
#[test]
fn the_list_takes_the_keys_while_it_is_open() {
    let mut world = World::with_list();
    world.type_in("docs");
    world.state.paste("x\ny", world.now);
    world.shows("› docsxy");
    assert_eq!(world.tap(KeyCode::Enter), [], "nothing matches");
    world.tap(KeyCode::Backspace);
    world.tap(KeyCode::Backspace);
    assert_eq!(world.tap(KeyCode::Enter), asks(KeptAsk::Open("ses_2".into())));
    assert!(world.state.input.is_empty());
    world.type_in("mine");
    assert_eq!(world.state.input.text(), "mine");
    let mut world = World::with_list();
    assert_eq!((world.tap(KeyCode::Esc), world.tap(KeyCode::Esc)), (vec![], vec![]));
    assert_eq!(world.tap(KeyCode::Esc), [Action::Rewind(RewindAsk::Turns)], "the first one closed the list");
}

/// S11.6, S7.42: a question that comes while the list is open is answered by no key of the list.
#[test]
fn no_key_of_the_list_answers_a_question() {
    let mut world = World::running().and_list();
    world.question();
    world.shows("a question waits for you");
    for letter in ['y', 'a', 'n'] {
        world.wait(CALM);
        assert_eq!(world.tap(KeyCode::Char(letter)), []);
    }
    assert_eq!(world.tap(KeyCode::Esc), []);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "the list was closed a moment ago");
}

/// A stop goes past the list, and so does the second Ctrl-C of a chat that ends.
#[test]
fn ctrl_c_stops_the_turn_behind_the_list() {
    let mut world = World::running().and_list();
    assert!(matches!(world.control('c')[..], [Action::Stop(_), Action::HandBack]));
    assert_eq!(world.control('c'), [Action::Quit(Leave::AtOnce)]);
    let mut world = World::with_list();
    assert_eq!(world.control('c'), [], "it closes the list");
    world.wait(CALM * 3);
    assert_eq!(world.control('c'), []);
    world.shows("Ctrl-C again ends this chat");
}

/// S12.50: a file is overwritten by the letter that is shown, and by none that was typed before it could be read; any other
/// key is what it is, and leaves the file.
#[test]
fn a_file_is_overwritten_only_by_the_letter_that_is_shown() {
    let path = PathBuf::from("a.md");
    let asked = || {
        let mut world = World::begun();
        let now = world.now;
        world.state.ask_overwrite(path.clone(), now);
        world.shows("a.md is there already: y overwrites it · n leaves it");
        world
    };
    let mut world = asked();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), asks(KeptAsk::Overwrite(path.clone())));
    for (first, typed) in [(KeyCode::Char('y'), "y"), (KeyCode::Char('x'), "x"), (KeyCode::Esc, "")] {
        let mut world = asked();
        assert_eq!(world.press(first, KeyModifiers::NONE), [], "it was typed ahead, or is another key");
        assert_eq!(world.state.input.text(), typed);
        world.shows("not exported");
        world.state.input.clear();
        world.wait(CALM);
        assert_eq!(world.tap(KeyCode::Char('y')), []);
    }
}

/// S7.43
#[test]
fn a_chat_says_as_it_ends_how_to_come_back() {
    let mut world = World::new();
    world.state.kept.returns = Some("safepoint --resume 1234".into());
    assert_eq!(world.state.farewell(), None, "there is nothing to come back to");
    world.state.kept.is_begun = true;
    assert_eq!(world.state.farewell().unwrap(), "Stored; come back with `safepoint --resume 1234`");
    world.state.kept.returns = None;
    assert!(world.state.farewell().unwrap().contains("Not stored"));
}

/// The list of models: what is chosen is taken, Esc takes none, and a provider that is missing is named.
#[test]
fn a_model_is_chosen_from_a_list() {
    let mut world = World::new();
    assert_eq!(world.enters("/model"), [Action::OfferModels]);
    let offered = OfferedModels {
        names: vec!["openai:a".into(), "openai:b".into(), "practice".into()],
        missing: vec!["groq: no answer within 5 s".into()],
    };
    world.state.pick_model(&offered);
    world.shows("no list of models from groq: no answer within 5 s");
    world.type_in("b");
    assert_eq!(world.tap(KeyCode::Enter), [Action::Model("openai:b".into())]);
    world.state.pick_model(&offered);
    assert_eq!(world.tap(KeyCode::Esc), []);
    world.hides("openai:a");
}
