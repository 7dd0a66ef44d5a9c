//! What waits of a session, for those who talk to it: looked at, and taken back.

use tokio::sync::oneshot;

use super::{Item, SessionHandle, mail::SessionMessage};
use crate::value::ids::ItemId;

impl<T: Item> SessionHandle<T> {
    /// Takes an item back that waits, or a steer that was not delivered yet; none if a turn has it, or it is gone: then
    /// it is too late. It never touches a turn at work (S6.12).
    ///
    /// It is asked before this returns, whether anybody waits for the answer or not: what is pushed afterwards comes after
    /// it.
    ///
    /// # Cancel safety
    /// The item may be taken back although nobody waits for it; its ticket has it then.
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

    /// Says that somebody else wrote into the store: the owner looks at once, and not only after a while.
    pub fn check_store(&self) {
        self.shared.nudged.notify_one();
    }
}
