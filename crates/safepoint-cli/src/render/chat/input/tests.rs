//! The editor: what its keys do, what can be undone, and where the cursor is seen.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;

const WIDTH: usize = 10;

fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
    assert!(input.key(KeyEvent::new(code, modifiers)), "{code:?}");
}

fn control(input: &mut Input, letters: &str) {
    letters.chars().for_each(|letter| press(input, KeyCode::Char(letter), KeyModifiers::CONTROL));
}

fn alt(input: &mut Input, letters: &str) {
    letters.chars().for_each(|letter| press(input, KeyCode::Char(letter), KeyModifiers::ALT));
}

fn typed(text: &str) -> Input {
    let mut input = Input::default();
    text.chars().for_each(|letter| match letter {
        '\n' => control(&mut input, "j"),
        letter => press(&mut input, KeyCode::Char(letter), KeyModifiers::NONE),
    });
    input
}

/// The text with a bar where the cursor is.
fn seen(input: &Input) -> String {
    let (before, behind) = input.text().split_at(input.cursor());
    format!("{before}|{behind}")
}

#[test]
fn it_edits_by_what_people_call_a_letter() {
    let mut input = Input::default();
    input.insert("añ👩‍👩‍👧x");
    press(&mut input, KeyCode::Left, KeyModifiers::NONE);
    press(&mut input, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(input.text(), "añx");
    control(&mut input, "u");
    assert_eq!(input.text(), "x");
    input.set("one two  ".into());
    control(&mut input, "w");
    assert_eq!(input.text(), "one ");
    let mut input = typed("ne\u{301}");
    press(&mut input, KeyCode::Left, KeyModifiers::NONE);
    assert_eq!(seen(&input), "n|e\u{301}", "a combining mark is one with its letter");
    press(&mut input, KeyCode::Char('\u{301}'), KeyModifiers::NONE);
    assert_eq!(seen(&input), "n\u{301}|e\u{301}");
}

#[test]
fn it_moves_by_words_and_lines() {
    let mut input = typed("let x = a_b(字字, y);\nsecond");
    alt(&mut input, "bb");
    assert_eq!(seen(&input), "let x = a_b(字字, |y);\nsecond");
    press(&mut input, KeyCode::Left, KeyModifiers::CONTROL);
    press(&mut input, KeyCode::Left, KeyModifiers::ALT);
    assert_eq!(seen(&input), "let x = |a_b(字字, y);\nsecond");
    alt(&mut input, "f");
    press(&mut input, KeyCode::Right, KeyModifiers::CONTROL);
    assert_eq!(seen(&input), "let x = a_b(字字|, y);\nsecond");
    press(&mut input, KeyCode::Home, KeyModifiers::NONE);
    assert_eq!(seen(&input), "|let x = a_b(字字, y);\nsecond");
    control(&mut input, "e");
    assert_eq!(seen(&input), "let x = a_b(字字, y);|\nsecond");
    alt(&mut input, ">");
    control(&mut input, "a");
    assert_eq!(seen(&input), "let x = a_b(字字, y);\n|second");
    alt(&mut input, "<d");
    assert_eq!(seen(&input), "| x = a_b(字字, y);\nsecond");
}

/// What is cut by several keys in a row comes back as one, and what was cut before in its place.
#[test]
fn what_is_cut_can_be_put_back() {
    let mut input = typed("one two three");
    control(&mut input, "ww");
    assert_eq!(seen(&input), "one |");
    control(&mut input, "a");
    control(&mut input, "k");
    assert_eq!(seen(&input), "|");
    control(&mut input, "y");
    assert_eq!(seen(&input), "one |");
    alt(&mut input, "y");
    assert_eq!(seen(&input), "two three|");
    alt(&mut input, "y");
    assert_eq!(seen(&input), "one |", "the ring begins again");
    let mut input = typed("a\nb");
    press(&mut input, KeyCode::Left, KeyModifiers::NONE);
    press(&mut input, KeyCode::Left, KeyModifiers::NONE);
    control(&mut input, "k");
    assert_eq!(seen(&input), "a|b", "at the end of a line its break is cut");
    input.take();
    control(&mut input, "y");
    assert_eq!(seen(&input), "\n|", "also after the message was sent");
}

/// A word that is typed is one step, and so is a paste, a cut, and a message that takes the place of another.
#[test]
fn each_change_can_be_undone_and_done_again() {
    let mut input = typed("one two");
    input.paste("pasted\ntext");
    control(&mut input, "w");
    let steps = ["one twopasted\n|", "one twopasted\ntext|", "one two|", "one|", "|"];
    assert_eq!(seen(&input), steps[0]);
    for step in &steps[1..] {
        control(&mut input, "7");
        assert_eq!(seen(&input), *step);
    }
    for step in steps[..4].iter().rev() {
        alt(&mut input, "_");
        assert_eq!(seen(&input), *step);
    }
    input.set("another".into());
    control(&mut input, "_");
    assert_eq!(seen(&input), steps[0]);
    press(&mut input, KeyCode::Char('x'), KeyModifiers::NONE);
    alt(&mut input, "_");
    assert_eq!(seen(&input), "one twopasted\nx|", "what was typed since is not undone by a redo");
    input.clear();
    control(&mut input, "_");
    assert_eq!(seen(&input), "one twopasted\nx|");
}

#[test]
fn what_is_pasted_moves_no_cursor() {
    let mut input = Input::default();
    input.insert("a\r\nb\x1b[2J\tc");
    assert_eq!(input.text(), "a\nb[2J\tc");
    assert_eq!(input.rows(80), (vec!["a".to_owned(), "b[2J    c".to_owned()], (9, 1)));
}

#[test]
fn what_would_reverse_the_text_is_shown_as_what_it_is() {
    let mut input = Input::default();
    input.insert("a\u{202e}b\u{2066}");
    assert_eq!(input.text(), "a\u{202e}b\u{2066}", "it is said as it was typed");
    assert_eq!(input.rows(80), (vec!["a\\u{202e}b\\u{2066}".to_owned()], (18, 0)));
}

#[test]
fn rows_hold_wide_letters_and_the_cursor_after_a_full_row() {
    let mut input = Input::default();
    input.insert("字字a");
    assert_eq!(input.rows(4), (vec!["字字".to_owned(), "a".to_owned()], (1, 1)));
    input.set("abcd".into());
    assert_eq!(input.rows(4), (vec!["abcd".to_owned(), String::new()], (0, 1)));
}

/// S12.51: Up and Down move by the rows that are seen, those of a long line too, and keep to their column.
#[test]
fn up_and_down_move_by_the_rows_that_are_seen() {
    let mut input = typed("0123456789abcd\nx\n字字字字yz");
    let at = |input: &Input| input.rows(WIDTH).1;
    assert_eq!(at(&input), (0, 4), "behind a full row");
    press(&mut input, KeyCode::Left, KeyModifiers::NONE);
    assert_eq!(at(&input), (9, 3));
    for place in [(1, 2), (4, 1), (9, 0)] {
        assert!(input.vertical(Way::Back, WIDTH));
        assert_eq!(at(&input), place);
    }
    assert!(!input.vertical(Way::Back, WIDTH), "it is the first row");
    for place in [(4, 1), (1, 2), (9, 3), (0, 4)] {
        assert!(input.vertical(Way::Forth, WIDTH));
        assert_eq!(at(&input), place);
    }
    assert!(!input.vertical(Way::Forth, WIDTH), "it is the last row");
}

#[test]
fn earlier_inputs_are_recalled_and_left_again() {
    let mut input = Input::default();
    for text in ["one", "two"] {
        input.set(text.into());
        input.take();
    }
    input.set("not yet sent".into());
    input.recall(Way::Back);
    input.recall(Way::Back);
    input.recall(Way::Back);
    assert_eq!(input.text(), "one");
    input.recall(Way::Forth);
    assert_eq!(input.text(), "two");
    input.recall(Way::Forth);
    assert_eq!(input.text(), "not yet sent", "nothing that was typed is lost");
    input.recall(Way::Forth);
    assert_eq!(input.text(), "not yet sent");
    input.remember_before(vec!["zero".into()]);
    (0..4).for_each(|_| input.recall(Way::Back));
    assert_eq!(input.text(), "zero");
    press(&mut input, KeyCode::Char('!'), KeyModifiers::NONE);
    control(&mut input, "7");
    control(&mut input, "7");
    assert_eq!(input.text(), "one", "what was recalled is a step, too");
}

/// S12.51: a long paste is shown in one word, and is all there when it is sent, undone, put back or edited.
#[test]
fn a_long_paste_is_shown_in_one_word_and_sent_whole() {
    let long: String = (0..120).map(|line| format!("line {line}\n")).collect();
    let mut input = typed("look: ");
    input.paste(&long);
    input.paste(" and");
    let (rows, _) = input.rows(80);
    assert_eq!(rows, ["look: [pasted 120 lines] and"]);
    let draft = input.draft();
    assert_eq!(draft.whole(), format!("look: {long} and"));
    control(&mut input, "77");
    assert_eq!(input.rows(80).0, ["look: "]);
    alt(&mut input, "__");
    // As one letter it is moved over and cut.
    (0..5).for_each(|_| press(&mut input, KeyCode::Left, KeyModifiers::NONE));
    press(&mut input, KeyCode::Delete, KeyModifiers::NONE);
    assert_eq!(input.rows(80).0, ["look:  and"]);
    input.edited(&Draft::from("look:  and".to_owned()), "edited");
    assert_eq!(input.text(), "edited");
    input.restore(&draft);
    input.edited(&draft, &format!("see: {long}!"));
    assert_eq!(input.rows(80).0, ["see: [pasted 120 lines]!"], "what is unchanged stays folded");
    assert_eq!(input.take(), format!("see: {long}!"));
    input.recall(Way::Back);
    assert_eq!(input.text(), format!("see: {long}!"), "what is recalled is whole");
    input.paste(&"x".repeat(1_001));
    assert!(input.rows(80).0.last().unwrap().ends_with("[pasted 1001 characters]"));
}

/// What stands for a paste comes from a paste alone.
#[test]
fn no_text_from_outside_stands_for_a_paste() {
    let mut input = Input::default();
    input.paste(&"line\n".repeat(20));
    let forged = input.text().to_owned();
    input.paste(&forged);
    assert_eq!(input.draft().whole(), "line\n".repeat(20));
    input.set(forged.clone());
    assert!(input.is_empty());
    press(&mut input, KeyCode::Char('a'), KeyModifiers::NONE);
    input.put_before(&Draft::from(forged));
    assert_eq!(input.text(), "\na");
}

/// What the editor gives back takes the place of what it was given, and of nothing else.
#[test]
fn what_came_while_the_editor_was_open_stays() {
    let mut input = typed("draft");
    let before = input.draft();
    input.put_before(&Draft::from("came back".to_owned()));
    input.edited(&before, "edited");
    assert_eq!(input.text(), "came back\nedited");
    let mut input = Input::default();
    input.edited(&Draft::default(), "new");
    assert_eq!(input.text(), "new");
}
