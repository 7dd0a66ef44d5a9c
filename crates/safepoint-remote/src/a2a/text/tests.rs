//! Answers under construction.

use super::*;

/// A task's artifacts.
fn task(text: &str) -> Vec<(String, String)> {
    vec![("a".into(), text.into())]
}

/// S5.4: reported text is not reported again when everything arrives once more.
#[test]
fn what_was_reported_is_not_reported_again() {
    let mut text = Text::default();
    assert_eq!(text.part("a", "one", Joins::Replaces).as_deref(), Some("one"));
    assert_eq!(text.part("a", " two", Joins::Appends).as_deref(), Some(" two"));
    assert_eq!(text.looked(task("one two three")), " three");
    assert_eq!(text.ended(Vec::new()), "", "a peer that leaves them out takes nothing back");
    assert_eq!(text.part("a", " three", Joins::Appends).as_deref(), Some(""));
    assert_eq!(text.part("a", "other", Joins::Replaces).as_deref(), Some("\nother"));
    assert_eq!(text.whole(), "other");
}

/// An answer that the remote agent sends as messages and then as an artifact is reported once.
#[test]
fn an_answer_said_in_passing_is_not_reported_again() {
    let mut text = Text::default();
    text.note("step 1. ");
    text.note("step 2. ");
    assert_eq!(text.part("a", "step 1. step 2. ", Joins::Replaces).as_deref(), Some(""));
    assert_eq!(text.whole(), "step 1. step 2. ");
}

/// S10.42: a read that is ahead of its stream, or behind it, adds nothing twice and revokes nothing.
#[test]
fn a_look_is_neither_ahead_nor_behind() {
    let mut text = Text::default();
    assert_eq!(text.part("a", "ha", Joins::Replaces).as_deref(), Some("ha"));
    assert_eq!(text.looked(task("hahaha")), "haha");
    assert!(!text.is_whole(), "the stream has yet to tell of it");
    assert_eq!(text.part("a", "ha", Joins::Appends).as_deref(), Some(""));
    assert_eq!(text.looked(task("ha")), "", "an old look");
    assert_eq!(text.part("a", "haha!", Joins::Appends).as_deref(), Some("ha!"));
    assert!(text.is_whole());
    assert_eq!(text.whole(), "hahahaha!");
}

/// S10.42: no piece of a torn stream is placed until the task shows its place.
#[test]
fn a_piece_of_a_torn_stream_has_no_place() {
    let mut text = Text::default();
    assert_eq!(text.part("a", "one ", Joins::Replaces).as_deref(), Some("one "));
    text.torn();
    assert_eq!(text.part("a", "three ", Joins::Appends), None);
    assert_eq!(text.part("b", "three ", Joins::Appends), None);
    assert_eq!(text.looked(task("one two three ")), "two three ");
    assert_eq!(text.part("a", "four", Joins::Appends), None, "a look is not a place in the stream");
    assert_eq!(text.looked(task("one two three four!")), "four!");
    assert_eq!(text.streamed(task("one two three four")), "", "the stream is behind the look");
    assert_eq!(text.part("a", "!", Joins::Appends), None, "the task that it began with may have it already");
    assert_eq!(text.streamed(Vec::new()), "", "one that leaves them out takes nothing back");
    assert!(!text.is_whole());
    assert_eq!(text.place("a"), "", "all that came without a place is the end of what is known");
    assert_eq!(text.part("a", "?", Joins::Appends).as_deref(), Some("?"));
    assert!(!text.is_whole());
}

/// S10.42: of artifacts that grow in turn each piece is reported once, as it comes; the answer has them in
/// order.
#[test]
fn artifacts_that_grow_in_turn_are_reported_once() {
    let whole = || [("a", "1 3 5 "), ("b", "2 4 ")].map(|(id, text)| (id.to_owned(), text.to_owned())).into();
    for looks in [true, false] {
        let mut text = Text::default();
        let mut reported = String::new();
        for (id, piece) in [("a", "1 "), ("b", "2 "), ("a", "3 "), ("b", "4 "), ("a", "5 ")] {
            let news = text.part(id, piece, Joins::Appends).unwrap();
            text.says(&news);
            reported.push_str(&news);
        }
        assert_eq!(reported, "1 2 3 4 5 ");
        assert_eq!(if looks { text.looked(whole()) } else { text.ended(whole()) }, "");
        assert_eq!((text.bytes(), text.answer()), (10, Answer::Reordered("1 3 5 2 4 ".into())));
    }
    let mut text = Text::default();
    assert_eq!(text.part("b", "2 ", Joins::Appends).as_deref(), Some("2 "));
    assert_eq!(text.ended(whole()), "1 3 5 4 ", "of each artifact what is yet to be reported");
}

/// S10.42: where the task cannot be read, a stream that repeats reported text, from any place, adds nothing
/// twice.
#[test]
fn what_arrives_again_is_known_again() {
    const PIECES: [&str; 4] = ["one ", "two ", "three ", "four"];
    for from in 0..3 {
        let (mut text, mut reported) = (Text::default(), String::new());
        for piece in &PIECES[..3] {
            reported.push_str(&text.part("a", piece, Joins::Appends).unwrap());
        }
        text.torn();
        for piece in &PIECES[from..] {
            let news = text.part("a", piece, Joins::Appends);
            reported.push_str(&news.unwrap_or_else(|| text.place("a")));
        }
        assert_eq!(text.held(), 0, "{from}: there is no gap");
        assert_eq!(
            (reported.as_str(), text.whole().as_str()),
            ("one two three four", "one two three four"),
            "{from}"
        );
        assert!(!text.is_whole(), "it is unknown what was missed");
    }
}

/// S10.42: text that may be a repeat and is not is reported when no source will show its place.
#[test]
fn what_was_kept_is_reported_at_the_end() {
    let mut text = Text::default();
    assert_eq!(text.part("a", "ha! ho.", Joins::Appends).as_deref(), Some("ha! ho."));
    text.torn();
    assert_eq!(text.part("a", "ha!", Joins::Appends), None);
    assert_eq!(text.place("a"), "", "it may repeat reported text, and continue as that does");
    assert_eq!(text.settle(), "ha!");
    text.torn();
    assert_eq!(text.part("b", "new", Joins::Appends), None);
    assert_eq!(text.place("b") + &text.release(), "new", "an artifact of which nothing was known");
    assert_eq!(text.whole(), "ha! ho.ha!new");
}

/// S10.42: where a later read shows the task, the missing text is reported, and nothing twice.
#[test]
fn what_was_missing_is_reported_when_the_task_is_seen() {
    for ends in [true, false] {
        let mut text = Text::default();
        assert_eq!(text.part("a", "one ", Joins::Appends).as_deref(), Some("one "));
        text.torn();
        assert_eq!(text.part("a", "three", Joins::Appends), None);
        assert_eq!(
            (text.place("a").as_str(), text.held()),
            ("", 5),
            "it is held: what comes before it may be shown"
        );
        let whole = || task("one two three four");
        assert_eq!(if ends { text.ended(whole()) } else { text.looked(whole()) }, "two three four");
        text.torn();
        assert_eq!(text.part("a", "six", Joins::Appends), None);
        assert_eq!(text.place("a") + &text.release(), "six", "it was held for long enough");
        text.torn();
        assert_eq!(text.part("a", "eight", Joins::Appends), None);
        assert_eq!(text.place("a") + &text.release(), "eight");
        assert_eq!(text.looked(task("one two three four five ")), "", "an old look");
        assert_eq!(text.looked(task("one two three four five six")), "", "it has not all that was reported");
        let whole = || task("one two three four five six seven eight nine");
        assert_eq!(if ends { text.ended(whole()) } else { text.looked(whole()) }, " five  seven  nine");
        assert_eq!(text.looked(whole()), "");
    }
    let mut text = Text::default();
    assert_eq!(text.part("a", "one ", Joins::Appends).as_deref(), Some("one "));
    text.torn();
    assert_eq!(text.part("a", "three", Joins::Appends), None);
    assert_eq!(text.place("a") + &text.release(), "three");
    assert_eq!(text.looked(task("one two three")), "two ");
    assert_eq!(text.looked(task("one two three four")), " four");
}

/// S12.4: an answer that is too large is passed on, and not kept.
#[test]
fn nothing_is_kept_of_an_answer_that_is_too_large() {
    let mut text = Text::within(4);
    assert_eq!(text.part("a", "four", Joins::Replaces).as_deref(), Some("four"));
    assert_eq!(text.whole(), "four");
    assert_eq!(text.part("a", "+", Joins::Appends).as_deref(), Some("+"));
    assert_eq!(text.part("b", "more", Joins::Replaces).as_deref(), Some("more"));
    assert_eq!((text.looked(task("four+")), text.ended(task("four+"))), (String::new(), String::new()));
    assert_eq!((text.whole(), text.bytes(), text.is_whole()), (String::new(), 9, true));
}

/// S12.4, S10.42: an answer that equals the reports is not built again; one that differs is.
#[test]
fn an_answer_that_was_said_is_not_put_together_again() {
    let mut text = Text::default();
    for (piece, joins) in [("one", Joins::Replaces), (" two", Joins::Appends)] {
        let news = text.part("a", piece, joins).unwrap();
        text.says(&news);
    }
    assert_eq!(text.answer(), Answer::AsSaid);
    let news = text.ended(task("one two three"));
    assert_eq!(text.answer(), Answer::Another("one two three".into()), "the rest is yet to be said");
    text.says(&news);
    assert_eq!(text.answer(), Answer::AsSaid);
    let news = text.part("a", "other", Joins::Replaces).unwrap();
    text.says(&news);
    assert_eq!(text.answer(), Answer::Reordered("other".into()), "something was taken back");
}
