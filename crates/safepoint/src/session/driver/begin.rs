//! What begins a driver: the future of its task, and what it inherits from another owner.

use std::sync::Arc;

use super::{Arrival, CurrentTurn, Driver, HeldItem, Item, ItemId, TicketState};
use crate::{
    run::shared::AllowList,
    session::journal::{Journal, LeftTurn},
    sync::callback::{self, Panicked},
};

impl<T: Item> Drop for Driver<T> {
    fn drop(&mut self) {
        self.dropped();
    }
}

impl<T: Item> Driver<T> {
    /// The whole life of a session. If this future is dropped early, polled or not, the session still gets an
    /// end.
    pub(in crate::session) fn into_task(self) -> impl Future<Output = ()> + Send {
        // Not an async function, which would have room for the driver twice.
        let mut driver = self;
        async move { driver.run_to_end().await }
    }

    /// A panic in foreign code becomes part of the exit and does not end this task.
    async fn run_to_end(&mut self) {
        if let Err(Panicked(why)) = callback::run(self.run()).await {
            self.fail_with_panic(&why);
        }
        // Boxed, so that an idle session carries no room for its end.
        Box::pin(self.end_runs()).await;
        Box::pin(self.release()).await;
        self.finish();
    }

    /// Inherits what another owner left.
    pub(in crate::session) fn inherit(
        &mut self,
        journal: Arc<Journal>,
        (left, always): (Option<LeftTurn>, Arc<AllowList>),
        items: Vec<(ItemId, T)>,
    ) {
        self.recorder.journal = Some(journal);
        self.approvals.allowed = Some(always);
        let ids: Vec<ItemId> = items.iter().map(|(id, _)| *id).collect();
        self.recorder.taken.extend(&ids);
        for (id, item) in items {
            self.items.held.insert(id, HeldItem::new(item, Arrival::Queued, Arc::new(TicketState::new(id))));
        }
        self.turns.left = left.map(|LeftTurn { turn, fate, run, before, log, open, left_open, .. }| {
            self.approvals.open = open;
            self.turns.inherited = left_open;
            let work =
                CurrentTurn { turn, agent: None, handle: None, run, log, before, items: ids, outcome: None };
            (Box::new(work), fate)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::{super::Settings, Driver};
    use crate::{
        session::{SharedSession, event::SessionEvent},
        value::event::Feed,
    };

    /// The most bytes of what an idle session is made of; with its mailbox, its runs' scope, the head of its task and what the
    /// allocator adds, that is 2 KiB. It is what there is, and a little for another compiler: what is rarely there is boxed.
    const MOST: usize = 1360;

    fn size_of_made<T, R>(_made: impl FnOnce(T) -> R) -> usize {
        size_of::<R>()
    }

    /// The whole of an idle session stays within 2 KiB above an idle task.
    #[test]
    fn an_idle_session_carries_no_room_for_what_it_does_not_do() {
        let sizes = [
            size_of_made(Driver::<String>::into_task),
            size_of::<SharedSession<String>>(),
            size_of::<Settings>(),
            size_of::<Feed<SessionEvent>>(),
        ];
        let all: usize = sizes.iter().sum();
        assert!(all <= MOST, "{all} bytes: {sizes:?}");
    }
}
