//! Stops: asked here, and what they reached.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use safepoint_scope::{Asked, StopRequest};
use tokio::sync::oneshot;

use super::{Item, SessionHandle, SessionStop, machine::Answer, mail::Mail};
use crate::value::ids::TurnId;

/// A stop that was asked; dropping this changes nothing.
pub struct Asking {
    pub(super) answer: oneshot::Receiver<Answer>,
    /// What it added to the demand of the session's runs; none if it waits for a turn's end.
    pub(super) joined: Option<Asked>,
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
            // It may be of the same strength, and sooner.
            Ok(Answer::NothingAdded) if self.joined == Some(Asked::Strengthened) => Asked::Strengthened,
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

impl<T: Item> SessionHandle<T> {
    /// Asks the session to stop (S6.7). Never blocks; callable from anywhere, any number of times.
    ///
    /// When it returns no turn begins any more, and unless the stop waits for the turn's end no model call and no call of a
    /// tool does (S6.13).
    pub fn stop(&self, stop: SessionStop) -> Asking {
        let (reply, answer) = oneshot::channel();
        let (mailbox, kept) = (self.shared.mailbox.clone(), stop.clone());
        self.shared.mailbox.post(Mail::Stop { stop: stop.clone(), reply });
        let joined = self.shared.family.ask(&stop);
        let keep = Box::new(move |reply| mailbox.post(Mail::KeepStop { stop: kept.clone(), reply }));
        Asking { answer, joined, keep }
    }

    /// Asks the turn at work to stop, this one if named; the session goes on (S5.3). Never blocks.
    pub fn stop_turn(&self, turn: Option<TurnId>, request: StopRequest) -> TurnAsking {
        let (reply, answer) = oneshot::channel();
        let (mailbox, kept, reached) =
            (self.shared.mailbox.clone(), request.clone(), Arc::new(OnceLock::new()));
        self.shared.mailbox.post(Mail::StopTurn { turn, request, reached: Arc::clone(&reached), reply });
        let keep = Box::new(move |reply| {
            // Behind the stop itself, so it is known by then which turn that reached.
            let (request, reached) = (kept.clone(), Arc::clone(&reached));
            mailbox.post(Mail::KeepTurnStop { request, reached, reply });
        });
        TurnAsking { answer, keep }
    }

    /// Takes a [`SessionStop::when_idle_for`] back.
    pub fn keep_open(&self) {
        self.shared.mailbox.post(Mail::KeepOpen);
    }
}
