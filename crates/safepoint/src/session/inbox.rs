//! The queued items of a session, listed and withdrawn through its handle.

use tokio::sync::oneshot;

use super::{Item, SessionHandle, mail::SessionMessage};
use crate::value::ids::ItemId;

impl<T: Item> SessionHandle<T> {
    /// Withdraws a queued item, or a steer that was not delivered yet. `None` if a turn has the item or it is
    /// gone: then it is too late. Never touches a running turn (S6.12).
    ///
    /// The request is sent before this returns, whether or not the caller awaits the answer; a later push
    /// comes after it.
    ///
    /// # Cancel safety
    /// The item may be withdrawn even if the caller no longer waits; its ticket has the item then.
    pub fn withdraw(&self, item: ItemId) -> impl Future<Output = Option<T>> + Send + use<T> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Withdraw { item, reply });
        async move { answer.await.ok().flatten() }
    }

    /// What waits and no turn has, in the order of the queue, copied. None once the session has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn queued(&self) -> Vec<(ItemId, T)> {
        let (reply, answer) = oneshot::channel();
        self.shared.mailbox.post(SessionMessage::Waiting { reply });
        answer.await.unwrap_or_default()
    }

    /// Reports that another process wrote into the store: the driver checks it at once.
    pub fn check_store(&self) {
        self.shared.nudged.notify_one();
    }
}
