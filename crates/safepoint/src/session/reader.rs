//! Readers of the events of each turn (S6.9).

use futures_core::future::BoxFuture;
use safepoint_scope::Failure;

use crate::value::{event::Events, ids::TurnId};

/// Follows the events of each turn, one turn after the other.
///
/// A reader that returns before the turn's last event stops the turn and is waited for: two turns never
/// overlap. An error or a panic ends the session. A slow reader never delays the run; the next turn waits for
/// it, within [`Settings::callback`](super::SessionBuilder::callback).
pub trait Reader: Send + Sync + 'static {
    /// Follows one turn.
    ///
    /// # Errors
    /// Any error ends the session. A stopped turn is not an error; the last event reports it.
    ///
    /// # Cancel safety
    /// The future is dropped if it runs too long after the turn has ended.
    fn read(&self, turn: TurnId, events: Events) -> BoxFuture<'_, Result<(), Failure>>;
}
