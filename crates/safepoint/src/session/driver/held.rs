//! What the owner holds: items, and the turn that they are in.

use std::sync::Arc;

use super::{
    Agent, Arrival, History, ItemId, Log, Outcome, RunHandle, RunId, TicketState, TurnId, UserMessage,
};

/// An item, and those who wait to hear of it.
pub(super) struct HeldItem<T> {
    pub(super) item: T,
    pub(super) came: Arrival,
    pub(super) slip: Arc<TicketState<T>>,
    /// Of a steer: what it says.
    pub(super) said: Option<Box<UserMessage>>,
}

impl<T> HeldItem<T> {
    pub(super) fn new(item: T, came: Arrival, slip: Arc<TicketState<T>>) -> Self {
        Self { item, came, slip, said: None }
    }
}

/// A turn at work, or one that ended early.
pub(super) struct CurrentTurn {
    pub(super) turn: TurnId,
    /// None: another owner began it, and nobody has said yet who goes on.
    pub(super) agent: Option<Agent>,
    /// None: nothing of it runs in this process.
    pub(super) handle: Option<RunHandle>,
    pub(super) run: RunId,
    pub(super) log: Arc<dyn Log>,
    /// The conversation before it.
    pub(super) before: History,
    pub(super) items: Vec<ItemId>,
    pub(super) outcome: Option<Outcome>,
}
