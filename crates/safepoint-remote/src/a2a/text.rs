//! The answer as it comes together, from a stream, from one that was taken up again, and from the task itself: merged by
//! artifact and place, each piece once.
//!
//! **Invariants**: what was told is never told again: not when a stream is taken up again, not when the task was looked at
//! ahead of its stream, not when artifacts grow in turn, and not when a peer repeats as an artifact what it has said in passing.
//! A piece whose place is not known is not put anywhere as long as the task may be asked, and not told while what is missing
//! before it may yet be shown.

mod artifact;
#[cfg(test)]
mod tests;

use self::artifact::{Artifact, Told};
use super::wire::Joins;

/// An answer that comes together.
#[derive(Debug, Default)]
pub(super) struct Text {
    artifacts: Vec<Artifact>,
    /// Bytes of all artifacts.
    bytes: usize,
    /// What was said in passing.
    notes: Told,
    /// All that was said of it, in the order in which it was.
    said: Told,
    stream: Stream,
    gap: Gap,
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

/// Whether the stream is known to have told all from the beginning. Exhaustive: it is or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Whole,
    /// A part of it may have been missed.
    Torn,
}

/// Whether the stream was taken up again, and nobody has shown what came before that. Exhaustive: somebody has, or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    #[default]
    None,
    Open,
}

/// The whole answer beside what was said of it. Exhaustive: it is that; or all of it was said, and not in its order, or more
/// than it; or it was not all said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    AsSaid,
    Reordered(String),
    Another(String),
}

impl Text {
    /// An answer of at most so many bytes: nothing is kept of one that is larger.
    pub(super) fn within(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Forgets what there is too much of; what was held of it is told.
    fn bound(&mut self) -> String {
        if self.most.is_none_or(|most| self.bytes <= most) {
            return String::new();
        }
        let held = self.release();
        *self = Self { kept: Kept::No, bytes: self.bytes, ..Self::default() };
        held
    }

    /// A piece of an artifact from the stream; what of the answer is new by it. None if its place is not known: then the
    /// task is to be asked.
    pub(super) fn part(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        if self.kept == Kept::No {
            self.bytes += piece.len();
            return Some(piece.to_owned());
        }
        let news = self.placed(id, piece, joins);
        let held = self.bound();
        if held.is_empty() { news } else { Some(news.unwrap_or_default() + &held) }
    }

    fn placed(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        let is_begun = self.bytes > 0 || self.notes.bytes == 0;
        let is_torn = self.stream == Stream::Torn;
        let (artifact, at) = match (self.named(id), joins) {
            (Some(artifact), Joins::Appends) => match artifact.at {
                Some(at) => (artifact, at),
                None => {
                    artifact.keep(piece);
                    return None;
                }
            },
            (None, Joins::Appends) if is_torn => {
                self.grows(id).keep(piece);
                return None;
            }
            (None, _) => (self.grows(id), 0),
            (Some(artifact), Joins::Replaces) => {
                if artifact.is_as_told() {
                    artifact.anew();
                }
                (artifact, 0)
            }
        };
        let (before, was_told) = (artifact.text.len(), artifact.is_told());
        let is_double = joins == Joins::Appends && artifact.repeats(at, piece);
        artifact.put(at, piece);
        // The common case: it goes behind all that there is of it, and nothing else needs to be looked at.
        let is_plain = is_begun && was_told && joins == Joins::Appends && before == at;
        if is_plain {
            artifact.told.add(piece);
        }
        self.is_doubled |= is_double;
        if is_plain {
            self.bytes += piece.len();
            return Some(piece.to_owned());
        }
        Some(self.news())
    }

    fn named(&mut self, id: &str) -> Option<&mut Artifact> {
        self.artifacts.iter_mut().rev().find(|artifact| artifact.id == id)
    }

    /// Another artifact.
    fn grows(&mut self, id: &str) -> &mut Artifact {
        self.artifacts.push(Artifact::new(id, String::new(), None));
        self.artifacts.last_mut().expect("it was put there just now")
    }

    /// The task cannot be looked at: what of this artifact has no place goes behind what is known, save what this ends with,
    /// which the stream then tells again. As long as that may be so, it is kept. Behind a gap it is held.
    pub(super) fn place(&mut self, id: &str) -> String {
        let gap = self.gap;
        let Some(artifact) = self.named(id).filter(|artifact| !artifact.may_repeat()) else {
            return String::new();
        };
        artifact.settle();
        if gap == Gap::Open {
            artifact.hold();
        }
        let news = self.news();
        news + &self.bound()
    }

    /// How much is held behind a gap.
    pub(super) fn held(&self) -> usize {
        self.artifacts.iter().map(Artifact::held).sum()
    }

    /// What is held is told: what is missing before it was waited for long enough.
    pub(super) fn release(&mut self) -> String {
        self.artifacts.iter_mut().for_each(Artifact::release);
        self.news()
    }

    /// Nobody says any more where that belongs which has no place.
    pub(super) fn settle(&mut self) -> String {
        self.artifacts.iter_mut().for_each(Artifact::settle);
        self.release()
    }

    /// The stream broke, or another one is taken up: what it tells from now on has no place that is known.
    pub(super) fn torn(&mut self) {
        (self.stream, self.gap) = (Stream::Torn, Gap::Open);
        self.artifacts.iter_mut().for_each(Artifact::torn);
    }

    /// The task as it stood when somebody looked; what of the answer is new by it.
    pub(super) fn looked(&mut self, artifacts: Vec<(String, String)>) -> String {
        if self.kept == Kept::No {
            return String::new();
        }
        let at = (self.stream == Stream::Whole).then_some(0);
        if !artifacts.is_empty() {
            self.gap = Gap::None;
        }
        let mut known = std::mem::take(&mut self.artifacts);
        for (id, text) in artifacts {
            match take(&mut known, &id) {
                Some(mut artifact) => {
                    artifact.stands(text);
                    self.artifacts.push(artifact);
                }
                None => self.artifacts.push(Artifact::new(&id, text, at)),
            }
        }
        self.artifacts.append(&mut known);
        self.news()
    }

    /// The task as it stood at this place of the stream, which may be behind a look. Of a stream that was torn it is a look
    /// and no place: what comes next may be in it already (`a2a-sdk` listens first, and then reads the task).
    pub(super) fn streamed(&mut self, artifacts: Vec<(String, String)>) -> String {
        let places: Vec<(String, usize)> =
            artifacts.iter().map(|(id, text)| (id.clone(), text.len())).collect();
        let news = self.looked(artifacts);
        self.gap = Gap::None;
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
            let mut known = std::mem::take(&mut self.artifacts);
            for (id, text) in artifacts {
                let mut artifact =
                    take(&mut known, &id).unwrap_or_else(|| Artifact::new(&id, String::new(), None));
                artifact.ends(text);
                self.artifacts.push(artifact);
            }
            self.stream = Stream::Whole;
        }
        self.news()
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
    pub(super) fn answer(&self) -> Answer {
        let whole = Told::of(self.parts());
        if whole == self.said {
            Answer::AsSaid
        } else if self.said.bytes >= whole.bytes {
            Answer::Reordered(self.whole())
        } else {
            Answer::Another(self.whole())
        }
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
        let is_first = self.artifacts.iter().all(|artifact| artifact.told.bytes == 0);
        let news = self.artifacts.iter_mut().map(Artifact::news).collect();
        // Some peers say everything in passing, and then once more as an artifact.
        if is_first && self.notes == Told::of(self.parts()) { String::new() } else { news }
    }
}

/// Takes the artifact of this name out of them.
fn take(artifacts: &mut Vec<Artifact>, id: &str) -> Option<Artifact> {
    let place = artifacts.iter().position(|artifact| artifact.id == id)?;
    Some(artifacts.remove(place))
}
