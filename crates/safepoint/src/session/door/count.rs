//! What the door counts, without its lock and its mailbox: positions, and the room that is left.
//!
//! **Invariants**: a position is given once, and each is higher than those before it, whichever way its item came; what is
//! accepted and not yet heard, and what waits, are at most as many as there is room for.

use crate::value::ids::ItemId;

/// Counts whoever comes in. The exhaustive check of the session's machine stands behind this very one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::session) struct Count {
    is_shut: bool,
    next: u64,
    /// Accepted, and not yet seen by the owner.
    coming: usize,
    /// Waiting, as the owner last said.
    waiting: usize,
    capacity: usize,
}

/// Why an item is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Turned {
    Full,
    Shut,
}

impl Count {
    pub(in crate::session) fn new(capacity: usize) -> Self {
        Self { is_shut: false, next: 0, coming: 0, waiting: 0, capacity }
    }

    /// Lets an item in, at the position that it is given.
    pub(in crate::session) fn admit(&mut self) -> Result<ItemId, Turned> {
        if self.is_shut {
            return Err(Turned::Shut);
        }
        if self.waiting + self.coming >= self.capacity {
            return Err(Turned::Full);
        }
        self.coming += 1;
        Ok(self.adopt())
    }

    /// The position of an item that is in the store already, and needs no room here.
    pub(in crate::session) fn adopt(&mut self) -> ItemId {
        let position = ItemId::new(self.next);
        self.next += 1;
        position
    }

    /// The owner has seen `came` more of those that were admitted, and so many wait now.
    pub(in crate::session) fn note(&mut self, came: usize, waiting: usize) {
        self.coming -= came;
        self.waiting = waiting;
    }

    pub(in crate::session) fn shut(&mut self) {
        self.is_shut = true;
    }
}
