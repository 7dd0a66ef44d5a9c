//! A ticket: what became of an accepted item, for its sender.

use std::{fmt, sync::Arc};

use super::outcome::{ItemOutcome, PreemptOutcome};
use crate::{
    sync::watched::Watched,
    value::ids::{ItemId, TurnId},
};

/// An accepted item: where it is, and what became of it. Cheap to clone; dropping it changes nothing.
///
/// ```
/// use safepoint::session::{ItemOutcome, Ticket};
/// async fn follow(ticket: &Ticket<String>) {
///     match ticket.outcome().await {
///         ItemOutcome::Completed(turn) => println!("{} was answered in {turn}", ticket.id()),
///         ItemOutcome::Suspended(turn) => println!("{turn} waits for a person"),
///         other => println!("{}: {other:?}", ticket.id()),
///     }
/// }
/// ```
pub struct Ticket<T> {
    pub(super) state: Arc<TicketState<T>>,
}

/// What is known of one item.
pub(super) struct TicketState<T> {
    id: ItemId,
    known: Watched<Known<T>>,
}

struct Known<T> {
    fate: Option<ItemOutcome>,
    preempted: Option<PreemptOutcome>,
    delivered: Option<Delivery>,
    /// Whether a preempt is still unanswered although its item is settled.
    is_preempt_open: bool,
    blocked_by: Option<TurnId>,
    recorded: Option<u64>,
    back: Option<T>,
    /// Whether nothing changes the outcome any more, although its turn waits for a decision.
    is_final: bool,
}

/// Where a steer was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// In which turn.
    pub turn: TurnId,
    /// Before which of its model calls, from 1.
    pub round: u32,
}

impl<T> TicketState<T> {
    pub(super) fn new(id: ItemId) -> Self {
        let known = Known {
            fate: None,
            preempted: None,
            delivered: None,
            is_preempt_open: false,
            blocked_by: None,
            recorded: None,
            back: None,
            is_final: false,
        };
        Self { id, known: Watched::new(known) }
    }
    pub(super) fn id(&self) -> ItemId {
        self.id
    }
    pub(super) fn settle(&self, fate: ItemOutcome) {
        self.known.update(|known| known.fate = Some(fate));
    }
    pub(super) fn fate_now(&self) -> Option<ItemOutcome> {
        self.known.look(|known| known.fate)
    }
    pub(super) fn set_preempted(&self, preempted: PreemptOutcome) {
        self.known.update(|known| known.preempted = Some(preempted));
    }
    /// The sender withdraws the item while its preempt is still pending.
    pub(super) fn keep_preempt_open(&self) {
        self.known.update(|known| known.is_preempt_open = true);
    }
    pub(super) fn set_delivered(&self, delivered: Delivery) {
        self.known.update(|known| known.delivered = Some(delivered));
    }
    pub(super) fn set_blocked_by(&self, turn: Option<TurnId>) {
        self.known.update(|known| known.blocked_by = turn);
    }
    pub(super) fn set_recorded(&self, number: u64) {
        self.known.update(|known| known.recorded = Some(number));
    }
    /// Its turn will not continue.
    pub(super) fn set_final(&self) {
        self.known.update(|known| known.is_final = true);
    }
    pub(super) fn give_back(&self, item: T, fate: ItemOutcome) {
        self.known.update(|known| {
            known.back = Some(item);
            known.fate = Some(fate);
        });
    }
}

impl<T> Ticket<T> {
    /// The item's position: its place in the order of acceptance.
    #[must_use]
    pub fn id(&self) -> ItemId {
        self.state.id
    }

    /// The durable promise (S6.2): resolves when the item is recorded, to its number in the store. `None` if it
    /// came back instead, or if the session ended while it was unknown whether the store has the item. A
    /// session without a store promises no more than its own memory, and numbers from 0.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn recorded(&self) -> Option<u64> {
        self.state.known.wait(|known| known.recorded.map(Some).or(known.fate.map(|_over| None))).await
    }

    /// The first outcome. A turn that ended early may be resumed, and its items with it: one that waits for a decision is
    /// [`ItemOutcome::Suspended`] first, and gets another outcome later. [`final_outcome`](Self::final_outcome) waits for
    /// that; [`Ticket::fate_now`] and the events have the latest outcome.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn outcome(&self) -> ItemOutcome {
        self.state.known.wait(|known| known.fate).await
    }

    /// The outcome, once its turn waits for no decision: as [`outcome`](Self::outcome), but [`ItemOutcome::Suspended`] is
    /// waited for. It is the outcome only where nothing can change it any more: the session has ended, or a later turn began.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn final_outcome(&self) -> ItemOutcome {
        let is_open = |known: &Known<T>| matches!(known.fate, Some(ItemOutcome::Suspended(_)));
        self.state.known.wait(|known| known.fate.filter(|_| known.is_final || !is_open(known))).await
    }

    /// The latest known outcome; `None` while the item is queued or its turn is running.
    #[must_use]
    pub fn fate_now(&self) -> Option<ItemOutcome> {
        self.state.fate_now()
    }

    /// The suspended turn that blocks the item until a decision; `None` if no turn does.
    /// [`SessionEvent::Blocked`](super::SessionEvent::Blocked) reports it as it happens.
    #[must_use]
    pub fn blocked_by(&self) -> Option<TurnId> {
        self.state.known.look(|known| known.blocked_by.filter(|_| known.fate.is_none()))
    }

    /// What a preempt came to, also if its item was withdrawn meanwhile. An item that was pushed without a
    /// preempt gets [`PreemptOutcome::NoTurn`] once it is settled.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn preempted(&self) -> PreemptOutcome {
        self.state
            .known
            .wait(|known| {
                let is_over = known.fate.is_some() && !known.is_preempt_open;
                known.preempted.or_else(|| is_over.then_some(PreemptOutcome::NoTurn))
            })
            .await
    }

    /// Where a steer was delivered; `None` if the item was settled otherwise.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn delivered(&self) -> Option<Delivery> {
        self.state
            .known
            .wait(|known| known.delivered.map(Some).or_else(|| known.fate.map(|_over| None)))
            .await
    }

    /// The item itself, if it came back ([`ItemOutcome::Returned`], [`ItemOutcome::Withdrawn`]); once.
    #[must_use]
    pub fn take_back(&self) -> Option<T> {
        self.state.known.look(|known| known.back.take())
    }
}

impl<T> Clone for Ticket<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("id", &self.state.id).finish_non_exhaustive()
    }
}
