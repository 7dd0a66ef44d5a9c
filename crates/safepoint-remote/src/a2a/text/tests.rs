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

/// A die that falls the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(most).unwrap()).unwrap()
    }
}

/// The task after this many of its pieces.
fn task_after(pieces: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut task: Vec<(String, String)> = Vec::new();
    for (id, piece) in pieces {
        match task.iter_mut().find(|(known, _)| known == id) {
            Some((_, text)) => text.push_str(piece),
            None => task.push(((*id).into(), (*piece).into())),
        }
    }
    task
}

/// S10.42: a stream that begins with the task at any place, tasks on it, and reads that are ahead of it or behind, in any
/// order: each piece is reported once, and is in the answer once.
#[test]
fn each_piece_is_there_once_in_whichever_order_a_look_and_its_stream_arrive() {
    const PIECES: [&str; 5] = ["ha", "ha", "a", "haha", "! "];
    for seed in 1..=20_000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let artifacts = 1 + dice.below(3);
        let pieces: Vec<(&str, &str)> = (0..=dice.below(10))
            .map(|_| (["a", "b", "c"][dice.below(artifacts)], PIECES[dice.below(5)]))
            .collect();
        let (mut text, mut reported) = (Text::default(), Reported::default());
        let mut at = dice.below(pieces.len() + 1);
        let mut news = text.passed(task_after(&pieces[..at]));
        while at < pieces.len() {
            reported.add(&news);
            assert!(!news.contains('\n'), "{seed}: nothing is taken back");
            news = match dice.below(4) {
                0 => text.looked(task_after(&pieces[..dice.below(pieces.len() + 1)])),
                1 => text.passed(task_after(&pieces[..at])),
                _ => {
                    let (id, piece) = pieces[at];
                    let is_first = pieces[..at].iter().all(|(known, _)| *known != id);
                    at += 1;
                    let joins = if is_first { Joins::Replaces } else { Joins::Appends };
                    text.part(id, piece, joins).expect("the stream is whole")
                }
            };
        }
        reported.add(&news);
        let mut known: Vec<(&str, &str)> =
            text.artifacts.iter().map(|artifact| (artifact.id.as_str(), artifact.text.as_str())).collect();
        known.sort_unstable();
        let mut whole = task_after(&pieces);
        whole.sort_unstable();
        assert!(
            known.iter().copied().eq(whole.iter().map(|(id, text)| (&**id, &**text))),
            "{seed}: {known:?}"
        );
        let bytes: usize = pieces.iter().map(|(_, piece)| piece.len()).sum();
        assert_eq!(reported.bytes, bytes, "{seed}: each piece is reported once");
        assert!(text.is_whole(), "{seed}");
    }
}

/// S10.42: a task on the stream may be ahead of it: what comes again is in it, and what does not is behind it. Where both may be,
/// the answer is compared with the task at its end.
#[test]
fn a_task_on_the_stream_is_a_base_or_ahead() {
    for (next, whole, is_sure) in [("two ", "one two ", false), ("three", "one two three", true)] {
        let mut text = Text::default();
        assert_eq!(text.part("a", "one ", Joins::Replaces).as_deref(), Some("one "));
        assert_eq!(text.passed(task("one two ")), "two ");
        text.part("a", next, Joins::Appends).unwrap();
        assert_eq!((text.whole().as_str(), text.is_whole(), text.has_doubles()), (whole, true, !is_sure));
    }
    let mut text = Text::default();
    assert_eq!(text.passed(task("ha")), "ha");
    assert_eq!(text.part("a", "ha", Joins::Appends).as_deref(), Some("ha"));
    assert!(text.has_doubles(), "the task may have had it");
    assert_eq!(text.looked(task("hahaho")), "ho");
    assert_eq!(text.part("a", "other", Joins::Appends), None, "what contradicts the task has no place");
    assert_eq!(text.whole(), "hahaho");
}
