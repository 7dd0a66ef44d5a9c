//! Going back: what Esc, the commands and the letters ask for.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use safepoint::ids::TurnId;

use super::World;
use crate::render::chat::{
    choosing::OfferedTurn,
    keys::CALM,
    rewind::{Choices, Extent, RewindAsk},
    state::Action,
};

impl World {
    fn esc(&mut self) -> Vec<Action> {
        self.press(KeyCode::Esc, KeyModifiers::NONE)
    }

    fn letter(&mut self, letter: char) -> Vec<Action> {
        self.press(KeyCode::Char(letter), KeyModifiers::NONE)
    }

    fn line(&mut self, text: &str) -> Vec<Action> {
        self.state.input.set(text.to_owned());
        self.press(KeyCode::Enter, KeyModifiers::NONE)
    }
}

fn asks(ask: RewindAsk) -> Vec<Action> {
    vec![Action::Rewind(ask)]
}

/// S7.35, S11.6
#[test]
fn two_escapes_of_an_idle_chat_list_the_turns_and_one_does_nothing() {
    let mut world = World::new();
    assert_eq!(world.esc(), []);
    assert_eq!(world.esc(), asks(RewindAsk::Turns));
    assert_eq!(world.esc(), [], "the next two begin anew");
    world.wait(Duration::from_secs(4));
    assert_eq!(world.esc(), [], "too late");
    world.letter('x');
    world.press(KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(world.esc(), [], "another key was between them");
    world.letter('x');
    assert_eq!((world.esc(), world.esc()), (vec![], vec![]), "something is typed");
}

/// S7.35
#[test]
fn commands_name_the_turn_and_the_files() {
    let mut world = World::new();
    assert_eq!(world.line("/rewind"), asks(RewindAsk::Turns));
    assert_eq!(world.line("/undo"), asks(RewindAsk::Undo));
    for named in ["/rewind 3 a \"b c\"", "/rewind turn-3 a \"b c\""] {
        let files = vec!["a".to_owned(), "b c".to_owned()];
        assert_eq!(world.line(named), asks(RewindAsk::Before(TurnId::new(3), files)));
    }
    assert_eq!(world.line("/rewind back"), []);
}

/// S7.35, S11.6: only a letter that is shown decides, and none that was typed before it could be read; Esc changes nothing.
#[test]
fn only_a_letter_that_is_shown_decides() {
    let all = [('b', Extent::Both), ('c', Extent::Conversation), ('F', Extent::Files)];
    for (letter, extent) in all {
        let mut world = World::new();
        let now = world.now;
        world.state.ask_rewind(&["Going back".to_owned()], Choices::All, now);
        assert_eq!(world.letter(letter), [], "it was typed ahead");
        world.press(KeyCode::Backspace, KeyModifiers::NONE);
        world.wait(CALM);
        assert_eq!(world.letter('y'), []);
        world.wait(CALM);
        assert_eq!(world.letter(letter), asks(RewindAsk::Go(extent)));
        assert_eq!(world.letter(letter), [], "it is typed now");
    }
    let mut world = World::new();
    let now = world.now;
    world.state.ask_rewind(&[], Choices::Conversation, now);
    for letter in ['b', 'f'] {
        world.wait(CALM);
        assert_eq!(world.letter(letter), []);
    }
    assert_eq!(world.esc(), []);
    world.wait(CALM);
    assert_eq!(world.letter('c'), []);
}

/// S7.35: the turns are listed, the newest first; the one that is chosen is looked at before anything happens, and Esc leaves all as it is.
#[test]
fn a_turn_is_chosen_from_a_list() {
    let mut world = World::new();
    let turn = |number, said: &str| OfferedTurn {
        turn: TurnId::new(number),
        said: said.to_owned(),
        when: "3 min ago".to_owned(),
    };
    let turns = [turn(2, "write it"), turn(1, "read it")];
    world.state.pick_turn(&turns);
    world.shows("Turns to go back to");
    world.shows("2 write it");
    world.tap(KeyCode::Down);
    assert_eq!(world.tap(KeyCode::Enter), asks(RewindAsk::Before(TurnId::new(1), Vec::new())));
    world.state.pick_turn(&turns);
    assert_eq!(world.tap(KeyCode::Esc), []);
    world.state.pick_turn(&[]);
    world.shows("nothing to go back to");
}
