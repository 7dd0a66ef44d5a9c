//! The entries of a conversation: a list that grows at its end and shares with its clones what both have, so that a turn of a
//! long conversation costs what a turn of a short one does.
//!
//! **Invariants**: each sealed chunk has [`CHUNK`] entries, and `newest` has fewer. `calls` has the id of every call in the
//! list, unless the shape is unknown.

use std::{
    fmt,
    ops::{Bound, Index, Range, RangeBounds},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Message, call_ids::CallIds};
use crate::ids::CallId;

/// How many entries a chunk has. A clone copies fewer pointers than that; each entry that completes a chunk copies a pointer to
/// every chunk.
const CHUNK: usize = 128;

type Chunk = Arc<[Arc<Message>]>;

/// The closed part of a conversation, oldest entry first. Cheap to clone, however long it is.
///
/// ```
/// # use safepoint::{History, history::Message};
/// let mut history = History::new();
/// history.push(Message::User("What changed?".into()));
/// let entries = history.entries();
/// assert_eq!((entries.len(), entries.last()), (1, Some(&entries[0])));
/// assert_eq!(entries.range(1..).count(), 0);
/// ```
#[derive(Clone, Default)]
pub struct Entries {
    sealed: Arc<[Chunk]>,
    newest: Vec<Arc<Message>>,
    calls: CallIds,
    shape: Shape,
}

/// Whether every message with calls is followed by its results, as a provider wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Whole,
    /// The last entry is a message whose results come next.
    Open,
    /// It must be repaired.
    Broken,
    /// It was not looked at.
    Unknown,
}

impl Entries {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sealed.len() * CHUNK + self.newest.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at `index`, counted from the oldest.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        match self.sealed.get(index / CHUNK) {
            Some(chunk) => chunk.get(index % CHUNK),
            None => self.newest.get(index - self.sealed.len() * CHUNK),
        }
    }

    /// The oldest.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<Message>> {
        self.get(0)
    }

    /// The newest.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self, left: 0..self.len() }
    }

    /// Those in a range, such as `3..`, oldest first; what the range has beyond the last one is left out. Nothing before the
    /// range is passed.
    #[must_use]
    pub fn range(&self, range: impl RangeBounds<usize>) -> Iter<'_> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(to) => *to,
            Bound::Unbounded => self.len(),
        };
        Iter { entries: self, left: from..to.min(self.len()) }
    }

    pub(super) fn push(&mut self, entry: Arc<Message>) {
        if self.shape != Shape::Unknown {
            let are_new = match &*entry {
                Message::Assistant(message) => {
                    message.calls().filter(|call| !self.calls.insert(&call.id)).count() == 0
                }
                Message::User(_) | Message::Results { .. } => true,
            };
            self.shape = self.shape_with(&entry, are_new);
        }
        self.add(entry);
    }

    fn add(&mut self, entry: Arc<Message>) {
        self.newest.push(entry);
        if self.newest.len() == CHUNK {
            let chunk = self.newest.drain(..).collect();
            self.sealed = self.sealed.iter().cloned().chain([chunk]).collect();
        }
    }

    /// A list that is only sent: its calls and its shape are looked at once they are asked for.
    pub(super) fn only_sent(entries: impl Iterator<Item = Arc<Message>>) -> Self {
        let mut all = Self { shape: Shape::Unknown, ..Self::default() };
        entries.for_each(|entry| all.add(entry));
        all
    }

    /// The first `len` of them.
    pub(super) fn first_of(&self, len: usize) -> Self {
        if len >= self.len() { self.clone() } else { self.range(..len).cloned().collect() }
    }

    /// How many entries both begin with, by `is_same`. What both share is not looked at.
    pub fn common(&self, other: &Self, is_same: impl Fn(&Arc<Message>, &Arc<Message>) -> bool) -> usize {
        let shared = if Arc::ptr_eq(&self.sealed, &other.sealed) {
            self.sealed.len()
        } else {
            let both = self.sealed.iter().zip(other.sealed.iter());
            both.take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
        };
        let from = shared * CHUNK;
        let rest = self.range(from..).zip(other.range(from..));
        from + rest.take_while(|(one, other)| Arc::ptr_eq(one, other) || is_same(one, other)).count()
    }

    /// Whether a call of the list has this id.
    pub(super) fn has_call(&self, id: &CallId) -> bool {
        match self.shape {
            Shape::Unknown => self.iter().any(|entry| match &**entry {
                Message::Assistant(message) => message.calls().any(|call| call.id == *id),
                Message::User(_) | Message::Results { .. } => false,
            }),
            Shape::Whole | Shape::Open | Shape::Broken => self.calls.contains(id),
        }
    }

    /// Whether nothing must be repaired. This is known of each entry since it was added.
    pub(super) fn is_whole(&mut self) -> bool {
        if self.shape == Shape::Unknown {
            *self = self.iter().cloned().collect();
        }
        self.shape == Shape::Whole
    }

    /// The shape with one more entry; whether no earlier call has the id of one of its calls.
    fn shape_with(&self, entry: &Message, are_new: bool) -> Shape {
        match (self.shape, entry) {
            (Shape::Unknown, _) => Shape::Unknown,
            (Shape::Whole, Message::User(message)) if !message.is_blank() => Shape::Whole,
            (Shape::Whole, Message::Assistant(message)) if !message.is_blank() => {
                match message.calls().next() {
                    None => Shape::Whole,
                    Some(_) if are_new && message.calls().all(|call| !call.id.as_str().is_empty()) => {
                        Shape::Open
                    }
                    Some(_) => Shape::Broken,
                }
            }
            (Shape::Open, Message::Results { results }) => match self.last().map(|last| &**last) {
                Some(Message::Assistant(message))
                    if results.iter().map(|r| &r.call_id).eq(message.calls().map(|call| &call.id)) =>
                {
                    Shape::Whole
                }
                _ => Shape::Broken,
            },
            _ => Shape::Broken,
        }
    }
}

impl FromIterator<Arc<Message>> for Entries {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(entries: I) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|entry| all.push(entry));
        all
    }
}

impl Index<usize> for Entries {
    type Output = Arc<Message>;

    /// # Panics
    /// If there is no such entry.
    fn index(&self, index: usize) -> &Arc<Message> {
        self.get(index).expect("the entry is in the conversation")
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.common(other, |one, other| one == other) == self.len()
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::<Arc<Message>>::deserialize(from).map(|entries| entries.into_iter().collect())
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Entries of a conversation, oldest first.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    entries: &'a Entries,
    left: Range<usize>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left.next().map(|index| &self.entries[index])
    }

    fn nth(&mut self, skipped: usize) -> Option<Self::Item> {
        self.left.nth(skipped).map(|index| &self.entries[index])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|index| &self.entries[index])
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Entries {
    type Item = &'a Arc<Message>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
