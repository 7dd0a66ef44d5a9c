//! Builds the answer from a stream, from a second subscription and from the task itself, merged by artifact
//! and place: each piece once.
//!
//! **Invariants**: a reported piece is never reported again. This holds when the adapter subscribes again,
//! reads the task ahead of its stream, or gets artifacts in turn. It also holds when the remote agent repeats
//! its messages as an artifact. A piece with an unknown place is not placed as long as a read may show its
//! place. It is not reported while a read may still show what is missing before it.

mod artifact;
#[cfg(test)]
mod tests;

use self::artifact::{Artifact, Reported};
use super::wire::Joins;

/// An answer under construction.
#[derive(Debug, Default)]
pub(super) struct Text {
    artifacts: Vec<Artifact>,
    /// Bytes of all artifacts.
    bytes: usize,
    /// The text of messages beside the artifacts.
    notes: Reported,
    /// All that was reported of the answer, in the order of the reports.
    said: Reported,
    /// Whether the stream may have missed a part of the answer.
    is_torn: bool,
    gap: Gap,
    /// Whether a piece came twice in a row: the same event, or two alike.
    is_doubled: bool,
    /// How many bytes may be kept; none: all of them.
    most: Option<usize>,
    /// Whether the answer was too large: it is passed on as it comes, and not kept.
    is_too_large: bool,
}

/// Whether the adapter subscribed again, and no source has shown what came before that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    #[default]
    None,
    Open,
}

/// The whole answer, compared with what was reported: the same; or all of it reported, but in another order
/// or with more; or not all reported.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    AsSaid,
    Reordered(String),
    Another(String),
}

impl Text {
    /// An answer of at most this many bytes: nothing is kept of a larger one.
    pub(super) fn within(most: usize) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Drops an answer that is too large; returns what was held back of it.
    fn bound(&mut self) -> String {
        if self.most.is_none_or(|most| self.bytes <= most) {
            return String::new();
        }
        let held = self.release();
        *self = Self { is_too_large: true, bytes: self.bytes, ..Self::default() };
        held
    }

    /// A piece of an artifact from the stream; returns what is new. None if its place is unknown: then the
    /// adapter must read the task.
    pub(super) fn part(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        if self.is_too_large {
            self.bytes += piece.len();
            return Some(piece.to_owned());
        }
        let news = self.placed(id, piece, joins);
        let held = self.bound();
        if held.is_empty() { news } else { Some(news.unwrap_or_default() + &held) }
    }

    fn placed(&mut self, id: &str, piece: &str, joins: Joins) -> Option<String> {
        let is_begun = self.bytes > 0 || self.notes.bytes == 0;
        let is_torn = self.is_torn;
        let (artifact, at) = match (self.named(id), joins) {
            (Some(artifact), Joins::Appends) => match artifact.place_of(piece) {
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
                if artifact.is_as_streamed() {
                    artifact.anew();
                }
                (artifact, 0)
            }
        };
        let (before, was_reported) = (artifact.text.len(), artifact.is_reported());
        let is_double = joins == Joins::Appends && artifact.repeats(at, piece);
        artifact.put(at, piece);
        // The common case: the piece goes behind all that is known of the artifact, and needs no other check.
        let is_plain = is_begun && was_reported && joins == Joins::Appends && before == at;
        if is_plain {
            artifact.reported.add(piece);
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

    /// Another artifact grows.
    fn grows(&mut self, id: &str) -> &mut Artifact {
        self.artifacts.push(Artifact::new(id, String::new(), None));
        self.artifacts.last_mut().expect("it was put there just now")
    }

    /// The task cannot be read: pieces of this artifact without a place go behind what is known. Text that
    /// repeats its end is left out, and kept while it may be a repeat. Behind a gap it is held back.
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

    /// How many bytes are held back behind a gap.
    pub(super) fn held(&self) -> usize {
        self.artifacts.iter().map(Artifact::held).sum()
    }

    /// Reports what was held back: the wait for what is missing before it was long enough.
    pub(super) fn release(&mut self) -> String {
        self.artifacts.iter_mut().for_each(Artifact::release);
        self.news()
    }

    /// No source will show the places of pieces without one.
    pub(super) fn settle(&mut self) -> String {
        self.artifacts.iter_mut().for_each(Artifact::settle);
        self.release()
    }

    /// The stream broke, or the adapter subscribes again: the place of what comes next is unknown.
    pub(super) fn torn(&mut self) {
        (self.is_torn, self.gap) = (true, Gap::Open);
        self.artifacts.iter_mut().for_each(Artifact::torn);
    }

    /// The task as a read showed it; returns what is new of the answer.
    pub(super) fn looked(&mut self, artifacts: Vec<(String, String)>) -> String {
        if self.is_too_large {
            return String::new();
        }
        let at = (!self.is_torn).then_some(0);
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

    /// A task on the stream: a read, and a base on which the stream's next pieces may continue.
    pub(super) fn passed(&mut self, artifacts: Vec<(String, String)>) -> String {
        let bases: Vec<(String, usize)> =
            artifacts.iter().map(|(id, text)| (id.clone(), text.len())).collect();
        let news = self.looked(artifacts);
        for (id, bytes) in bases {
            if let Some(artifact) = self.named(&id) {
                artifact.stood_at(bytes);
            }
        }
        news
    }

    /// The task as it stood at this place of the stream, which may be older than a read. On a torn stream it
    /// counts as a read and not as a place: the next event may be in it already (`a2a-sdk` listens first, and
    /// then reads the task).
    pub(super) fn streamed(&mut self, artifacts: Vec<(String, String)>) -> String {
        let places: Vec<(String, usize)> =
            artifacts.iter().map(|(id, text)| (id.clone(), text.len())).collect();
        let news = self.looked(artifacts);
        self.gap = Gap::None;
        if self.is_torn {
            return news;
        }
        for (id, at) in places {
            if let Some(artifact) = self.artifacts.iter_mut().find(|artifact| artifact.id == id) {
                artifact.at = Some(at);
            }
        }
        news
    }

    /// The task at its end: its artifacts are the answer. A task that leaves its artifacts out revokes
    /// nothing.
    pub(super) fn ended(&mut self, artifacts: Vec<(String, String)>) -> String {
        if !artifacts.is_empty() && !self.is_too_large {
            let mut known = std::mem::take(&mut self.artifacts);
            for (id, text) in artifacts {
                let mut artifact =
                    take(&mut known, &id).unwrap_or_else(|| Artifact::new(&id, String::new(), None));
                artifact.ends(text);
                self.artifacts.push(artifact);
            }
            self.is_torn = false;
        }
        self.news()
    }

    /// Whether all of the answer up to here is known.
    pub(super) fn is_whole(&self) -> bool {
        self.is_too_large || !self.is_torn && self.artifacts.iter().all(Artifact::has_come)
    }

    /// Whether the stream sent a piece twice in a row, which may be one event or two, or a piece that could
    /// continue at two places.
    pub(super) fn has_doubles(&self) -> bool {
        self.is_doubled || self.artifacts.iter().any(Artifact::is_doubtful)
    }

    /// How much of it there is.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the text of a message beside the artifacts.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.add(text);
    }

    /// Records that this text was reported.
    pub(super) fn says(&mut self, news: &str) {
        self.said.add(news);
    }

    /// The whole answer, if it differs from what was reported: the listener has the reports, so the answer is
    /// not built again (S12.4).
    pub(super) fn answer(&self) -> Answer {
        let whole = Reported::of(self.parts());
        if whole == self.said {
            Answer::AsSaid
        } else if self.said.bytes >= whole.bytes {
            Answer::Reordered(self.whole())
        } else {
            Answer::Another(self.whole())
        }
    }

    /// Whether no piece of the answer is known.
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
        if self.is_too_large {
            return String::new();
        }
        self.bytes = self.parts().map(str::len).sum();
        let is_first = self.artifacts.iter().all(|artifact| artifact.reported.bytes == 0);
        let news = self.artifacts.iter_mut().map(Artifact::news).collect();
        // Some agents send everything as messages, and then once more as an artifact.
        if is_first && self.notes == Reported::of(self.parts()) { String::new() } else { news }
    }
}

/// Removes the artifact of this name from the list.
fn take(artifacts: &mut Vec<Artifact>, id: &str) -> Option<Artifact> {
    let place = artifacts.iter().position(|artifact| artifact.id == id)?;
    Some(artifacts.remove(place))
}
