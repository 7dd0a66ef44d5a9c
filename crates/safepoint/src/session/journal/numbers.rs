//! Which number in the store is which item here.

use std::collections::{BTreeMap, HashMap};

use super::Journal;
use crate::value::ids::ItemId;

#[derive(Default)]
pub(super) struct ItemNumbers {
    of: BTreeMap<ItemId, u64>,
    items: HashMap<u64, ItemId>,
    /// Items that no look at the store has considered yet.
    fresh: Vec<u64>,
}

impl Journal {
    /// Remembers which item of the store this is.
    pub(in crate::session) fn number(&self, item: ItemId, number: u64) {
        let mut numbers = self.numbers.lock();
        numbers.of.insert(item, number);
        numbers.fresh.push(number);
        numbers.items.insert(number, item);
    }

    /// Items that are in the store since the last time this was asked.
    pub(in crate::session) fn take_fresh(&self) -> Vec<u64> {
        std::mem::take(&mut self.numbers.lock().fresh)
    }

    pub(in crate::session) fn number_of(&self, item: ItemId) -> Option<u64> {
        self.numbers.lock().of.get(&item).copied()
    }

    /// The highest number of the items before this one; 0 if there is none.
    pub(in crate::session) fn highest_before(&self, item: ItemId) -> u64 {
        self.numbers.lock().of.range(..item).map(|(_, number)| *number).max().unwrap_or(0)
    }

    pub(in crate::session) fn item_of(&self, number: u64) -> Option<ItemId> {
        self.numbers.lock().items.get(&number).copied()
    }
}
