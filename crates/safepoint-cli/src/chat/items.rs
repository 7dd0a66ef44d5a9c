//! What was pushed and is not yet part of a turn: pending steers, and the queue.
//!
//! **Invariants**: in the order of their positions; each item is in at most one of the lists.

use std::collections::BTreeMap;

use safepoint::ids::ItemId;

/// One item as it was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) text: String,
    pub(crate) how: How,
    pub(crate) origin: Origin,
}

/// How it was pushed. Exhaustive: as the lists are labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Queue,
    Steer,
    Preempt,
}

/// Who pushed it. Exhaustive: the person here, or somebody through the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Here,
    Elsewhere,
}

/// The two lists.
#[derive(Debug, Default)]
pub(super) struct Items {
    waiting: BTreeMap<ItemId, Pushed>,
    steers: BTreeMap<ItemId, Pushed>,
    /// In a turn, in case they wait again.
    taken: BTreeMap<ItemId, Pushed>,
}

/// Whether a turn could take a steer. Exhaustive: it could or it could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    AtWork,
    None,
}

impl Items {
    pub(super) fn accepted(&mut self, id: ItemId, item: Pushed, turn: Turn) {
        let list =
            if item.how == How::Steer && turn == Turn::AtWork { &mut self.steers } else { &mut self.waiting };
        list.insert(id, item);
    }

    /// It is part of a turn now.
    pub(super) fn take(&mut self, id: ItemId) -> Option<Pushed> {
        let item = self.waiting.remove(&id).or_else(|| self.steers.remove(&id))?;
        self.taken.insert(id, item.clone());
        Some(item)
    }

    pub(super) fn requeue(&mut self, id: ItemId) {
        if let Some(item) = self.steers.remove(&id).or_else(|| self.taken.remove(&id)) {
            self.waiting.insert(id, item);
        }
    }

    /// It has come to rest: what it was, if no turn had it.
    pub(super) fn forget(&mut self, id: ItemId) -> Option<Pushed> {
        self.taken.remove(&id);
        self.waiting.remove(&id).or_else(|| self.steers.remove(&id))
    }

    pub(super) fn queue(&self) -> impl DoubleEndedIterator<Item = (ItemId, &Pushed)> {
        self.waiting.iter().map(|(id, item)| (*id, item))
    }

    pub(super) fn steers(&self) -> impl DoubleEndedIterator<Item = (ItemId, &Pushed)> {
        self.steers.iter().map(|(id, item)| (*id, item))
    }

    /// What the person here has queued, in order.
    pub(super) fn queued_here(&self) -> Vec<ItemId> {
        self.queue().filter(|(_, item)| item.origin == Origin::Here).map(|(id, _)| id).collect()
    }
}
