//! Stops that were asked, and what they reached.

use std::fmt;

use safepoint_scope::Asked;
use tokio::sync::oneshot;

use super::machine::Answer;
use crate::ids::TurnId;

/// A stop that was asked; dropping this changes nothing.
pub struct Asking {
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<Kept>) + Send + Sync>,
}

/// Whether a stop outlives the process that asked it. Exhaustive: it does, it need not, or nobody keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is durable, under this number among the session's stops: who owns the session next is stopped by it, if this
    /// process dies before the session has ended.
    InStore(u64),
    /// There is nothing left that it could stop: the session is over, or the turn.
    Over,
    /// The session has no store, or it did not take it. The stop is asked all the same.
    Nowhere,
}

impl Asking {
    /// Whether it was the first, strengthened what was asked, added nothing, or came too late (S1.9).
    ///
    /// # Cancel safety
    /// The stop is asked all the same.
    pub async fn asked(self) -> Asked {
        match self.answer.await {
            Ok(Answer::First) => Asked::First,
            Ok(Answer::Strengthened) => Asked::Strengthened,
            Ok(Answer::NothingAdded) => Asked::NothingAdded,
            Ok(_) | Err(_) => Asked::TooLate,
        }
    }

    /// The durable promise (S1.9): has the store keep the stop, and resolves when it does. The stop itself waits for
    /// nothing: it is under way since it was asked.
    ///
    /// # Cancel safety
    /// It may be kept although nobody waits for it.
    pub async fn recorded(&self) -> Kept {
        let (reply, kept) = oneshot::channel();
        (self.keep)(reply);
        kept.await.unwrap_or(Kept::Over)
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

/// A stop of one turn that was asked; dropping this changes nothing.
pub struct TurnAsking {
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<Kept>) + Send + Sync>,
}

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
        match self.answer.await {
            Ok(Answer::StoppingTurn(turn)) => TurnAsked::Stopping(turn),
            Ok(Answer::TurnMismatch(turn)) => TurnAsked::Mismatch(turn),
            Ok(_) | Err(_) => TurnAsked::NoTurn,
        }
    }

    /// The durable promise (S1.9): has the store keep the stop of the turn that it reached, and resolves when it does.
    /// [`Kept::Over`] if it reached none, or that turn has ended. The stop itself waits for nothing.
    ///
    /// # Cancel safety
    /// It may be kept although nobody waits for it.
    pub async fn recorded(&self) -> Kept {
        let (reply, kept) = oneshot::channel();
        (self.keep)(reply);
        kept.await.unwrap_or(Kept::Over)
    }
}

impl fmt::Debug for TurnAsking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnAsking").finish_non_exhaustive()
    }
}
