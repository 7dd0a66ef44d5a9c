//! What was pushed and is not yet part of a turn: pending steers, and the queue.
//!
//! **Invariants**: in the order in which the session takes them (what came with a preempt first, then by position); each
//! item is in at most one of the lists; what is said of a preempt holds until it is answered, and no longer.

use std::collections::{BTreeMap, BTreeSet};

use safepoint::ids::ItemId;

/// One item as it was pushed; its text is empty until it is read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) text: String,
    pub(crate) how: PushKind,
    pub(crate) origin: Origin,
}

/// How it was pushed. Exhaustive: as the lists are labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushKind {
    Queue,
    Steer,
    Preempt,
}

/// The sender of an item. Exhaustive: the user here, another process, or any sender before the session was
/// opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Here,
    Elsewhere,
    Before,
}

/// The two lists.
#[derive(Debug, Default)]
pub(crate) struct Items {
    waiting: BTreeMap<ItemId, Pushed>,
    steers: BTreeMap<ItemId, Pushed>,
    /// In a turn, in case they wait again.
    taken: BTreeMap<ItemId, Pushed>,
    /// Items of a preempt whose turn has ended, or never was.
    answered: BTreeSet<ItemId>,
}

/// The messages that a stop has returned, or is about to.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// Whether the stop of this turn has returned the queue.
    pub(super) is_asked: bool,
    /// Whether a message came after the stop.
    pub(super) has_newer: bool,
    /// Taken back, for the input once the turn has ended.
    pub(super) texts: Vec<String>,
    /// Withdrawals requested from here and not yet confirmed.
    pub(super) own: BTreeSet<ItemId>,
}

impl Handed {
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.texts)
    }
}

/// Where an item stands in the queue. Exhaustive: the running turn is stopped for it; that turn has ended,
/// and the item goes first; or it waits its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Preempting,
    First,
    Queued,
}

impl Items {
    pub(crate) fn accepted(&mut self, id: ItemId, item: Pushed, is_running: bool) {
        let list =
            if item.how == PushKind::Steer && is_running { &mut self.steers } else { &mut self.waiting };
        list.insert(id, item);
    }

    /// Sets the text of an item that had only a number.
    pub(crate) fn say(&mut self, id: ItemId, text: &str) {
        if let Some(item) = self.waiting.get_mut(&id) {
            text.clone_into(&mut item.text);
        }
    }

    /// It is part of a turn now.
    pub(crate) fn take(&mut self, id: ItemId) -> Option<Pushed> {
        self.answered.remove(&id);
        let item = self.waiting.remove(&id).or_else(|| self.steers.remove(&id))?;
        self.taken.insert(id, item.clone());
        Some(item)
    }

    pub(crate) fn requeue(&mut self, id: ItemId) {
        if let Some(mut item) = self.steers.remove(&id).or_else(|| self.taken.remove(&id)) {
            // It has had its place.
            item.how = PushKind::Queue;
            self.waiting.insert(id, item);
        }
    }

    /// The preempt that came with it has hit its turn, or no turn at all.
    pub(crate) fn answered(&mut self, id: ItemId) {
        if self.waiting.contains_key(&id) {
            self.answered.insert(id);
        }
    }

    pub(crate) fn place(&self, id: ItemId) -> Place {
        let preempts = self.waiting.get(&id).is_some_and(|item| item.how == PushKind::Preempt);
        match (preempts, self.answered.contains(&id)) {
            (true, false) => Place::Preempting,
            (true, true) => Place::First,
            (false, _) => Place::Queued,
        }
    }

    /// Removes a settled item; returns it if no turn took it.
    pub(crate) fn forget(&mut self, id: ItemId) -> Option<Pushed> {
        self.taken.remove(&id);
        self.answered.remove(&id);
        self.waiting.remove(&id).or_else(|| self.steers.remove(&id))
    }

    pub(crate) fn queue(&self) -> impl DoubleEndedIterator<Item = (ItemId, &Pushed)> {
        let mut queue: Vec<_> = self.waiting.iter().map(|(id, item)| (*id, item)).collect();
        // Stable: in each part the order of their positions stays.
        queue.sort_by_key(|(_, item)| item.how != PushKind::Preempt);
        queue.into_iter()
    }

    pub(crate) fn steers(&self) -> impl DoubleEndedIterator<Item = (ItemId, &Pushed)> {
        self.steers.iter().map(|(id, item)| (*id, item))
    }

    /// What the person here has queued, and what was left to them, in order.
    pub(crate) fn editable(&self) -> Vec<ItemId> {
        self.queue().filter(|(_, item)| item.origin != Origin::Elsewhere).map(|(id, _)| id).collect()
    }
}
