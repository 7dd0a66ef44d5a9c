//! Stops that were asked, and what they reached.

use safepoint_scope::Asked;
use tokio::sync::oneshot;

use super::machine::Answer;
use crate::ids::TurnId;

/// A stop that was asked; dropping this changes nothing.
#[derive(Debug)]
pub struct Asking(pub(super) oneshot::Receiver<Answer>);

impl Asking {
    /// Whether it was the first, strengthened what was asked, added nothing, or came too late (S1.9).
    ///
    /// # Cancel safety
    /// The stop is asked all the same.
    pub async fn asked(self) -> Asked {
        match self.0.await {
            Ok(Answer::First) => Asked::First,
            Ok(Answer::Strengthened) => Asked::Strengthened,
            Ok(Answer::NothingAdded) => Asked::NothingAdded,
            Ok(_) | Err(_) => Asked::TooLate,
        }
    }
}

/// A stop of one turn that was asked; dropping this changes nothing.
#[derive(Debug)]
pub struct TurnAsking(pub(super) oneshot::Receiver<Answer>);

/// Which turn a stop reached. Exhaustive: one, none, or not the one that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnAsked {
    /// This one is asked to stop.
    Stopping(TurnId),
    /// No turn is at work.
    NoTurn,
    /// Another turn is at work.
    Mismatch(TurnId),
}

impl TurnAsking {
    /// What it reached.
    ///
    /// # Cancel safety
    /// The stop is asked all the same.
    pub async fn asked(self) -> TurnAsked {
        match self.0.await {
            Ok(Answer::StoppingTurn(turn)) => TurnAsked::Stopping(turn),
            Ok(Answer::TurnMismatch(turn)) => TurnAsked::Mismatch(turn),
            Ok(_) | Err(_) => TurnAsked::NoTurn,
        }
    }
}
