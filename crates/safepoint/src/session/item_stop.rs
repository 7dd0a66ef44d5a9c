//! A stop of one item, wherever it is: it waits, a turn is planned on it, a turn has it, or it is over.
//!
//! **Invariants**: one message of the session decides it, so that an item is never missed between two places; a second
//! stop of the same item changes nothing that the first has begun.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{
    machine::{QueueAfterStop, RequestAnswer},
    message::Reply,
    stop::{Keep, StopPersistence},
};
use crate::value::ids::{ItemId, TurnId};

/// A stop of an item, on its way to the session's driver.
pub(super) struct ItemStop {
    pub(super) item: ItemId,
    pub(super) request: StopRequest,
    pub(super) queue: QueueAfterStop,
    /// Filled in once it is known which turn has it.
    pub(super) reached: Arc<OnceLock<TurnId>>,
    pub(super) reply: Reply<RequestAnswer>,
    /// Its number among the session's stops, if it came through the store.
    pub(super) stored: Option<u64>,
}

/// What the run said of a steer that is to be stopped. Exhaustive: it was not asked, it has returned it, it has delivered it, or it
/// has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SteerLook {
    Unasked,
    Returned,
    Delivered,
    Ended,
}

/// A stop request for one item. Dropping the ticket changes nothing.
pub struct ItemStopTicket {
    pub(super) answer: oneshot::Receiver<RequestAnswer>,
    pub(super) keep: Keep,
}

/// What the stop of an item reached. Exhaustive: the item while it waited, the turn that has it, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStopAck {
    /// No turn had it: it is withdrawn, and its ticket has it back.
    Withdrawn,
    /// This turn has it, and is stopped. The turn may run, or wait for a decision.
    Stopping(TurnId),
    /// It is over already, or the session does not know it: nothing was changed.
    TooLate,
}

impl ItemStopTicket {
    /// What the stop reached.
    ///
    /// # Cancel safety
    /// The stop still applies.
    pub async fn asked(self) -> ItemStopAck {
        match self.answer.await {
            Ok(RequestAnswer::Withdrawn) => ItemStopAck::Withdrawn,
            Ok(RequestAnswer::StoppingTurn(turn)) => ItemStopAck::Stopping(turn),
            Ok(_) | Err(_) => ItemStopAck::TooLate,
        }
    }

    /// The durable promise (S1.9): stores the stop of the turn that it reached, and resolves once it is stored.
    /// [`StopPersistence::Ended`] if it reached no turn, or the turn has ended: a withdrawal is stored with the item. The stop
    /// itself does not wait for the store.
    ///
    /// # Cancel safety
    /// The stop may be stored even if the caller no longer waits.
    pub async fn recorded(&self) -> StopPersistence {
        (self.keep)().await.unwrap_or(StopPersistence::Ended)
    }
}

impl fmt::Debug for ItemStopTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStopTicket").finish_non_exhaustive()
    }
}
