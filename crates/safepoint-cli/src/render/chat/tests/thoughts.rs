//! The reasoning of the model.

use super::*;

impl World {
    fn thinks(&mut self, text: &str) {
        assert_eq!(self.run(EventKind::Reasoning(text.into())), []);
    }
}

/// S12.80: while it comes its last line is shown, then a row, and never as a part of the answer.
#[test]
fn reasoning_is_shown_by_its_last_line_while_it_comes_and_then_by_a_row() {
    let mut world = World::running();
    world.fact(Fact::ModelStarted { round: 2 });
    world.thinks("First I look\nat the table\n");
    world.thinks("then I book \u{1b}[2Jit");
    world.wait(Duration::from_secs(3));
    world.shows("∴ thinking  3 s");
    world.shows("  │ then I book \\u{1b}[2Jit");
    world.shows("  │ First I look");
    world.run(EventKind::Text("Booked.".into()));
    world.shows("∴ thought for 3 s: Ctrl-T shows it");
    world.hides("thinking");
    world.hides("I book");
    world.shows("Booked.");
}

/// S12.80
#[test]
fn a_key_shows_all_reasoning_of_the_last_turn_that_had_some() {
    let mut world = World::running();
    world.control('t');
    world.shows("the model has shown no reasoning in this chat");
    world.thinks("I look");
    assert_eq!(world.control('t'), [Action::Page("I look\n".into())], "while it comes, too");
    world.run(EventKind::CallBegun("shell".into()));
    world.thinks("I look again");
    world.run(EventKind::Text("Done.".into()));
    let id = world.accepted("and now", PushKind::Queue);
    world.state.hear(ChatEvent::Started(vec![id]), world.now);
    assert_eq!(world.control('t'), [Action::Page("I look\n\n———\n\nI look again\n".into())]);
    world.thinks("New");
    assert_eq!(world.say("/thoughts"), [Action::Page("New\n".into())]);
}

/// S12.80, S6.18: endless reasoning fills no memory, and what is left out is counted.
#[test]
fn of_endless_reasoning_the_beginning_is_kept_and_the_rest_is_counted() {
    let mut world = World::running();
    let piece = "ü".repeat(1 << 15);
    for _ in 0..40 {
        world.thinks(&piece);
    }
    let [Action::Page(whole)] = &world.control('t')[..] else { panic!("a page") };
    assert!(whole.len() < (1 << 20) + 100, "{}", whole.len());
    assert!(whole.ends_with("[1572864 bytes more are not kept here]\n"), "{}", &whole[whole.len() - 60..]);
}
