//! The answer as it comes together from artifacts, each piece told once.
//!
//! **Invariants**: what was told is never told again: not when a stream is taken up again, which begins with all that
//! there is, and not when a peer repeats as an artifact what it has said in passing.

use std::hash::{DefaultHasher, Hasher as _};

use super::wire::Joins;

/// An answer that comes together.
#[derive(Debug, Default)]
pub(super) struct Text {
    artifacts: Vec<(String, String)>,
    /// Bytes of all artifacts.
    bytes: usize,
    /// What was said in passing.
    notes: String,
    told: Told,
}

/// How much of the answer was told. Not a copy of it: what was told is known again by its length and its hash.
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

    fn of(text: &str) -> Self {
        let mut told = Self::default();
        told.add(text);
        told
    }

    /// What of `whole` is new, if it begins with what was told.
    fn rest<'w>(&self, whole: &'w str) -> Option<&'w str> {
        let (told, rest) = whole.split_at_checked(self.bytes)?;
        (Self::of(told).hash.finish() == self.hash.finish()).then_some(rest)
    }
}

impl Text {
    /// A part of an artifact; what of the answer is new by it.
    pub(super) fn part(&mut self, id: &str, text: &str, joins: Joins) -> String {
        let is_all_told = self.told.bytes == self.bytes && (self.bytes > 0 || self.notes.is_empty());
        self.bytes += text.len();
        let is_last = match self.artifacts.iter().rposition(|(known, _)| known == id) {
            None => {
                self.artifacts.push((id.to_owned(), text.to_owned()));
                true
            }
            Some(at) => {
                let is_last = at + 1 == self.artifacts.len();
                let whole = &mut self.artifacts[at].1;
                let replaced = if joins == Joins::Replaces { std::mem::take(whole).len() } else { 0 };
                self.bytes -= replaced;
                whole.push_str(text);
                is_last && replaced == 0
            }
        };
        // The common case: it goes behind all that there is, and nothing else needs to be looked at.
        if is_all_told && is_last {
            self.told.add(text);
            return text.to_owned();
        }
        self.news()
    }

    /// All artifacts as they stand; what of the answer is new by it.
    pub(super) fn all(&mut self, artifacts: Vec<(String, String)>) -> String {
        if !artifacts.is_empty() {
            self.bytes = artifacts.iter().map(|(_, text)| text.len()).sum();
            self.artifacts = artifacts;
        }
        self.news()
    }

    /// Something said in passing; false if it was said before, in the same place.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push_str(text);
    }

    /// The whole answer so far; none if there is nothing.
    pub(super) fn whole(&self) -> Option<String> {
        let whole: String = self.artifacts.iter().map(|(_, text)| text.as_str()).collect();
        (!whole.is_empty()).then_some(whole)
    }

    fn news(&mut self) -> String {
        let whole = self.whole().unwrap_or_default();
        let news = match self.told.rest(&whole) {
            // Some peers say everything in passing, and then once more as an artifact.
            Some(_) if self.told.bytes == 0 && self.notes == whole => String::new(),
            Some(rest) => rest.to_owned(),
            // The peer took back what it had said: all of it is told.
            None => format!("\n{whole}"),
        };
        self.told = Told::of(&whole);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5.4: what was told is not told again when everything comes once more.
    #[test]
    fn what_was_told_is_not_told_again() {
        let mut text = Text::default();
        assert_eq!(text.part("a", "one", Joins::Replaces), "one");
        assert_eq!(text.part("a", " two", Joins::Appends), " two");
        assert_eq!(text.all(vec![("a".into(), "one two three".into())]), " three");
        assert_eq!(text.all(Vec::new()), "", "a peer that leaves them out takes nothing back");
        assert_eq!(text.part("a", "other", Joins::Replaces), "\nother");
        assert_eq!(text.whole().as_deref(), Some("other"));
    }

    /// A peer that says its answer in passing and then once more is heard once.
    #[test]
    fn an_answer_said_in_passing_is_not_told_again() {
        let mut text = Text::default();
        text.note("step 1. ");
        text.note("step 2. ");
        assert_eq!(text.part("a", "step 1. step 2. ", Joins::Replaces), "");
        assert_eq!(text.whole().as_deref(), Some("step 1. step 2. "));
    }
}
