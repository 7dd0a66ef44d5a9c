//! The reasoning of a model in a chat.

use serde_json::json;

use super::place::Place;

/// S12.80: a row says that the model reasoned, and a key shows what, of which the terminal obeys nothing whatever the pager is.
#[test]
fn the_reasoning_of_a_turn_is_a_row_and_a_key_shows_it() {
    let thought = "I weigh both\n\u{1b}]0;theirs\u{7}and \u{202e}choose";
    let place = Place::new(&json!([{"reasoning": thought, "text": "The first."}]));
    let mut chat = place.chat(&[], &[("PAGER", "cat; echo THE PAGER; read line < /dev/tty")]);
    chat.press("which one?\r");
    chat.until("∴ thought for");
    chat.until("The first.");
    assert!(!chat.screen().contains("I weigh both"), "it is folded: {}", chat.screen());
    chat.press("\x14");
    chat.until("THE PAGER");
    chat.until("I weigh both");
    assert!(chat.screen().contains("\\u{1b}]0;theirs\\u{7}and \\u{202e}choose"), "{}", chat.screen());
    assert!(!chat.raw().contains("\u{1b}]0;theirs"), "the terminal was given it to obey");
    chat.press("\r");
    chat.until(super::place::IDLE);
    chat.press("\x04");
    assert_eq!(chat.end().0, 0);
}
