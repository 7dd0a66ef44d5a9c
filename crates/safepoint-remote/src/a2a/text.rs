//! The answer as it comes together, from a stream, from one that was taken up again, and from the task itself: merged by
//! artifact and place, each piece once.
//!
//! **Invariants**: what was told is never told again: not when a stream is taken up again, not when the task was looked at
//! ahead of its stream, and not when a peer repeats as an artifact what it has said in passing. A piece whose place is not
//! known is not put anywhere: the task has it.

use std::hash::{DefaultHasher, Hasher as _};

use super::wire::Joins;

/// An answer that comes together.
#[derive(Debug, Default)]
pub(super) struct Text {
    artifacts: Vec<Artifact>,
    /// Bytes of all artifacts.
    bytes: usize,
    /// What was said in passing.
    notes: Told,
    told: Told,
    /// All that was said of it, in the order in which it was.
    said: Told,
    stream: Stream,
    order: Order,
    /// Whether a piece was told twice in a row: the same event, or two that are alike.
    is_doubled: bool,
    /// How much may be kept; none: all of it.
    most: Option<usize>,
    kept: Kept,
}

/// Whether the answer is kept. Exhaustive: it is, or there was too much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    Yes,
    /// It is passed on as it comes, and known no more.
    No,
}

/// Whether what is told stands in the order of the answer. Exhaustive: it does or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Kept,
    /// An artifact grew behind which others were told: what comes is kept, and told in its order when it is released.
    Mixed,
}

/// A part of the answer that has a name.
#[derive(Debug)]
struct Artifact {
    id: String,
    text: String,
    /// How much of it the stream has told; none if that is not known.
    at: Option<usize>,
    /// The bytes of the piece that the stream told last.
    last: usize,
}

/// Whether the stream is known to have told all from the beginning. Exhaustive: it is or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Whole,
    /// A part of it may have been missed.
    Torn,
}

/// How much was told. Not a copy of it: what was told is known again by its length and its hash.
#[derive(Clone, Debug, Default)]
struct Told {
    bytes: usize,
    hash: DefaultHasher,
}

impl Told {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    /// What of these parts is new, if together they begin with what was told; they are not put together for that.
    fn rest<'p>(&self, parts: impl Iterator<Item = &'p str>) -> Option<String> {
        let (mut known, mut rest) = (Self::default(), String::new());
        for part in parts {
            let (told, new) = part.split_at_checked(part.len().min(self.bytes - known.bytes))?;
            known.add(told);
            rest.push_str(new);
        }
        (known == *self).then_some(rest)
    }
}

impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }
}

impl Artifact {
    fn new(id: &str, text: String, at: Option<usize>) -> Self {
        Self { id: id.to_owned(), text, at, last: 0 }
    }

    /// Whether this piece is the one that came right before it.
    fn repeats(&self, at: usize, piece: &str) -> bool {
        !piece.is_empty() && self.last == piece.len() && self.text[..at].ends_with(piece)
    }

    /// Puts a piece at this place: what is known from there on may be more than it, less than it, or something else.
    fn put(&mut self, at: usize, piece: &str) {
        let known = self.text.get(at..).unwrap_or_default();
        if !known.starts_with(piece) {
            let new = piece.strip_prefix(known).map(str::to_owned);
            match new {
                Some(new) => self.text.push_str(&new),
                None => {
                    self.text.truncate(at);
                    self.text.push_str(piece);
                }
            }
        }
        (self.at, self.last) = (Some(at + piece.len()), piece.len());
    }

    /// It as the task has it, which may be older or newer than what the stream has told.
    fn stands(&mut self, text: String) {
        if self.text.starts_with(&text) {
            return;
        }
        if !text.starts_with(&self.text) {
            // The peer took back what it had said: where its stream is in the new text is not known.
            self.at = None;
        }
        self.text = text;
    }
}

impl Text {
    /// An answer of at most so many bytes: nothing is kept of one that is larger.
    pub(super) fn within(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Forgets what there is too much of.
    fn bound(&mut self) {
        if self.most.is_some_and(|most| self.bytes > most) {
            *self = Self { kept: Kept::No, bytes: self.bytes, ..Self::default() };
        }
    }

    /// A piece of an artifact from the stream; what of the answer is new by it. None if its place is not known: then the
    /// task is to be asked.
    pub(super) fn part(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        if self.kept == Kept::No {
            self.bytes += piece.len();
            return Some(piece.to_owned());
        }
        let news = self.placed(id, piece, joins);
        self.bound();
        news
    }

    fn placed(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        let is_all_told = self.told.bytes == self.bytes && (self.bytes > 0 || self.notes.bytes == 0);
        let place = self.artifacts.iter().rposition(|artifact| artifact.id == id);
        let (place, at) = match (place, joins) {
            (Some(place), Joins::Appends) => (place, self.artifacts[place].at?),
            (None, Joins::Appends) if self.stream == Stream::Torn => return None,
            (None, _) => {
                self.artifacts.push(Artifact::new(id, String::new(), None));
                (self.artifacts.len() - 1, 0)
            }
            (Some(place), Joins::Replaces) => {
                let artifact = &mut self.artifacts[place];
                if artifact.at == Some(artifact.text.len()) {
                    // Nothing is known beyond what the stream takes back.
                    artifact.text.clear();
                }
                (place, 0)
            }
        };
        let is_last = place + 1 == self.artifacts.len();
        let artifact = &mut self.artifacts[place];
        let before = artifact.text.len();
        self.is_doubled |= joins == Joins::Appends && artifact.repeats(at, piece);
        artifact.put(at, piece);
        // The common case: it goes behind all that there is, and nothing else needs to be looked at.
        if is_all_told && is_last && joins == Joins::Appends && before == at && self.order == Order::Kept {
            self.bytes += piece.len();
            self.told.add(piece);
            return Some(piece.to_owned());
        }
        if joins == Joins::Appends && !is_last && artifact.text.len() > before {
            self.order = Order::Mixed;
        }
        Some(self.news())
    }

    /// Nothing is waited for any more: what was kept back is new now.
    pub(super) fn release(&mut self) -> String {
        self.order = Order::Kept;
        self.news()
    }

    /// A piece whose place nobody can say any more, because the task cannot be looked at: it goes behind all that is known.
    pub(super) fn part_somewhere(&mut self, id: &str, piece: &str) -> String {
        if self.kept == Kept::No {
            return piece.to_owned();
        }
        match self.artifacts.iter_mut().rev().find(|artifact| artifact.id == id) {
            Some(artifact) => artifact.text.push_str(piece),
            None => self.artifacts.push(Artifact::new(id, piece.to_owned(), None)),
        }
        self.news()
    }

    /// The stream broke, or another one is taken up: what it tells from now on has no place that is known.
    pub(super) fn torn(&mut self) {
        self.stream = Stream::Torn;
        self.artifacts.iter_mut().for_each(|artifact| artifact.at = None);
    }

    /// The task as it stood when somebody looked; what of the answer is new by it.
    pub(super) fn looked(&mut self, artifacts: Vec<(String, String)>) -> String {
        if self.kept == Kept::No {
            return String::new();
        }
        let at = (self.stream == Stream::Whole).then_some(0);
        for (id, text) in artifacts {
            match self.artifacts.iter_mut().find(|artifact| artifact.id == id) {
                Some(artifact) => artifact.stands(text),
                None => self.artifacts.push(Artifact::new(&id, text, at)),
            }
        }
        self.news()
    }

    /// The task as it stood at this place of the stream, which may be behind a look. Of a stream that was torn it is a look
    /// and no place: what comes next may be in it already (`a2a-sdk` listens first, and then reads the task).
    pub(super) fn streamed(&mut self, artifacts: Vec<(String, String)>) -> String {
        let places: Vec<(String, usize)> =
            artifacts.iter().map(|(id, text)| (id.clone(), text.len())).collect();
        let news = self.looked(artifacts);
        if self.stream == Stream::Torn {
            return news;
        }
        for (id, at) in places {
            if let Some(artifact) = self.artifacts.iter_mut().find(|artifact| artifact.id == id) {
                artifact.at = Some(at);
            }
        }
        news
    }

    /// The task at its end: what it has is the answer. One that leaves its artifacts out takes nothing back.
    pub(super) fn ended(&mut self, artifacts: Vec<(String, String)>) -> String {
        if !artifacts.is_empty() && self.kept == Kept::Yes {
            let whole = |(id, text): (String, String)| Artifact::new(&id, text.clone(), Some(text.len()));
            self.artifacts = artifacts.into_iter().map(whole).collect();
            self.stream = Stream::Whole;
        }
        self.release()
    }

    /// Whether all of the answer up to here is known to be here.
    pub(super) fn is_whole(&self) -> bool {
        self.kept == Kept::No
            || self.stream == Stream::Whole
                && self.artifacts.iter().all(|artifact| artifact.at == Some(artifact.text.len()))
    }

    /// Whether the stream told a piece twice in a row, which may be one event or two.
    pub(super) fn has_doubles(&self) -> bool {
        self.is_doubled
    }

    /// How much of it there is.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Something said in passing.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.add(text);
    }

    /// This of it was said to whoever listens.
    pub(super) fn says(&mut self, news: &str) {
        self.said.add(news);
    }

    /// The whole answer, if it is not what was said of it: who listened has that, and it is not put together again (S12.4).
    pub(super) fn unsaid(&self) -> Option<String> {
        let mut whole = Told::default();
        self.parts().for_each(|part| whole.add(part));
        (whole != self.said).then(|| self.whole())
    }

    /// Whether nothing of it is known.
    pub(super) fn is_empty(&self) -> bool {
        self.parts().all(str::is_empty)
    }

    /// The whole answer so far.
    pub(super) fn whole(&self) -> String {
        self.parts().collect()
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.artifacts.iter().map(|artifact| artifact.text.as_str())
    }

    fn news(&mut self) -> String {
        if self.kept == Kept::No {
            return String::new();
        }
        self.bytes = self.parts().map(str::len).sum();
        if self.order == Order::Mixed {
            return String::new();
        }
        let rest = self.told.rest(self.parts());
        let is_first = self.told.bytes == 0;
        let mut told = Told::default();
        self.parts().for_each(|part| told.add(part));
        self.told = told;
        match rest {
            // Some peers say everything in passing, and then once more as an artifact.
            Some(_) if is_first && self.notes == self.told => String::new(),
            Some(rest) => rest,
            // The peer took back what it had said: all of it is told.
            None => format!("\n{}", self.whole()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task's artifacts.
    fn task(text: &str) -> Vec<(String, String)> {
        vec![("a".into(), text.into())]
    }

    /// S5.4: what was told is not told again when everything comes once more.
    #[test]
    fn what_was_told_is_not_told_again() {
        let mut text = Text::default();
        assert_eq!(text.part("a", "one", Joins::Replaces).as_deref(), Some("one"));
        assert_eq!(text.part("a", " two", Joins::Appends).as_deref(), Some(" two"));
        assert_eq!(text.looked(task("one two three")), " three");
        assert_eq!(text.ended(Vec::new()), "", "a peer that leaves them out takes nothing back");
        assert_eq!(text.part("a", " three", Joins::Appends).as_deref(), Some(""));
        assert_eq!(text.part("a", "other", Joins::Replaces).as_deref(), Some("\nother"));
        assert_eq!(text.whole(), "other");
    }

    /// A peer that says its answer in passing and then once more is heard once.
    #[test]
    fn an_answer_said_in_passing_is_not_told_again() {
        let mut text = Text::default();
        text.note("step 1. ");
        text.note("step 2. ");
        assert_eq!(text.part("a", "step 1. step 2. ", Joins::Replaces).as_deref(), Some(""));
        assert_eq!(text.whole(), "step 1. step 2. ");
    }

    /// S10.42: a task that is looked at ahead of its stream, or behind it, adds nothing twice and takes nothing back.
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

    /// S10.42: of a stream that was torn no piece is put anywhere, until the task says where.
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
        assert_eq!(
            text.part("a", "!", Joins::Appends),
            None,
            "the task that it began with may have it already"
        );
        assert_eq!(text.streamed(Vec::new()), "", "one that leaves them out takes nothing back");
        assert!(!text.is_whole());
        assert_eq!(text.part_somewhere("a", "?"), "?");
        assert!(!text.is_whole());
    }

    /// S10.42: artifacts that grow in turn: each piece is told once as long as the order holds, and from then on all of it once, in
    /// its order, when the answer is whole or the work is to end.
    #[test]
    fn artifacts_that_grow_in_turn_are_told_in_their_order() {
        for ends in [true, false] {
            let mut text = Text::default();
            let mut told = String::new();
            for (id, piece) in [("a", "1 "), ("b", "2 "), ("a", "3 "), ("b", "4 "), ("a", "5 ")] {
                told.push_str(&text.part(id, piece, Joins::Appends).unwrap());
            }
            assert_eq!(told, "1 2 ");
            let whole = [("a", "1 3 5 "), ("b", "2 4 ")].map(|(id, text)| (id.to_owned(), text.to_owned()));
            assert_eq!(if ends { text.ended(whole.into()) } else { text.release() }, "\n1 3 5 2 4 ");
            assert_eq!(text.bytes(), 10);
            assert_eq!(text.release(), "");
        }
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

    /// S12.4, S10.42: an answer that was said as it came is not put together again; one that is another than what was said is.
    #[test]
    fn an_answer_that_was_said_is_not_put_together_again() {
        let mut text = Text::default();
        for (piece, joins) in [("one", Joins::Replaces), (" two", Joins::Appends)] {
            let news = text.part("a", piece, joins).unwrap();
            text.says(&news);
        }
        assert_eq!(text.unsaid(), None);
        let news = text.ended(task("one two three"));
        assert_eq!(text.unsaid().as_deref(), Some("one two three"), "the rest is yet to be said");
        text.says(&news);
        assert_eq!(text.unsaid(), None);
        let news = text.part("a", "other", Joins::Replaces).unwrap();
        text.says(&news);
        assert_eq!(text.unsaid().as_deref(), Some("other"), "something was taken back");
    }
}
