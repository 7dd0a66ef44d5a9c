//! How the chat looks: what is apart from what, and what is never cut off.

use super::*;
use crate::render::chat::{rewind::Choices, state::Tone};

impl World {
    /// The rows of the screen, those above the pane included.
    fn rows(&mut self) -> Vec<String> {
        self.screen().lines().map(|row| row.trim_matches('"').trim_end().to_owned()).collect()
    }

    /// What stands on the row before the one that begins so.
    fn before(&mut self, begins: &str) -> String {
        let rows = self.rows();
        let at = rows.iter().position(|row| row.starts_with(begins)).unwrap_or_else(|| panic!("{rows:#?}"));
        rows[at - 1].clone()
    }
}

/// S12.66
#[test]
fn the_models_text_stands_apart_from_the_notes_above_it() {
    let mut world = World::running();
    world.state.tell(Tone::Aside, "a note");
    world.run(EventKind::Text("It is".into()));
    assert_eq!(world.before("It is"), "", "while it streams");
    world.run(EventKind::Text(" done.\n\nAnd more.\n\n".into()));
    assert_eq!(world.before("It is done."), "", "and when it stands");
    let rows = world.rows();
    let at = rows.iter().position(|row| row == "a note").unwrap();
    assert_eq!(rows[at..at + 5], ["a note", "", "It is done.", "", "And more."]);
}

/// S12.66: no key that is offered is cut off on a narrow screen: the row continues below.
#[test]
fn the_keys_continue_in_another_row_where_one_is_too_narrow() {
    let mut world = World::new();
    world.state.columns = 60;
    world.state.ask_rewind(&["Going back".to_owned()], Choices::All, world.now);
    world.wait(CALM);
    let rows = world.rows();
    let keys: Vec<&String> = rows.iter().filter(|row| row.contains("files") || row.contains("Esc")).collect();
    assert_eq!(keys, ["ask · b both go back · c conversation · f files", "Esc changes nothing"]);
    world.state.columns = 80;
    world.shows("ask · b both go back · c conversation · f files · Esc changes nothing");
}

/// S7.35, S12.66: what cannot be undone is whole on a narrow screen, and hangs below its label.
#[test]
fn what_cannot_be_undone_is_never_cut_off() {
    let mut world = World::new();
    world.state.columns = 60;
    let row =
        "  not undone    shell cargo publish --registry one-of-our-own --package words (done)".to_owned();
    world.state.ask_rewind(&[row], Choices::Conversation, world.now);
    let hangs = "                one-of-our-own --package words (done)";
    assert_eq!(world.before(hangs), "  not undone    shell cargo publish --registry");
}
