//! What the driver holds: items, and the turn that they are in.

use std::sync::Arc;

use super::{
    Agent, Arrival, History, ItemId, Log, Outcome, RunHandle, RunId, TicketState, TurnId, UserMessage,
};

/// An item, and its ticket.
pub(super) struct HeldItem<T> {
    pub(super) item: T,
    pub(super) came: Arrival,
    pub(super) slip: Arc<TicketState<T>>,
    /// What a steer says.
    pub(super) said: Option<Box<UserMessage>>,
}

impl<T> HeldItem<T> {
    pub(super) fn new(item: T, came: Arrival, slip: Arc<TicketState<T>>) -> Self {
        Self { item, came, slip, said: None }
    }
}

/// A running turn, or one that ended early.
pub(super) struct CurrentTurn {
    pub(super) turn: TurnId,
    /// `None`: another owner began the turn, and the planner has not named an agent yet.
    pub(super) agent: Option<Agent>,
    /// `None`: nothing of the turn runs in this process.
    pub(super) handle: Option<RunHandle>,
    pub(super) run: RunId,
    pub(super) log: Arc<dyn Log>,
    /// The conversation before it.
    pub(super) before: History,
    pub(super) items: Vec<ItemId>,
    pub(super) outcome: Option<Outcome>,
}
