//! State shared by a session's driver and its handles.

use std::{
    future::pending,
    sync::{Arc, OnceLock, Weak},
};

use tokio::sync::Notify;

use super::{
    Item, Planner, SessionEvent, SessionExit,
    exit::report,
    inbox::Inbox,
    journal::Journal,
    message::{Mailbox, SessionMessage},
    runs::SessionRuns,
};
use crate::{
    run::RunHandle,
    sync::{
        Mutex,
        callback::{Foreign, Panicked},
    },
    value::{
        event::Feed,
        ids::{ItemId, SessionId, TurnId},
    },
};

/// State shared by the driver and the handles.
pub(super) struct SharedSession<T> {
    pub(super) inbox: Inbox<T>,
    pub(super) planner: Foreign<dyn Planner<T>>,
    pub(super) mailbox: Mailbox<T>,
    pub(super) feed: Arc<Feed<SessionEvent>>,
    /// Written by the driver, copied by handles; no other lock is taken under it. The events hold every run
    /// too, so a view that is replaced is not the last handle of its run.
    pub(super) turn: Mutex<ShownTurn>,
    pub(super) runs: SessionRuns,
    /// Set once, before `over` is notified: a waiter that registers and then looks misses neither.
    pub(super) exit: OnceLock<Arc<SessionExit<T>>>,
    pub(super) over: Notify,
    /// Set from the beginning where it is in a store; in memory, once its id is wanted. Boxed, so that an idle session carries no
    /// room for it.
    pub(super) place: OnceLock<Box<SessionPlace>>,
}

/// Where a session is. Exhaustive: in a store, or in memory, under an id that is made when it is first wanted.
pub(super) enum SessionPlace {
    Store(InStore),
    Memory(SessionId),
}

/// What a session in a store has beside the others.
pub(super) struct InStore {
    /// Weak: a handle does not keep the store alive.
    journal: Weak<Journal>,
    /// Another process is said to have written into the store.
    changed: Arc<Notify>,
    /// The item that the session was created with, until it is pushed. Held for one look.
    first: Mutex<Option<Arc<u64>>>,
    id: SessionId,
    /// The number of this owner.
    epoch: u64,
}

impl InStore {
    pub(super) fn new(journal: &Arc<Journal>, first: Option<Arc<u64>>) -> Self {
        let (id, epoch) = (journal.session().clone(), journal.lease().epoch());
        let changed = journal.changed();
        let (journal, first) = (Arc::downgrade(journal), Mutex::new(first));
        Self { journal, changed, first, id, epoch }
    }
}

/// What handles see of the turns. Exhaustive: one runs; none does, and the last one ended early and may be resumed without a
/// decision; or none does, none was left, and what waits is held; or none of these.
pub(super) enum ShownTurn {
    Running(TurnView),
    Left(TurnId),
    Held,
    None,
}

/// A snapshot of the running turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnView {
    /// Which.
    pub turn: TurnId,
    /// What it is about.
    pub items: Vec<ItemId>,
    /// Its run.
    pub run: RunHandle,
}

impl<T: Item> SharedSession<T> {
    /// A planner that panics here is handled where it can be reported.
    pub(super) fn is_blank(&self, item: &T) -> bool {
        self.planner.call(|planner| planner.is_blank(item)).unwrap_or_else(|Panicked(why)| {
            // The item counts as not blank; the session ends with this error.
            self.mailbox.post(SessionMessage::Broke(report("the planner panicked", &why)));
            false
        })
    }

    /// The number of the item that the session was created with, if it is this one and was not pushed before.
    pub(super) fn take_first(&self, stored: Option<&Arc<u64>>) -> Option<u64> {
        let stored = stored?;
        let mut first = self.stored()?.first.lock();
        first.take_if(|first| Arc::ptr_eq(first, stored)).map(|number| *number)
    }

    fn stored(&self) -> Option<&InStore> {
        match self.place.get().map(|place| &**place) {
            Some(SessionPlace::Store(stored)) => Some(stored),
            Some(SessionPlace::Memory(_)) | None => None,
        }
    }

    /// Its id: of a stored session, its name in the store; of one in memory, one that no other session has.
    pub(super) fn id(&self) -> &SessionId {
        match &**self.place.get_or_init(|| Box::new(SessionPlace::Memory(SessionId::fresh()))) {
            SessionPlace::Store(stored) => &stored.id,
            SessionPlace::Memory(id) => id,
        }
    }

    /// The number of this owner of a stored session, from 1.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.stored().map(|stored| stored.epoch)
    }

    /// Where it is stored. `None`: nowhere, or the session has ended.
    pub(super) fn journal(&self) -> Option<Arc<Journal>> {
        self.stored()?.journal.upgrade()
    }

    /// Another process is said to have written into the store.
    pub(super) fn store_has_changed(&self) {
        if let Some(stored) = self.stored() {
            stored.changed.notify_one();
        }
    }

    /// Waits until another process is said to have written into the store; what was said before this call counts.
    pub(super) async fn store_changed(&self) {
        match self.stored() {
            Some(stored) => stored.changed.notified().await,
            None => pending().await,
        }
    }

    pub(super) fn show(&self, turn: ShownTurn) {
        *self.turn.lock() = turn;
    }

    pub(super) fn over(&self, exit: SessionExit<T>) {
        if self.exit.set(Arc::new(exit)).is_ok() {
            self.show(ShownTurn::None);
            self.feed.close((SessionEvent::Ended, None));
            self.over.notify_waiters();
            // The watcher holds the store until it sees the end.
            self.store_has_changed();
        }
    }
}
