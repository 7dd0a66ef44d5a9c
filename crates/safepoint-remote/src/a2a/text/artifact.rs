//! A part of the answer that has a name: what is known of it, what of that was told, and what came of it without a place.
//!
//! **Invariants**: what was told of an artifact is not told of it again, save where the peer took it back.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hasher as _},
};

/// A part of the answer that has a name.
#[derive(Debug)]
pub(super) struct Artifact {
    pub(super) id: String,
    pub(super) text: String,
    /// How much of it the stream has told; none if that is not known.
    pub(super) at: Option<usize>,
    /// The bytes of the piece that the stream told last.
    last: usize,
    pub(super) told: Told,
    unplaced: Unplaced,
    /// Where a piece was put behind what was known without knowing its place: something may be missing before it.
    guessed: Option<usize>,
    /// What the task has within what was told, and is yet to be told.
    within: String,
}

/// How much was told. Not a copy of it: what was told is known again by its length and its hash.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) bytes: usize,
    hash: DefaultHasher,
}

/// The newest pieces of a stream without places, in their order.
#[derive(Debug, Default)]
struct Unplaced {
    pieces: VecDeque<String>,
    bytes: usize,
}

/// How far back a stream that was taken up again is known to repeat what was told.
const REPEATS: usize = 1 << 16;

impl Told {
    pub(super) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }

    /// How much these parts are.
    pub(super) fn of<'p>(parts: impl Iterator<Item = &'p str>) -> Self {
        let mut told = Self::default();
        parts.for_each(|part| told.add(part));
        told
    }
}

impl PartialEq for Told {
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

    /// What of it goes behind a text: not the pieces, as many as there are, with which that ends.
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

    /// Whether a text has it, and goes on behind that: then it may be what was told before, and go on as that does.
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
            last: 0,
            told: Told::default(),
            unplaced: Unplaced::default(),
            guessed: None,
            within: String::new(),
        }
    }

    /// Whether this piece is the one that came right before it.
    pub(super) fn repeats(&self, at: usize, piece: &str) -> bool {
        !piece.is_empty() && self.last == piece.len() && self.text[..at].ends_with(piece)
    }

    /// Whether all of it was told.
    pub(super) fn is_told(&self) -> bool {
        self.told.bytes == self.text.len()
    }

    /// Puts a piece at this place: what is known from there on may be more than it, less than it, or something else.
    pub(super) fn put(&mut self, at: usize, piece: &str) {
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

    /// Keeps a piece of which the place is not known.
    pub(super) fn keep(&mut self, piece: &str) {
        self.unplaced.add(piece);
    }

    /// Whether what is kept may yet turn out to be what was told before.
    pub(super) fn may_repeat(&self) -> bool {
        self.unplaced.is_within(&self.text)
    }

    /// Puts what is kept behind what is known, without the pieces that this ends with: nobody says any more where it belongs.
    pub(super) fn settle(&mut self) {
        let unplaced = std::mem::take(&mut self.unplaced);
        if !unplaced.pieces.is_empty() {
            self.guessed = self.guessed.or(Some(self.text.len()));
            self.text.push_str(&unplaced.behind(&self.text));
            (self.at, self.last) = (Some(self.text.len()), 0);
        }
    }

    /// Its stream broke, or another one is taken up.
    pub(super) fn torn(&mut self) {
        (self.at, self.unplaced) = (None, Unplaced::default());
    }

    /// It as the task has it, which may be older or newer than what the stream has told.
    pub(super) fn stands(&mut self, text: String) {
        if self.text.starts_with(&text) {
            return;
        }
        if !text.starts_with(&self.text) {
            // The peer took back what it had said: where its stream is in the new text is not known.
            self.at = None;
            self.fill(&text);
        }
        self.text = text;
    }

    /// It as the task has it at its end.
    pub(super) fn ends(&mut self, text: String) {
        if !text.starts_with(&self.text) {
            self.fill(&text);
        }
        (self.at, self.unplaced) = (Some(text.len()), Unplaced::default());
        self.text = text;
    }

    /// Where something was missing within what was told, and nothing is taken back: that is what is new of it.
    fn fill(&mut self, text: &str) {
        let Some(place) = self.guessed.take().filter(|_| self.is_told()) else { return };
        let (before, behind) = self.text.split_at(place);
        let new = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
        if let Some(new) = new {
            self.within.push_str(new);
            self.told = Told::of([text].into_iter());
        }
    }

    /// What of it is yet to be told; all of it, where what was told was taken back. It is told by this.
    pub(super) fn news(&mut self) -> String {
        let within = std::mem::take(&mut self.within);
        let is_known = |known: &&str| Told::of([*known].into_iter()) == self.told;
        let known = self.text.get(..self.told.bytes).filter(is_known).map(str::len);
        self.told = Told::of([self.text.as_str()].into_iter());
        match known {
            Some(known) => within + &self.text[known..],
            None => format!("{within}\n{}", self.text),
        }
    }
}
