//! State shared by a session's driver and its handles.

use std::sync::{Arc, OnceLock, Weak};

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
    pub(super) view: Mutex<Option<TurnView>>,
    pub(super) runs: SessionRuns,
    /// Set once, before `over` is notified: a waiter that registers and then looks misses neither.
    pub(super) exit: OnceLock<Arc<SessionExit<T>>>,
    pub(super) over: Notify,
    /// Another process is said to have written into the store.
    pub(super) store_changed: Notify,
    /// The item that the session was created with, until it is pushed.
    pub(super) first: Mutex<Option<Arc<u64>>>,
    /// Where it is stored, if it is; set before anyone else has a handle. Weak: a handle does not keep the store alive.
    pub(super) journal: OnceLock<Weak<Journal>>,
    /// Its id, and the number of this owner where it is stored: set before anyone else has a handle. In memory the id is made
    /// when it is first wanted.
    pub(super) name: OnceLock<(SessionId, Option<u64>)>,
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
        self.first.lock().take_if(|first| Arc::ptr_eq(first, stored)).map(|number| *number)
    }

    pub(super) fn view(&self, view: Option<TurnView>) {
        *self.view.lock() = view;
    }

    pub(super) fn over(&self, exit: SessionExit<T>) {
        if self.exit.set(Arc::new(exit)).is_ok() {
            self.view(None);
            self.feed.close(SessionEvent::Ended);
            self.over.notify_waiters();
            // The watcher holds the store until it sees the end.
            self.store_changed.notify_one();
        }
    }
}
