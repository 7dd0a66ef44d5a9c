//! How well a name fits a few letters: they stand in it in this order; better together, at the beginning of words, and in the
//! last part of a path.
//!
//! **Invariants**: a name is looked at letter by letter only if it has each letter of the query at all.

use std::{cmp::Reverse, collections::BinaryHeap};

/// For each letter that fits, more if it begins a word, and more if it follows the one before.
const LETTER: i32 = 16;
const BEGINS: i32 = 10;
const FOLLOWS: i32 = 8;
/// For a fit that ends with a word.
const ENDS: i32 = 20;
/// For a fit within the last part of the path, and within its beginning.
const LAST_PART: i32 = 24;
const LAST_BEGINS: i32 = 24;
/// Off for each letter between two that fit, at most this.
const GAP: i32 = 1;
const MOST_GAP: i32 = 12;
/// Off for a file in a directory, for each level; a long name counts less.
const LEVEL: i32 = 2;
const LENGTH: usize = 8;

/// What is looked for.
pub(super) struct Query {
    small: Vec<u8>,
    letters: u64,
    /// It has a slash, so that it is about all of the path.
    is_path: bool,
}

/// A higher score is better, then a shorter name, then one that comes first.
type Rank<'a> = (i32, Reverse<usize>, Reverse<&'a str>);

/// The best names so far.
pub(super) struct Best<'a> {
    most: usize,
    /// The worst on top.
    heap: BinaryHeap<Reverse<Rank<'a>>>,
}

impl Query {
    pub(super) fn new(text: &str) -> Self {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        let small = text.trim_start_matches("./").as_bytes().to_vec();
        Self { letters: letters(&small), is_path: small.contains(&b'/'), small }
    }

    /// How well this fits; none if it does not.
    fn score(&self, name: &[u8], letters: u64) -> Option<i32> {
        if self.letters & !letters != 0 {
            return None;
        }
        let inside = name.strip_suffix(b"/").unwrap_or(name);
        let levels = inside.iter().filter(|byte| **byte == b'/').count();
        let off = i32::try_from(levels).unwrap_or(i32::MAX / 8) * LEVEL
            + i32::try_from(inside.len() / LENGTH).unwrap_or(i32::MAX / 8);
        if self.small.is_empty() {
            return (levels == 0).then_some(0);
        }
        let last = inside.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let in_last = if self.is_path { None } else { self.fit(&inside[last..]) };
        let score = match in_last {
            Some((score, from)) => score + LAST_PART + if from == 0 { LAST_BEGINS } else { 0 },
            None => self.fit(name)?.0,
        };
        Some(score - off)
    }

    /// The score of the shortest stretch that ends where the first fit does, and where that begins.
    fn fit(&self, name: &[u8]) -> Option<(i32, usize)> {
        let mut wanted = self.small.iter();
        let mut next = *wanted.next()?;
        let end = name.iter().position(|byte| {
            *byte == next
                && match wanted.next() {
                    Some(more) => {
                        next = *more;
                        false
                    }
                    None => true,
                }
        })?;
        let mut left = self.small.iter().rev().peekable();
        let mut from = end;
        for at in (0..=end).rev() {
            if left.peek() == Some(&&name[at]) {
                left.next();
                from = at;
                if left.peek().is_none() {
                    break;
                }
            }
        }
        Some((self.value(name, from), from))
    }

    fn value(&self, name: &[u8], from: usize) -> i32 {
        let mut wanted = self.small.iter().peekable();
        let (mut score, mut gap, mut follows) = (0, 0, false);
        for at in from..name.len() {
            let Some(next) = wanted.peek() else { break };
            if name[at] != **next {
                (gap, follows) = (gap + GAP, false);
                continue;
            }
            wanted.next();
            let begins = at == 0 || is_between(name[at - 1]);
            score += LETTER + if begins { BEGINS } else { 0 } + if follows { FOLLOWS } else { 0 }
                - gap.min(MOST_GAP);
            (gap, follows) = (0, true);
            if wanted.peek().is_none() && name.get(at + 1).is_none_or(|next| is_between(*next)) {
                score += ENDS;
            }
        }
        score
    }
}

impl<'a> Best<'a> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::with_capacity(most + 1) }
    }

    pub(super) fn add(&mut self, query: &Query, (name, small, letters): (&'a str, &[u8], u64)) {
        let Some(score) = query.score(small, letters) else { return };
        let entry = Reverse((score, Reverse(name.len()), Reverse(name)));
        if self.heap.len() < self.most {
            self.heap.push(entry);
        } else if self.heap.peek().is_some_and(|worst| entry < *worst) {
            self.heap.pop();
            self.heap.push(entry);
        }
    }

    /// The names, the best first.
    pub(super) fn into_names(self) -> Vec<String> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|Reverse((_, _, Reverse(name)))| name.to_owned()).collect()
    }
}

/// Whether it stands between words.
fn is_between(byte: u8) -> bool {
    matches!(byte, b'/' | b'_' | b'-' | b'.' | b' ')
}

/// Which letters there are, a bit each; those beyond ASCII's share some.
pub(super) fn letters(small: &[u8]) -> u64 {
    const LETTERS: u8 = 26;
    const OTHERS: u8 = 38;
    let bit = |byte: &u8| match byte {
        b'a'..=b'z' => byte - b'a',
        byte => LETTERS + byte % OTHERS,
    };
    small.iter().fold(0, |all, byte| all | 1 << bit(byte))
}
