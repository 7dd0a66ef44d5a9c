//! What a session's owner and those who talk to it both see.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use super::{
    Item, Planner, SessionEvent, SessionExit,
    door::Inbox,
    family::Family,
    mail::{Mailbox, SessionMessage},
};
use crate::{
    run::RunHandle,
    sync::{
        Mutex,
        callback::{Foreign, Panicked},
    },
    value::{
        event::{ErrorReport, Feed},
        ids::{ItemId, TurnId},
    },
};

/// What the owner and the handles both see.
pub(super) struct SharedSession<T> {
    pub(super) door: Inbox<T>,
    pub(super) planner: Foreign<dyn Planner<T>>,
    pub(super) mailbox: Mailbox<T>,
    pub(super) feed: Arc<Feed<SessionEvent>>,
    pub(super) view: Mutex<Option<TurnView>>,
    pub(super) family: Family,
    pub(super) exit: OnceLock<Arc<SessionExit<T>>>,
    pub(super) over: Notify,
    /// Somebody says that another process wrote into the store.
    pub(super) nudged: Notify,
}

/// The turn at work, as it was when it was looked at.
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
    /// A planner that panics here is met again where that is an account.
    pub(super) fn is_blank(&self, item: &T) -> bool {
        self.planner.call(|planner| planner.is_blank(item)).unwrap_or_else(|Panicked(why)| {
            // It is taken as something; the session ends with this account of it.
            self.mailbox.post(SessionMessage::Broke(ErrorReport {
                code: "callback".into(),
                message: format!("the planner panicked: {why}"),
                hint: None,
            }));
            false
        })
    }

    pub(super) fn view(&self, view: Option<TurnView>) {
        *self.view.lock() = view;
    }

    pub(super) fn over(&self, exit: SessionExit<T>) {
        if self.exit.set(Arc::new(exit)).is_ok() {
            self.view(None);
            self.feed.close(SessionEvent::Ended);
            self.over.notify_waiters();
            // Who looks at the store holds it until it has heard of the end.
            self.nudged.notify_one();
        }
    }
}
