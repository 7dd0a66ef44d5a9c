//! What other processes write into the store (items, withdrawals, stops), and what this driver writes there
//! for its own callers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Driver, Input, Item, ItemOutcome, Policy, SessionEvent, TicketState, store_report};
use crate::session::{outcome::RejectReason, stored_item::encode_item};
use crate::{
    contract::store::{self, Pushed},
    run::outcome::Persisted,
    sync::callback,
};

impl<T: Item> Driver<T> {
    /// Makes an item durable before any caller learns that it is accepted (S6.2). `None` if it went back to
    /// its sender, or if it is unknown whether it is stored.
    pub(super) async fn store_item(
        &mut self,
        mut item: T,
        ticket: &Arc<TicketState<T>>,
        policy: Policy,
        client_id: Option<String>,
    ) -> Option<T> {
        let Some(journal) = self.recorder.journal.clone() else {
            ticket.set_recorded(ticket.id().number());
            return Some(item);
        };
        let sealed = callback::call(|| encode_item(&item, policy, client_id, self.cx.settings.inbox));
        let why = match sealed {
            // This owner writes nothing more.
            _ if self.recorder.persisted != Persisted::Yes => RejectReason::NotRecorded,
            Err(_) | Ok(Err(_)) => RejectReason::NotRecorded,
            Ok(Ok(push)) => {
                self.items.being_stored = Some(Box::new((item, Arc::clone(ticket))));
                let pushed = journal.push(push).await;
                item = self.items.being_stored.take()?.0;
                match pushed {
                    Ok(Pushed::Accepted(number)) => {
                        journal.number(ticket.id(), number);
                        ticket.set_recorded(number);
                        return Some(item);
                    }
                    Ok(Pushed::Same(_)) => RejectReason::Known,
                    Ok(Pushed::Conflict(_)) => RejectReason::OtherContent,
                    Ok(Pushed::Full) => RejectReason::Full,
                    Ok(Pushed::Closed) => RejectReason::Closed,
                    Err(error) if error.is_uncertain() => {
                        self.end_in_doubt((item, Arc::clone(ticket)), &error).await;
                        return None;
                    }
                    Err(_not_stored) => RejectReason::NotRecorded,
                }
            }
        };
        let fate = ItemOutcome::Returned(why);
        self.show(SessionEvent::ItemSettled { item: ticket.id(), fate });
        ticket.give_back(item, fate);
        None
    }

    /// The store may have the item or not. If it went back, its sender could push it again, and both would
    /// run. So the session ends, as for a record in doubt, and the item is unhandled: the next
    /// owner of the session sees whether it is there.
    async fn end_in_doubt(&mut self, (item, ticket): (T, Arc<TicketState<T>>), error: &store::Error) {
        self.recorder.persisted = Persisted::Unknown;
        self.fail_unless_stopped(store_report(error));
        self.step(Input::Broke).await;
        self.accept(item, ticket, Policy::Enqueue).await;
    }

    /// Accepts an item that is already in the store.
    pub(super) async fn accept_stored(
        &mut self,
        number: u64,
        (item, ticket): (T, Arc<TicketState<T>>),
        policy: Policy,
    ) {
        let Some(journal) = self.recorder.journal.clone() else { return };
        if journal.item_of(number).is_some() {
            return;
        }
        journal.number(ticket.id(), number);
        ticket.set_recorded(number);
        if self.machine.is_stopping() {
            self.end.is_followed = true;
        }
        self.accept(item, ticket, policy).await;
    }

    /// Another process withdrew an item.
    pub(super) async fn item_withdrawn_elsewhere(&mut self, number: u64) {
        let item = self.recorder.journal.as_ref().and_then(|journal| journal.item_of(number));
        if let Some(item) = item
            && (self.machine.is_waiting(item) || self.machine.is_steering(item))
        {
            // A withdrawn steer is reported where it is settled. Its run may return it before the item is
            // taken from the run, and then recording that finds the item gone.
            if self.machine.is_waiting(item) {
                self.recorder.gone.insert(number);
            }
            self.withdraw(item, oneshot::channel().0).await;
        }
    }
}
