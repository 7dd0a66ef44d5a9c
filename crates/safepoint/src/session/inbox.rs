//! The entrance of a session: accepts or refuses an item at once, and gives it its position.
//!
//! **Invariants**: positions follow the order of the mailbox; an accepted item is in the mailbox; once shut,
//! nothing is accepted.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use super::{
    item::{Item, PushError, digest},
    message::{Mailbox, SessionMessage},
    ticket::{Ticket, TicketState},
};

use crate::sync::{Mutex, MutexGuard};

// Named, so that it is found also where this file is explored by loom.
#[path = "inbox/count.rs"]
mod count;

pub(super) use count::Count;

pub(super) struct Inbox<T> {
    /// Guards the counters and the known ids. Items are posted under it, so that positions are the order of
    /// the mailbox: the order of locks is this one, then the mailbox or the late items. Nothing is awaited
    /// under it.
    state: Mutex<InboxState<T>>,
    mailbox: Mailbox<T>,
}

struct InboxState<T> {
    count: Count,
    /// Whether items that come after the end are kept for the exit (S6.10). Otherwise they go back.
    keeps_late: bool,
    /// Made when it is first needed: an idle session carries no room for it.
    rare: Option<Box<RareItems<T>>>,
}

/// What the entrance has of items with an id of their sender, and of those that came late.
struct RareItems<T> {
    known: BTreeMap<String, ([u8; 32], Arc<TicketState<T>>)>,
    late: Option<LateItems<T>>,
    /// What came late under an id of its sender.
    late_ids: BTreeMap<String, [u8; 32]>,
}

impl<T> Default for RareItems<T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), late: None, late_ids: BTreeMap::new() }
    }
}

/// Items that came after the end, each given out once. Clones are the same.
/// The lock is held to add one item or to take all. It is taken under the lock of the inbox, and no other
/// lock is taken under it.
pub(super) type LateItems<T> = Arc<Mutex<Vec<T>>>;

impl<T> InboxState<T> {
    fn rare(&mut self) -> &mut RareItems<T> {
        self.rare.get_or_insert_default()
    }

    /// The item that is known by this id of its sender.
    fn known(&self, id: &str) -> Option<&([u8; 32], Arc<TicketState<T>>)> {
        self.rare.as_ref()?.known.get(id)
    }

    fn late(&mut self) -> &LateItems<T> {
        self.rare().late.get_or_insert_default()
    }

    /// Whether what came late under this id before is the same; `None` if this is the first. Notes the id.
    fn is_late_again(&mut self, known_as: Option<(String, [u8; 32])>) -> Option<bool> {
        let (id, digest) = known_as?;
        match self.rare().late_ids.entry(id) {
            Entry::Occupied(before) => Some(*before.get() == digest),
            Entry::Vacant(first) => {
                first.insert(digest);
                None
            }
        }
    }
}

impl<T: Item> Inbox<T> {
    pub(super) fn new(mailbox: Mailbox<T>, capacity: usize, keeps_late: bool) -> Self {
        let state = InboxState { count: Count::new(capacity), keeps_late, rare: None };
        Self { state: Mutex::new(state), mailbox }
    }

    /// Accepts an item, or gives it back. `message` wraps it for the mailbox.
    pub(super) fn push(
        &self,
        item: T,
        client_id: Option<String>,
        message: impl FnOnce(T, Arc<TicketState<T>>, Option<String>) -> SessionMessage<T>,
    ) -> Result<Ticket<T>, PushError<T>> {
        let digest = match client_id.as_ref().map(|_id| digest(&item)).transpose() {
            Ok(digest) => digest,
            Err(error) => return Err(PushError::NotStorable(item, error.to_string())),
        };
        let mut state = self.lock();
        if let (Some(id), Some(digest)) = (&client_id, &digest)
            && let Some((known, ticket)) = state.known(id)
        {
            let ticket = Ticket { state: Arc::clone(ticket) };
            return if known == digest { Ok(ticket) } else { Err(PushError::OtherContent(item)) };
        }
        let position = match state.count.admit() {
            Some(position) => position,
            None if !state.count.is_shut() => return Err(PushError::Full(item)),
            None if !state.keeps_late => return Err(PushError::Closed(item)),
            None => {
                return Err(match state.is_late_again(client_id.zip(digest)) {
                    // The item is dropped as a parameter is: after the lock, so that it may call the session.
                    Some(true) => PushError::KeptLate,
                    Some(false) => PushError::OtherContent(item),
                    None => {
                        state.late().lock().push(item);
                        PushError::KeptLate
                    }
                });
            }
        };
        let ticket = Arc::new(TicketState::new(position));
        if let (Some(id), Some(digest)) = (&client_id, digest) {
            state.rare().known.insert(id.clone(), (digest, Arc::clone(&ticket)));
        }
        // Sent under the lock, so that positions are the order of the mailbox.
        self.mailbox.post(message(item, Arc::clone(&ticket), client_id));
        Ok(Ticket { state: ticket })
    }

    /// The ticket of an item that is in the store, and belongs to a turn already.
    pub(super) fn ticket(&self) -> Arc<TicketState<T>> {
        Arc::new(TicketState::new(self.lock().count.next_position()))
    }

    /// Lets in an item that its sender has stored already, which needs no room here. Once shut, the ticket is
    /// of no item here. `message` wraps the item for the mailbox.
    pub(super) fn push_stored(
        &self,
        known_as: Option<(String, [u8; 32])>,
        message: impl FnOnce(Arc<TicketState<T>>) -> SessionMessage<T>,
    ) -> Result<Ticket<T>, Ticket<T>> {
        let mut state = self.lock();
        let ticket = Arc::new(TicketState::new(state.count.next_position()));
        if state.count.is_shut() {
            return Err(Ticket { state: ticket });
        }
        if let Some((id, digest)) = known_as {
            state.rare().known.insert(id, (digest, Arc::clone(&ticket)));
        }
        self.mailbox.post(message(Arc::clone(&ticket)));
        Ok(Ticket { state: ticket })
    }

    /// Lets in items that are already in the store, which need no room here. They enter the mailbox together:
    /// no other item is accepted between two of them. `message` wraps each item for the mailbox.
    pub(super) fn push_all_stored<L>(&self, messages: impl IntoIterator<Item = L>)
    where
        L: FnOnce(Arc<TicketState<T>>) -> SessionMessage<T>,
    {
        let mut state = self.lock();
        for message in messages {
            let ticket = Arc::new(TicketState::new(state.count.next_position()));
            self.mailbox.post(message(ticket));
        }
    }

    /// Puts a mark into the mailbox. Everything accepted earlier is before the mark, and items let in
    /// together are all on one side of it.
    pub(super) fn mark(&self, mark: SessionMessage<T>) {
        let _between_items = self.lock();
        self.mailbox.post(mark);
    }

    /// Records that the driver has received `received` more items, and that `waiting` of them are queued now.
    pub(super) fn note(&self, received: usize, waiting: usize) {
        self.lock().count.note(received, waiting);
    }

    pub(super) fn is_shut(&self) -> bool {
        self.lock().count.is_shut()
    }

    pub(super) fn shut(&self) {
        self.lock().count.shut();
    }

    /// Holds the items that arrive after the end, and nothing else of the session.
    pub(super) fn late(&self) -> LateItems<T> {
        Arc::clone(self.lock().late())
    }

    fn lock(&self) -> MutexGuard<'_, InboxState<T>> {
        self.state.lock()
    }
}
