//! The last answer goes to the clipboard, encoded, and nothing else does.

use crossterm::event::KeyCode;

use super::World;

#[test]
fn the_last_answer_is_copied() {
    let mut world = World::new();
    let copy = |world: &mut World| {
        world.state.input.set("/copy".to_owned());
        assert_eq!(world.tap(KeyCode::Enter), []);
        world.state.take_call().map(|drawn| drawn.to_string())
    };
    assert_eq!(copy(&mut world), None);
    world.shows("no answer to copy yet");
    world.state.answered("a \u{1b}[2J\nb");
    world.state.answered(" ");
    assert_eq!(copy(&mut world).unwrap(), "\u{1b}]52;c;YSAbWzJKCmI=\u{1b}\\");
    world.shows("2 lines");
    assert_eq!(world.state.take_call(), None, "once");
    world.state.answered(&"x".repeat(100_000));
    assert_eq!(copy(&mut world), None);
    world.shows("74000 are the most");
}
