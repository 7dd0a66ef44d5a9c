//! A part of the answer that has a name: what is known of it, what of that was told, and what came of it without a place.
//!
//! **Invariants**: what was told of an artifact is not told of it again, save where the peer took it back; while it is held,
//! nothing of it is told.

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
    /// Where pieces were put behind what was known without knowing their places: something may be missing before each.
    guessed: Vec<usize>,
    /// Whether what was put so is yet to be told: the task may show what is missing before it.
    is_held: bool,
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
            guessed: Vec::new(),
            is_held: false,
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
                    self.guessed.retain(|place| *place <= at);
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

    /// It begins anew: nothing is known beyond what the stream takes back.
    pub(super) fn anew(&mut self) {
        self.text.clear();
        self.release();
        self.guessed.clear();
    }

    /// Whether nothing is known beyond what the stream has told, or what was put behind that.
    pub(super) fn is_as_told(&self) -> bool {
        self.at == Some(self.text.len()) || !self.guessed.is_empty()
    }

    /// Puts what is kept behind what is known, without the pieces that this ends with: nobody says any more where it belongs.
    pub(super) fn settle(&mut self) {
        let unplaced = std::mem::take(&mut self.unplaced);
        if !unplaced.pieces.is_empty() {
            let new = unplaced.behind(&self.text);
            self.guessed.push(self.text.len());
            self.text.push_str(&new);
            (self.at, self.last) = (Some(self.text.len()), 0);
        }
    }

    /// What was put behind what is known is not told before it is released.
    pub(super) fn hold(&mut self) {
        self.is_held = !self.is_told();
    }

    pub(super) fn release(&mut self) {
        self.is_held = false;
    }

    /// How much of it is held.
    pub(super) fn held(&self) -> usize {
        if self.is_held { self.text.len().saturating_sub(self.told.bytes) } else { 0 }
    }

    /// Its stream broke, or another one is taken up. What came without a place goes behind what is known, as long as the task
    /// does not show where it belongs.
    pub(super) fn torn(&mut self) {
        if !self.may_repeat() {
            self.settle();
            self.hold();
        }
        (self.at, self.unplaced) = (None, Unplaced::default());
    }

    /// It as the task has it, which may be older or newer than what the stream has told.
    pub(super) fn stands(&mut self, text: String) {
        if self.text.starts_with(&text) {
            // What it shows is where it was put.
            self.guessed.retain(|place| *place >= text.len() && text.len() < self.text.len());
            self.is_held &= !self.guessed.is_empty();
            return;
        }
        if !text.starts_with(&self.text) {
            if self.is_behind(&text) {
                return;
            }
            // The peer took back what it had said: where its stream is in the new text is not known.
            self.at = None;
            self.fill(&text);
        }
        self.is(text);
    }

    /// It as the task has it at its end.
    pub(super) fn ends(&mut self, text: String) {
        if !text.starts_with(&self.text) {
            self.fill(&text);
        }
        (self.at, self.unplaced) = (Some(text.len()), Unplaced::default());
        self.is(text);
    }

    /// All of it is known.
    fn is(&mut self, text: String) {
        self.release();
        self.guessed.clear();
        self.text = text;
    }

    /// Whether a look is older than what was told behind something that may be missing: it begins as that does, and has not
    /// all of it. A later one has.
    fn is_behind(&self, text: &str) -> bool {
        let known = self.guessed.first().and_then(|place| self.text.get(..*place));
        let is_told = self.guessed.first().is_some_and(|place| self.told.bytes > *place);
        is_told && known.is_some_and(|known| text.starts_with(known)) && self.missing(text).is_none()
    }

    /// Where something was missing within what was told, and nothing is taken back: that is what is new of it.
    fn fill(&mut self, text: &str) {
        if let Some(missing) = self.missing(text) {
            self.within.push_str(&missing);
            self.told = Told::of([text].into_iter());
        }
    }

    /// What this text has beside all that was told, if it has that in its order, with gaps where something may be missing.
    fn missing(&self, text: &str) -> Option<String> {
        let told =
            self.text.get(..self.told.bytes).filter(|told| Told::of([*told].into_iter()) == self.told)?;
        let places = self.guessed.iter().copied().filter(|place| *place < told.len());
        let (mut missing, mut rest, mut from) = (String::new(), text, 0);
        for (number, end) in places.chain([told.len()]).enumerate() {
            let known = told.get(from..end)?;
            let at = if number == 0 { rest.starts_with(known).then_some(0) } else { rest.find(known) }?;
            missing.push_str(&rest[..at]);
            (rest, from) = (&rest[at + known.len()..], end);
        }
        Some(missing + rest)
    }

    /// What of it is yet to be told; all of it, where what was told was taken back. It is told by this; nothing while it is held.
    pub(super) fn news(&mut self) -> String {
        if self.is_held {
            return String::new();
        }
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
