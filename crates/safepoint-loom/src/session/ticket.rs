//! A ticket that shows only the final state of its item.

use std::sync::Arc;

use crate::{sync::watched::Watched, value::ids::ItemId};

pub(crate) struct Ticket<T> {
    pub(super) state: Arc<TicketState<T>>,
}

impl<T> Ticket<T> {
    pub(crate) async fn fate(&self) -> T {
        self.state.known.wait(Option::take).await
    }
}

pub(crate) struct TicketState<T> {
    id: ItemId,
    known: Watched<Option<T>>,
}

impl<T> TicketState<T> {
    pub(crate) fn new(id: ItemId) -> Self {
        Self { id, known: Watched::new(None) }
    }

    pub(crate) fn id(&self) -> ItemId {
        self.id
    }

    pub(crate) fn give_back(&self, item: T) {
        self.known.update(|known| *known = Some(item));
    }
}
