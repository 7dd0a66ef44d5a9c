//! Items in the owner's hands: taken in, taken back, and brought to rest.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Answer, Fate, Held, Input, Item, ItemId, Owner, Policy, SessionEvent, Slip};

impl<T: Item> Owner<T> {
    pub(super) async fn accept(&mut self, item: T, slip: Arc<Slip<T>>, policy: Policy) {
        let id = slip.id();
        self.items.insert(id, Held { item, slip });
        self.show(SessionEvent::Accepted(id));
        let how = self.how(id, policy).await;
        self.step(Input::Push { item: id, how }).await;
        self.steering = None;
        self.tell_if_behind(id);
    }

    pub(super) async fn withdraw(&mut self, item: ItemId, reply: oneshot::Sender<Option<T>>) {
        let content = self.items.get(&item).map(|held| held.item.clone());
        self.step(Input::Withdraw(item)).await;
        let was_waiting = self.answer.take() == Some(Answer::Withdrawn);
        if reply.send(content.filter(|_| was_waiting)).is_err() {
            // Whoever took it back no longer waits; its ticket has it.
        }
    }

    /// Tells where an item is, and lets go of it unless its turn may be taken up again.
    pub(super) fn rest(&mut self, item: ItemId, fate: Fate) {
        self.show(SessionEvent::Fate { item, fate });
        let is_open =
            matches!(fate, Fate::Interrupted(_) | Fate::Failed(_) | Fate::Preempted(_) | Fate::Suspended(_));
        if is_open {
            if let Some(held) = self.items.get(&item) {
                held.slip.fate(fate);
            }
            return;
        }
        let Some(Held { item: content, slip }) = self.items.remove(&item) else { return };
        match fate {
            Fate::Returned(_) | Fate::Withdrawn => slip.back(content, fate),
            Fate::Unhandled => {
                self.unhandled.push((item, content));
                slip.fate(fate);
            }
            _ => slip.fate(fate),
        }
    }
}
