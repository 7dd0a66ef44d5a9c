//! A named part of the answer: what is known of it, what was reported, and what arrived without a place.
//!
//! **Invariants**: reported text of an artifact is not reported again, unless the remote agent revoked it.
//! While the artifact is held back, none of it is reported. Only the stream moves its own place in the text:
//! a read adds text beyond that place, and the stream's pieces are then compared with it. An appended piece
//! never removes known text: one that contradicts it has no place.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hasher as _},
};

/// A named part of the answer.
#[derive(Debug)]
pub(super) struct Artifact {
    pub(super) id: String,
    pub(super) text: String,
    /// How many bytes the stream has sent of it; none if that is unknown.
    pub(super) at: Option<usize>,
    /// How long it was in a task on the stream, where that had more of it than the stream's pieces: the next
    /// piece continues there, or at `at`.
    base: Option<usize>,
    /// Whether a piece could continue at both places.
    is_doubtful: bool,
    /// The bytes of the last piece from the stream.
    last: usize,
    pub(super) reported: Reported,
    unplaced: Unplaced,
    /// Where pieces without a known place were put behind the known text: something may be missing before
    /// each.
    guessed: Vec<usize>,
    /// Whether such pieces are still to be reported: the task may show what is missing before them.
    is_held: bool,
    /// The task's text inside what was reported, still to be reported.
    within: String,
}

/// How much was reported: a length and a hash recognise the text, without a copy of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reported {
    pub(super) bytes: usize,
    hash: DefaultHasher,
}

/// The newest pieces of a stream without places, in order.
#[derive(Debug, Default)]
struct Unplaced {
    pieces: VecDeque<String>,
    bytes: usize,
}

/// How many bytes back a new subscription is known to repeat reported text.
const REPEATS: usize = 1 << 16;

impl Reported {
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    /// How much text these parts are.
    pub(super) fn of<'p>(parts: impl Iterator<Item = &'p str>) -> Self {
        let mut reported = Self::default();
        parts.for_each(|part| reported.add(part));
        reported
    }
}

impl PartialEq for Reported {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }
}

impl Unplaced {
    fn add(&mut self, piece: &str) {
        self.bytes += piece.len();
        self.pieces.push_back(piece.to_owned());
        while self.bytes > REPEATS
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// What follows a text: the pieces without the longest run of them that ends the text.
    fn behind(&self, text: &str) -> String {
        let all: String = self.pieces.iter().map(String::as_str).collect();
        let mut end = all.len();
        for piece in self.pieces.iter().rev() {
            if text.ends_with(&all[..end]) {
                break;
            }
            end -= piece.len();
        }
        all[end..].to_owned()
    }

    /// Whether a text contains the pieces and continues behind them: then they may repeat earlier text, and
    /// continue as it does.
    fn is_within(&self, text: &str) -> bool {
        let all: String = self.pieces.iter().map(String::as_str).collect();
        let least = text.len().saturating_sub(REPEATS);
        let from = (least..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text[from..].find(&all).is_some_and(|place| from + place + all.len() < text.len())
    }
}

impl Artifact {
    pub(super) fn new(id: &str, text: String, at: Option<usize>) -> Self {
        Self {
            id: id.to_owned(),
            text,
            at,
            base: None,
            is_doubtful: false,
            last: 0,
            reported: Reported::default(),
            unplaced: Unplaced::default(),
            guessed: Vec::new(),
            is_held: false,
            within: String::new(),
        }
    }

    /// Whether this piece equals the one right before it.
    pub(super) fn repeats(&self, at: usize, piece: &str) -> bool {
        !piece.is_empty() && self.last == piece.len() && self.text[..at].ends_with(piece)
    }

    /// Where an appended piece goes; none if that is unknown. A task on the stream is the base of an artifact
    /// of which the stream has sent nothing. Otherwise it may be ahead of the stream, as a read may be: the
    /// piece continues behind it only where it contradicts the text at the stream's place.
    pub(super) fn place_of(&mut self, piece: &str) -> Option<usize> {
        let (at, base) = (self.at?, self.base.take());
        let is_at = self.continues(at, piece);
        let is_at_base = base.filter(|base| self.continues(*base, piece));
        self.is_doubtful |= is_at && is_at_base.is_some();
        self.at = is_at_base.filter(|_| at == 0 || !is_at).or(is_at.then_some(at));
        self.at
    }

    /// Whether a piece at this place agrees with the known text.
    fn continues(&self, at: usize, piece: &str) -> bool {
        self.text.get(at..).is_some_and(|known| known.starts_with(piece) || piece.starts_with(known))
    }

    /// A task on the stream had this many bytes of it.
    pub(super) fn stood_at(&mut self, bytes: usize) {
        let is_known = self.guessed.is_empty() && self.text.is_char_boundary(bytes);
        self.base = Some(bytes).filter(|bytes| is_known && self.at.is_some_and(|at| at < *bytes));
    }

    /// Whether the stream has shown all that is known of it.
    pub(super) fn has_come(&self) -> bool {
        let is_all = |place: Option<usize>| place == Some(self.text.len());
        is_all(self.at) || self.at.is_some() && is_all(self.base)
    }

    /// Whether a piece of it could continue at two places.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Whether all of it was reported.
    pub(super) fn is_reported(&self) -> bool {
        self.reported.bytes == self.text.len()
    }

    /// Puts a piece at this place: the known text from there on may be more, less, or different.
    pub(super) fn put(&mut self, at: usize, piece: &str) {
        let known = self.text.get(at..).unwrap_or_default();
        if !known.starts_with(piece) {
            let new = piece.strip_prefix(known).map(str::to_owned);
            match new {
                Some(new) => self.text.push_str(&new),
                None => {
                    self.text.truncate(at);
                    self.guessed.retain(|place| *place <= at);
                    self.text.push_str(piece);
                }
            }
        }
        (self.at, self.base, self.last) = (Some(at + piece.len()), None, piece.len());
    }

    /// Keeps a piece with an unknown place.
    pub(super) fn keep(&mut self, piece: &str) {
        self.unplaced.add(piece);
    }

    /// Whether the kept pieces may still repeat earlier text.
    pub(super) fn may_repeat(&self) -> bool {
        self.unplaced.is_within(&self.text)
    }

    /// Starts again: nothing is known beyond what the stream revokes.
    pub(super) fn anew(&mut self) {
        self.text.clear();
        self.release();
        self.guessed.clear();
    }

    /// Whether nothing is known beyond what the stream has sent, or what was put behind that.
    pub(super) fn is_as_streamed(&self) -> bool {
        self.at == Some(self.text.len()) || !self.guessed.is_empty()
    }

    /// Puts the kept pieces behind the known text, without those that end it: no source will show their
    /// place.
    pub(super) fn settle(&mut self) {
        let unplaced = std::mem::take(&mut self.unplaced);
        if !unplaced.pieces.is_empty() {
            let new = unplaced.behind(&self.text);
            self.guessed.push(self.text.len());
            self.text.push_str(&new);
            (self.at, self.last) = (Some(self.text.len()), 0);
        }
    }

    /// What was put behind the known text is not reported before its release.
    pub(super) fn hold(&mut self) {
        self.is_held = !self.is_reported();
    }

    pub(super) fn release(&mut self) {
        self.is_held = false;
    }

    /// How many bytes of it are held back.
    pub(super) fn held(&self) -> usize {
        if self.is_held { self.text.len().saturating_sub(self.reported.bytes) } else { 0 }
    }

    /// The stream broke, or the adapter subscribes again. Pieces without a place go behind the known text
    /// until the task shows their place.
    pub(super) fn torn(&mut self) {
        if !self.may_repeat() {
            self.settle();
            self.hold();
        }
        (self.at, self.base, self.unplaced) = (None, None, Unplaced::default());
    }

    /// The artifact as the task has it, which may be older or newer than the stream's text.
    pub(super) fn stands(&mut self, text: String) {
        if self.text.starts_with(&text) {
            // The text that it shows is where the piece was put.
            self.guessed.retain(|place| *place >= text.len() && text.len() < self.text.len());
            self.is_held &= !self.guessed.is_empty();
            return;
        }
        if !text.starts_with(&self.text) {
            if self.is_behind(&text) {
                return;
            }
            // The remote agent revoked what it had sent: the stream's place in the new text is unknown.
            (self.at, self.base) = (None, None);
            self.fill(&text);
        }
        self.is(text);
    }

    /// The artifact as the task has it at its end.
    pub(super) fn ends(&mut self, text: String) {
        if !text.starts_with(&self.text) {
            self.fill(&text);
        }
        (self.at, self.base, self.unplaced) = (Some(text.len()), None, Unplaced::default());
        self.is(text);
    }

    /// All of it is known.
    fn is(&mut self, text: String) {
        self.release();
        self.guessed.clear();
        self.text = text;
    }

    /// Whether a read is older than text that was reported behind a possible gap: it begins as that text
    /// does, and lacks a part of it. A newer read has all of it.
    fn is_behind(&self, text: &str) -> bool {
        let known = self.guessed.first().and_then(|place| self.text.get(..*place));
        let is_reported = self.guessed.first().is_some_and(|place| self.reported.bytes > *place);
        is_reported && known.is_some_and(|known| text.starts_with(known)) && self.missing(text).is_none()
    }

    /// Text was missing inside what was reported, and nothing is revoked: the missing text is what is new.
    fn fill(&mut self, text: &str) {
        if let Some(missing) = self.missing(text) {
            self.within.push_str(&missing);
            self.reported = Reported::of([text].into_iter());
        }
    }

    /// The text beside all that was reported, if it contains that in order, with gaps where something may be
    /// missing.
    fn missing(&self, text: &str) -> Option<String> {
        let reported = self
            .text
            .get(..self.reported.bytes)
            .filter(|reported| Reported::of([*reported].into_iter()) == self.reported)?;
        let places = self.guessed.iter().copied().filter(|place| *place < reported.len());
        let (mut missing, mut rest, mut from) = (String::new(), text, 0);
        for (number, end) in places.chain([reported.len()]).enumerate() {
            let known = reported.get(from..end)?;
            let at = if number == 0 { rest.starts_with(known).then_some(0) } else { rest.find(known) }?;
            missing.push_str(&rest[..at]);
            (rest, from) = (&rest[at + known.len()..], end);
        }
        Some(missing + rest)
    }

    /// What is still to be reported; all of it, if the remote agent revoked reported text. Counts as reported
    /// after this call. Nothing while the artifact is held back.
    pub(super) fn news(&mut self) -> String {
        if self.is_held {
            return String::new();
        }
        let within = std::mem::take(&mut self.within);
        let is_known = |known: &&str| Reported::of([*known].into_iter()) == self.reported;
        let known = self.text.get(..self.reported.bytes).filter(is_known).map(str::len);
        self.reported = Reported::of([self.text.as_str()].into_iter());
        match known {
            Some(known) => within + &self.text[known..],
            None => format!("{within}\n{}", self.text),
        }
    }
}
