//! A model's text while it streams.

use safepoint::{event::EventKind, session::ItemOutcome};

use super::{Leave, World, turn};

/// Text goes up line by line; the line that has begun is shown below; nothing of it is lost at a cut.
#[test]
fn text_streams_and_a_cut_loses_none_of_it() {
    let mut world = World::running();
    world.run(EventKind::Text("one **two**\nthr".into()));
    world.shows("one two");
    world.shows("thr");
    assert!(world.above.iter().all(|line| !line.to_string().contains("thr")), "not yet in the scrollback");
    world.ended(ItemOutcome::Interrupted(turn(1)));
    world.screen();
    assert!(world.above.iter().any(|line| line.to_string() == "thr"));
}

/// S12.5: a line that never ends costs no more than any other: it goes up in pieces, and nothing of it is lost.
#[test]
fn a_line_without_an_end_goes_up_in_pieces() {
    let mut world = World::running();
    let piece = "ü".repeat(1000);
    for _ in 0..100 {
        world.run(EventKind::Text(piece.as_str().into()));
    }
    let drawn = world.state.partial().iter().map(|line| line.to_string().len()).sum::<usize>();
    assert!(drawn < 20_000, "{drawn} bytes are drawn with each frame");
    world.run(EventKind::Text("ж".repeat(100_000).into()));
    world.ended(ItemOutcome::Interrupted(turn(1)));
    world.screen();
    let shown: String = world.above.iter().map(ToString::to_string).collect();
    assert_eq!((shown.matches('ü').count(), shown.matches('ж').count()), (100_000, 100_000));
}

/// S12.5: text that comes while the program ends at once delays no end: it is counted, and not laid out.
#[test]
fn text_that_comes_while_the_program_ends_at_once_is_counted() {
    let mut world = World::running();
    world.run(EventKind::Text("The table ".into()));
    world.state.leaving = Some(Leave::AtOnce);
    world.run(EventKind::Text("is booked.\n\n".into()));
    world.state.end_text();
    world.shows("The table");
    world.hides("is booked");
    world.shows("(12 bytes of text that came before the end are not shown)");
}
