//! The counters of the entrance, without its lock and mailbox: positions, and the room that is left.
//!
//! **Invariants**: each position is given once and is higher than all before it, however the item arrived.
//! Items that are accepted but not yet received by the driver, and queued items, together never exceed the
//! capacity.

use crate::value::ids::ItemId;

/// Counts arrivals. The exhaustive check of the session's machine uses this same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::session) struct Count {
    is_shut: bool,
    next: u64,
    /// Accepted, and not yet received by the driver.
    coming: usize,
    /// Waiting, as the driver last said.
    waiting: usize,
    capacity: usize,
}

impl Count {
    pub(in crate::session) fn new(capacity: usize) -> Self {
        Self { is_shut: false, next: 0, coming: 0, waiting: 0, capacity }
    }

    /// Lets an item in, at the position that it is given; `None` if it is shut or full.
    pub(in crate::session) fn admit(&mut self) -> Option<ItemId> {
        if self.is_shut || self.waiting + self.coming >= self.capacity {
            return None;
        }
        self.coming += 1;
        Some(self.next_position())
    }

    /// The position of an item that is in the store already, and needs no room here.
    pub(in crate::session) fn next_position(&mut self) -> ItemId {
        let position = ItemId::new(self.next);
        self.next += 1;
        position
    }

    /// Records that the driver has received `received` more admitted items, and that `waiting` items are queued now.
    pub(in crate::session) fn note(&mut self, received: usize, waiting: usize) {
        self.coming -= received;
        self.waiting = waiting;
    }

    pub(in crate::session) fn is_shut(&self) -> bool {
        self.is_shut
    }

    pub(in crate::session) fn shut(&mut self) {
        self.is_shut = true;
    }
}
