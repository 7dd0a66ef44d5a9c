//! The answer as it comes together from artifacts, each piece told once.
//!
//! **Invariants**: what was told is never told again: not when a stream is taken up again, which begins with all that
//! there is, and not when a peer repeats as an artifact what it has said in passing.

use super::wire::Joins;

/// An answer that comes together.
#[derive(Debug, Default)]
pub(super) struct Text {
    artifacts: Vec<(String, String)>,
    /// What was said in passing.
    notes: String,
    /// How much of the answer was told.
    told: String,
}

impl Text {
    /// A part of an artifact; what of the answer is new by it.
    pub(super) fn part(&mut self, id: &str, text: &str, joins: Joins) -> String {
        match self.artifacts.iter_mut().find(|(known, _)| known == id) {
            None => self.artifacts.push((id.to_owned(), text.to_owned())),
            Some((_, whole)) => {
                if joins == Joins::Replaces {
                    whole.clear();
                }
                whole.push_str(text);
            }
        }
        self.news()
    }

    /// All artifacts as they stand; what of the answer is new by it.
    pub(super) fn all(&mut self, artifacts: Vec<(String, String)>) -> String {
        if !artifacts.is_empty() {
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
        let news = match whole.strip_prefix(self.told.as_str()) {
            // Some peers say everything in passing, and then once more as an artifact.
            Some(_) if self.told.is_empty() && self.notes == whole => String::new(),
            Some(rest) => rest.to_owned(),
            // The peer took back what it had said: all of it is told.
            None => format!("\n{whole}"),
        };
        self.told = whole;
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
