//! Items held by the driver: accepted, withdrawn and settled.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    Arrival, Driver, HeldItem, Input, Item, ItemId, ItemOutcome, Policy, Request, RequestAnswer,
    SessionEvent, SessionMessage, TicketState,
};
use crate::{
    run::steer::SteerWithdrawal,
    session::driver::planning::report,
    sync::{
        self,
        callback::{self, Panicked},
    },
    value::ids::{SteerId, TurnId},
};

/// Where a withdrawn item is returned.
pub(super) type Reply<T> = oneshot::Sender<Option<T>>;

/// The items that the machine knows, and those on their way in and out.
pub(super) struct Items<T> {
    pub(super) held: HashMap<ItemId, HeldItem<T>>,
    /// An accepted item, while a strategy is asked about it.
    pub(super) in_hand: Option<(T, Arc<TicketState<T>>)>,
    /// An accepted item, while the store writes it.
    pub(super) on_its_way: Option<(T, Arc<TicketState<T>>)>,
    /// Tickets of withdrawn items whose preempts are still pending.
    pub(super) preempting: HashMap<ItemId, Arc<TicketState<T>>>,
    /// Items that are reported as blocked by the suspended turn.
    pub(super) blocked: Vec<ItemId>,
    pub(super) unhandled: Vec<(ItemId, T)>,
    /// Steers that their senders want back from a run that is over, until its end is handled.
    pub(super) wanted: Vec<(ItemId, Reply<T>)>,
}

impl<T> Items<T> {
    pub(super) fn new() -> Self {
        Self {
            held: HashMap::new(),
            in_hand: None,
            on_its_way: None,
            preempting: HashMap::new(),
            blocked: Vec::new(),
            unhandled: Vec::new(),
            wanted: Vec::new(),
        }
    }
}

impl<T: Item> Driver<T> {
    pub(super) async fn accept(&mut self, item: T, slip: Arc<TicketState<T>>, policy: Policy) {
        let id = slip.id();
        let came = match policy {
            Policy::Preempt(_) | Policy::Rollback => Arrival::Preempting,
            Policy::Enqueue | Policy::Steer(..) | Policy::Reject => Arrival::Queued,
        };
        self.items.held.insert(id, HeldItem::new(item, came, slip));
        self.show(SessionEvent::Accepted(id));
        let how = self.how(id, policy).await;
        self.step(Input::Push { item: id, how }).await;
        self.tell_if_blocked(id);
    }

    /// Returns a queued item, or a steer that was not delivered yet; only the run knows which steers those
    /// are.
    pub(super) async fn withdraw(&mut self, item: ItemId, reply: Reply<T>) {
        let work = self.turns.current.as_ref().filter(|_| self.machine.is_steering(item));
        let Some((turn, handle)) = work.and_then(|work| Some((work.turn, work.handle.clone()?))) else {
            return self.give_back(Input::Withdraw(item), item, reply).await;
        };
        let mailbox = self.cx.shared.mailbox.clone();
        drop(self.cx.scope.spawn("withdrawal", async move {
            match handle.withdraw_steer(&SteerId::from(item.to_string())).await {
                SteerWithdrawal::Returned => mailbox.post(SessionMessage::TookBack { item, reply }),
                SteerWithdrawal::Delivered => send(reply, None),
                SteerWithdrawal::RunEnded => mailbox.post(SessionMessage::WantedAtEnd { turn, item, reply }),
            }
        }));
    }

    /// The item is queued again, or back with its sender, as soon as the turn's end is handled. That end
    /// arrives without a request.
    pub(super) async fn want_at_end(&mut self, turn: TurnId, item: ItemId, reply: Reply<T>) {
        if self.turns.current.as_ref().is_some_and(|work| work.turn == turn && work.outcome.is_none()) {
            self.items.wanted.push((item, reply));
        } else {
            self.give_back(Input::Withdraw(item), item, reply).await;
        }
    }

    /// The turn's end has been handled: returns the steers that were wanted back.
    pub(super) async fn give_wanted_back(&mut self) {
        for (item, reply) in std::mem::take(&mut self.items.wanted) {
            self.give_back(Input::Withdraw(item), item, reply).await;
        }
    }

    pub(super) async fn give_back(&mut self, input: Input, item: ItemId, reply: Reply<T>) {
        let content = self.items.held.get(&item).map(|held| callback::call(|| held.item.clone())).transpose();
        let was_waiting = self.ask(input, Request::None).await == Some(RequestAnswer::Withdrawn);
        match content {
            Ok(content) => send(reply, content.filter(|_| was_waiting)),
            // The item stays in its ticket.
            Err(Panicked(why)) => self.broke(report("copying an item panicked", &why)).await,
        }
    }

    /// Sends copies of the queued items.
    pub(super) async fn list_queued(&mut self, reply: oneshot::Sender<Vec<(ItemId, T)>>) {
        let copied = callback::call(|| {
            let held = self.machine.waiting().iter().filter_map(|id| Some((*id, self.items.held.get(id)?)));
            held.map(|(id, held)| (id, held.item.clone())).collect()
        });
        match copied {
            Ok(waiting) => {
                sync::reply(reply, waiting);
            }
            Err(Panicked(why)) => self.broke(report("copying an item panicked", &why)).await,
        }
    }

    /// Reports where an item is, and releases it unless its turn may be resumed.
    pub(super) fn settle_item(&mut self, item: ItemId, fate: ItemOutcome) {
        self.show(SessionEvent::ItemSettled { item, fate });
        let is_open = matches!(
            fate,
            ItemOutcome::Interrupted(_)
                | ItemOutcome::Failed(_)
                | ItemOutcome::Preempted(_)
                | ItemOutcome::Suspended(_)
        );
        if is_open {
            if let Some(held) = self.items.held.get(&item) {
                held.slip.fate(fate);
            }
            return;
        }
        let Some(HeldItem { item: content, slip, .. }) = self.items.held.remove(&item) else { return };
        if fate == ItemOutcome::Withdrawn && self.machine.is_preempting(item) {
            slip.preempts_on();
            self.items.preempting.insert(item, Arc::clone(&slip));
        }
        match fate {
            ItemOutcome::Returned(_) | ItemOutcome::Withdrawn => slip.back(content, fate),
            ItemOutcome::Unhandled => {
                self.items.unhandled.push((item, content));
                slip.fate(fate);
            }
            _ => slip.fate(fate),
        }
    }
}

fn send<T>(reply: Reply<T>, content: Option<T>) {
    sync::reply(reply, content);
}
