//! Items held by the driver: accepted, passed to the active run as steers, withdrawn, blocked and settled.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Arrival, Delivery, Driver, Input, Item, ItemId, ItemOutcome, Policy, Reply, Request, RequestAnswer,
    RunHandle, SessionEvent, SessionMessage, TicketState, TurnId, UserMessage, report,
};
use crate::{
    run::{
        outcome::Persisted,
        steer::{Steer, SteerTiming, SteerWithdrawal},
    },
    session::{
        item_stop::{ItemStop, SteerLook},
        machine::PushKind,
        outcome::RejectReason,
    },
    sync::{
        self,
        callback::{self, Panicked},
    },
    value::ids::SteerId,
};

/// An item, and its ticket.
pub(super) struct HeldItem<T> {
    pub(super) item: T,
    pub(super) arrival: Arrival,
    pub(super) ticket: Arc<TicketState<T>>,
    /// What a steer says.
    pub(super) message: Option<Box<UserMessage>>,
}

impl<T> HeldItem<T> {
    pub(super) fn new(item: T, arrival: Arrival, ticket: Arc<TicketState<T>>) -> Self {
        Self { item, arrival, ticket, message: None }
    }
}

/// The items that the machine knows, and those on their way in and out.
pub(super) struct Items<T> {
    pub(super) held: BTreeMap<ItemId, HeldItem<T>>,
    /// An accepted item, while a strategy is asked about it.
    pub(super) in_hand: Option<Box<(T, Arc<TicketState<T>>)>>,
    /// An accepted item, while the store writes it.
    pub(super) being_stored: Option<Box<(T, Arc<TicketState<T>>)>>,
    /// Tickets of withdrawn items whose preempts are still pending.
    pub(super) preempting: BTreeMap<ItemId, Arc<TicketState<T>>>,
    /// Items that are reported as blocked by the suspended turn.
    pub(super) blocked: Vec<ItemId>,
    pub(super) unhandled: Vec<(ItemId, T)>,
    /// What is asked of steers of a run that is over, until its end is handled.
    pub(super) at_end: Vec<AtEnd<T>>,
}

/// What is asked of a steer once the end of its run is handled. Exhaustive: its sender wants it back, or it is stopped.
pub(super) enum AtEnd<T> {
    Withdraw(ItemId, Reply<Option<T>>),
    Stop(Box<ItemStop>),
}

impl<T> Items<T> {
    pub(super) fn new() -> Self {
        Self {
            held: BTreeMap::new(),
            in_hand: None,
            being_stored: None,
            preempting: BTreeMap::new(),
            blocked: Vec::new(),
            unhandled: Vec::new(),
            at_end: Vec::new(),
        }
    }

    /// Drops an item whose turn can no longer be resumed: its outcome does not change any more.
    pub(super) fn release(&mut self, item: ItemId) {
        if let Some(held) = self.held.remove(&item) {
            held.ticket.set_final();
        }
    }
}

impl<T: Item> Driver<T> {
    pub(super) async fn accept(&mut self, item: T, ticket: Arc<TicketState<T>>, policy: Policy) {
        let id = ticket.id();
        let arrival = match policy {
            Policy::Preempt(_) | Policy::Rollback => Arrival::Preempting,
            Policy::Enqueue | Policy::Steer(..) | Policy::SteerTurn(..) | Policy::Reject => Arrival::Queued,
        };
        self.items.held.insert(id, HeldItem::new(item, arrival, ticket));
        self.show(SessionEvent::Accepted(id));
        let how = self.push_kind(id, policy).await;
        self.step(Input::Push(id, how)).await;
        self.mark_if_blocked(id);
    }

    /// Returns a queued item, or a steer that was not delivered yet; only the run knows which steers those
    /// are.
    pub(super) async fn withdraw(&mut self, item: ItemId, reply: Reply<Option<T>>) {
        let work = self.turns.current.as_ref().filter(|_| self.machine.is_steering(item));
        let Some((turn, handle)) = work.and_then(|work| Some((work.turn, work.handle.clone()?))) else {
            return self.withdraw_now(Input::Withdraw(item), item, reply).await;
        };
        let mailbox = self.cx.shared.mailbox.clone();
        drop(self.cx.scope.spawn("withdrawal", async move {
            match handle.withdraw_steer(&SteerId::from(item.to_string())).await {
                SteerWithdrawal::Returned => mailbox.post(SessionMessage::SteerReturned(item, reply)),
                SteerWithdrawal::Delivered => sync::reply(reply, None),
                SteerWithdrawal::RunEnded => mailbox.post(SessionMessage::WithdrawAtEnd(turn, item, reply)),
            }
        }));
    }

    /// The item is queued again, or back with its sender, as soon as the turn's end is handled. That end
    /// arrives without a request.
    pub(super) async fn withdraw_at_end(&mut self, turn: TurnId, item: ItemId, reply: Reply<Option<T>>) {
        if self.turns.current.as_ref().is_some_and(|work| work.turn == turn && work.outcome.is_none()) {
            self.items.at_end.push(AtEnd::Withdraw(item, reply));
        } else {
            self.withdraw_now(Input::Withdraw(item), item, reply).await;
        }
    }

    /// The turn's end has been handled: does what was asked of its steers meanwhile.
    pub(super) async fn withdraw_wanted(&mut self) {
        for asked in std::mem::take(&mut self.items.at_end) {
            match asked {
                AtEnd::Withdraw(item, reply) => self.withdraw_now(Input::Withdraw(item), item, reply).await,
                AtEnd::Stop(stop) => self.stop_item(stop, SteerLook::Unasked).await,
            }
        }
    }

    pub(super) async fn withdraw_now(&mut self, input: Input, item: ItemId, reply: Reply<Option<T>>) {
        let content = self.items.held.get(&item).map(|held| callback::call(|| held.item.clone())).transpose();
        let was_waiting = self.step_with(input, Request::None).await == Some(RequestAnswer::Withdrawn);
        match content {
            Ok(content) => {
                let is_recorded = self.recorder.persisted == Persisted::Yes;
                sync::reply(reply, content.filter(|_| was_waiting && is_recorded));
            }
            // The item stays in its ticket.
            Err(Panicked(why)) => self.broke(report("copying an item panicked", &why)).await,
        }
    }

    /// Sends copies of the queued items.
    pub(super) async fn list_queued(&mut self, reply: Reply<Vec<(ItemId, T)>>) {
        let copied = callback::call(|| {
            let held = self.machine.waiting().iter().filter_map(|id| Some((*id, self.items.held.get(id)?)));
            held.map(|(id, held)| (id, held.item.clone())).collect()
        });
        match copied {
            Ok(waiting) => sync::reply(reply, waiting),
            Err(Panicked(why)) => self.broke(report("copying an item panicked", &why)).await,
        }
    }

    /// Reports where an item is, and releases it unless its turn may be resumed. An item goes back only if that is
    /// recorded: the store may still have it otherwise, and the next owner would run it.
    pub(super) fn settle_item(&mut self, item: ItemId, fate: ItemOutcome) {
        let goes_back = matches!(fate, ItemOutcome::Returned(_) | ItemOutcome::Withdrawn);
        let is_recorded = self.recorder.persisted == Persisted::Yes;
        let fate = if goes_back && !is_recorded { ItemOutcome::Unhandled } else { fate };
        self.show(SessionEvent::ItemSettled { item, fate });
        if fate.is_open() {
            if let Some(held) = self.items.held.get(&item) {
                held.ticket.settle(fate);
            }
            return;
        }
        let Some(HeldItem { item: content, ticket, .. }) = self.items.held.remove(&item) else { return };
        if fate == ItemOutcome::Withdrawn && self.machine.is_preempting(item) {
            ticket.keep_preempt_open();
            self.items.preempting.insert(item, Arc::clone(&ticket));
        }
        match fate {
            ItemOutcome::Returned(_) | ItemOutcome::Withdrawn => ticket.give_back(content, fate),
            ItemOutcome::Unhandled => {
                self.items.unhandled.push((item, content));
                ticket.settle(fate);
            }
            _ => ticket.settle(fate),
        }
    }

    /// How an item is pushed, by its policy. For a steer the planner supplies the message, which must not be
    /// blank (S6.5).
    pub(super) async fn push_kind(&mut self, item: ItemId, policy: Policy) -> PushKind {
        let Some(held) = self.items.held.get_mut(&item) else { return policy.push_kind() };
        // An item from the store came past the check at the entrance.
        if self.recorder.journal.is_some() && self.cx.shared.is_blank(&held.item) {
            return PushKind::Refused(RejectReason::Blank);
        }
        // An ending session asks no planner: the item is unhandled under any policy.
        if !policy.is_steer() || self.end.exit.is_some() {
            return policy.push_kind();
        }
        match self.cx.shared.planner.call(|planner| planner.steer(&held.item)) {
            Ok(message) if message.is_blank() => PushKind::Refused(RejectReason::Blank),
            Ok(message) => {
                held.message = Some(Box::new(message));
                policy.push_kind()
            }
            Err(Panicked(why)) => {
                self.broke(report("the planner panicked", &why)).await;
                PushKind::Enqueue
            }
        }
    }

    pub(super) async fn steer_taken(&mut self, item: ItemId, delivered: Delivery) {
        self.show(SessionEvent::Steered { item, delivered });
        // The run's log took the item together with the fact.
        self.recorder.taken.insert(item);
        if let Some(held) = self.items.held.get(&item) {
            held.ticket.set_delivered(delivered);
        }
        self.step(Input::SteerTaken(delivered.turn, item)).await;
    }

    pub(super) fn steer(&self, turn: TurnId, item: ItemId, when: SteerTiming) {
        if let Some(handle) = self.running(turn) {
            self.hand_over(handle, item, when);
        }
    }

    pub(super) fn hand_over(&self, run: &RunHandle, item: ItemId, when: SteerTiming) {
        let message = self.items.held.get(&item).and_then(|held| held.message.clone());
        if let Some(message) = message {
            // The run's events show what becomes of the steer, in their order.
            drop(run.steer(Steer::of_item(item, *message, when)));
        }
    }

    /// Reports every queued item as blocked by a decision (S8.1).
    pub(super) fn mark_all_blocked(&mut self, turn: TurnId) {
        for item in self.machine.waiting().iter().copied().collect::<Vec<_>>() {
            self.mark_blocked(item, turn);
        }
    }

    /// Reports an item that arrived while the turn was suspended.
    pub(super) fn mark_if_blocked(&mut self, item: ItemId) {
        if self.machine.is_suspended()
            && let Some(turn) = self.machine.left()
            && self.machine.is_waiting(item)
        {
            self.mark_blocked(item, turn);
        }
    }

    pub(super) fn mark_blocked(&mut self, item: ItemId, turn: TurnId) {
        let Some(held) = self.items.held.get(&item) else { return };
        held.ticket.set_blocked_by(Some(turn));
        self.items.blocked.push(item);
        self.show(SessionEvent::Blocked { item, turn });
    }

    /// The turn continues, or is over: nothing waits for its decision any more.
    pub(super) fn unmark_blocked(&mut self) {
        self.approvals.overdue = None;
        for item in std::mem::take(&mut self.items.blocked) {
            if let Some(held) = self.items.held.get(&item) {
                held.ticket.set_blocked_by(None);
            }
        }
    }
}
