//! The ids of a conversation's calls: a set that shares with its clones what both have.
//!
//! **Invariants**: an id lies in the leaf to which the digits of its hash lead. A node that a clone has too is copied before
//! it changes, and with it only those on the way to it.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::ids::CallId;

/// The bits of a digit of a hash, and how many nodes are below one.
const BITS: u32 = 4;
const WAYS: usize = 1 << BITS;
/// How many ids a leaf has before it is split; more only where whole hashes are alike.
const LEAF: usize = 8;

#[derive(Clone, Default)]
pub(super) struct CallIds(Option<Arc<Node>>);

#[derive(Clone)]
enum Node {
    Leaf(Vec<CallId>),
    Branch([Option<Arc<Node>>; WAYS]),
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Vec::new())
    }
}

impl CallIds {
    pub(super) fn contains(&self, id: &CallId) -> bool {
        let (mut digits, mut below) = (Digits::of(id), &self.0);
        while let Some(node) = below {
            match &**node {
                Node::Leaf(ids) => return ids.contains(id),
                Node::Branch(nodes) => below = &nodes[digits.take()],
            }
        }
        false
    }

    /// Adds an id; false if it is there.
    pub(super) fn insert(&mut self, id: &CallId) -> bool {
        let mut digits = Digits::of(id);
        let mut below = &mut self.0;
        loop {
            let node = Arc::make_mut(below.get_or_insert_default());
            if let Node::Leaf(ids) = node
                && ids.len() >= LEAF
                && digits.are_left()
            {
                *node = Node::Branch(split(std::mem::take(ids), digits.taken));
            }
            match node {
                Node::Leaf(ids) if ids.contains(id) => return false,
                Node::Leaf(ids) => {
                    ids.push(id.clone());
                    return true;
                }
                Node::Branch(nodes) => below = &mut nodes[digits.take()],
            }
        }
    }
}

/// The ids of a leaf that is reached by `taken` digits, by their next one.
fn split(ids: Vec<CallId>, taken: u32) -> [Option<Arc<Node>>; WAYS] {
    let mut lists: [Vec<CallId>; WAYS] = Default::default();
    for id in ids {
        let mut digits = Digits { taken, ..Digits::of(&id) };
        lists[digits.take()].push(id);
    }
    lists.map(|ids| (!ids.is_empty()).then(|| Arc::new(Node::Leaf(ids))))
}

/// The hash of an id, read digit by digit. All digits of two ids are alike only where the whole hashes are, so a model that
/// chooses its ids cannot make a leaf long.
struct Digits {
    hash: u64,
    taken: u32,
}

impl Digits {
    fn of(id: &CallId) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self { hash: hasher.finish(), taken: 0 }
    }

    fn are_left(&self) -> bool {
        self.taken * BITS < u64::BITS
    }

    fn take(&mut self) -> usize {
        let digit = (self.hash >> (self.taken * BITS)) % WAYS as u64;
        self.taken += 1;
        usize::try_from(digit).expect("a digit is small")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5.1
    #[test]
    fn a_clone_has_what_was_there_and_nothing_that_was_added_later() {
        let id = |number: u32| CallId::from(format!("c{number}"));
        let mut ids = CallIds::default();
        assert!((0..5000).all(|number| ids.insert(&id(number))));
        let before = ids.clone();
        let new = (2500..7500).filter(|number| ids.insert(&id(*number)));
        assert!(new.eq(5000..7500));
        for number in 0..8000 {
            let there = (before.contains(&id(number)), ids.contains(&id(number)));
            assert_eq!(there, (number < 5000, number < 7500), "{number}");
        }
    }
}
