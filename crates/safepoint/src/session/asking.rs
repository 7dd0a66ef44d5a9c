//! Stops: asked here, and what they reached.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use safepoint_scope::{StopAck, StopRequest};
use tokio::sync::oneshot;

use super::{Item, SessionHandle, SessionStop, machine::Answer, mail::SessionMessage};
use crate::value::ids::TurnId;

/// A stop that was asked; dropping this changes nothing.
pub struct StopTicket {
    pub(super) answer: oneshot::Receiver<Answer>,
    /// What it added to the demand of the session's runs; none if it waits for a turn's end.
    pub(super) joined: Option<StopAck>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<StopPersistence>) + Send + Sync>,
}

/// Whether a stop outlives the process that asked it. Exhaustive: it does, it need not, or nobody keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPersistence {
    /// It is durable, under this number among the session's stops: who owns the session next is stopped by it, if this
    /// process dies before the session has ended.
    Stored(u64),
    /// There is nothing left that it could stop: the session is over, or the turn.
    Ended,
    /// The session has no store, or it did not take it. The stop is asked all the same.
    NotStored,
}

impl StopTicket {
    /// Whether it was the first, strengthened what was asked, added nothing, or came too late (S1.9).
    ///
    /// # Cancel safety
    /// The stop is asked all the same.
    pub async fn asked(self) -> StopAck {
        match self.answer.await {
            Ok(Answer::First) => StopAck::First,
            Ok(Answer::Strengthened) => StopAck::Strengthened,
            // It may be of the same strength, and sooner.
            Ok(Answer::NothingAdded) if self.joined == Some(StopAck::Strengthened) => StopAck::Strengthened,
            Ok(Answer::NothingAdded) => StopAck::Unchanged,
            Ok(_) | Err(_) => StopAck::TooLate,
        }
    }

    /// The durable promise (S1.9): has the store keep the stop, and resolves when it does. The stop itself waits for
    /// nothing: it is under way since it was asked.
    ///
    /// # Cancel safety
    /// It may be kept although nobody waits for it.
    pub async fn recorded(&self) -> StopPersistence {
        let (reply, kept) = oneshot::channel();
        (self.keep)(reply);
        kept.await.unwrap_or(StopPersistence::Ended)
    }
}

impl fmt::Debug for StopTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

/// A stop of one turn that was asked; dropping this changes nothing.
pub struct TurnStopTicket {
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<StopPersistence>) + Send + Sync>,
}

/// Which turn a stop reached. Exhaustive: one, none, or not the one that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStopAck {
    /// This one is asked to stop.
    Stopping(TurnId),
    /// No turn is at work.
    NoTurn,
    /// Another turn is at work.
    Mismatch(TurnId),
}

impl TurnStopTicket {
    /// What it reached.
    ///
    /// # Cancel safety
    /// The stop is asked all the same.
    pub async fn asked(self) -> TurnStopAck {
        match self.answer.await {
            Ok(Answer::StoppingTurn(turn)) => TurnStopAck::Stopping(turn),
            Ok(Answer::TurnMismatch(turn)) => TurnStopAck::Mismatch(turn),
            Ok(_) | Err(_) => TurnStopAck::NoTurn,
        }
    }

    /// The durable promise (S1.9): has the store keep the stop of the turn that it reached, and resolves when it does.
    /// [`StopPersistence::Ended`] if it reached none, or that turn has ended. The stop itself waits for nothing.
    ///
    /// # Cancel safety
    /// It may be kept although nobody waits for it.
    pub async fn recorded(&self) -> StopPersistence {
        let (reply, kept) = oneshot::channel();
        (self.keep)(reply);
        kept.await.unwrap_or(StopPersistence::Ended)
    }
}

impl fmt::Debug for TurnStopTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnAsking").finish_non_exhaustive()
    }
}

impl<T: Item> SessionHandle<T> {
    /// Asks the session to stop (S6.7). Never blocks; callable from anywhere, any number of times.
    ///
    /// When it returns no turn begins any more, and unless the stop waits for the turn's end no model call and no call of a
    /// tool does (S6.13).
    pub fn stop(&self, stop: SessionStop) -> StopTicket {
        let (reply, answer) = oneshot::channel();
        let (mailbox, kept) = (self.shared.mailbox.clone(), stop.clone());
        self.shared.mailbox.post(SessionMessage::Stop { stop: stop.clone(), reply });
        let joined = self.shared.family.ask(&stop);
        let keep =
            Box::new(move |reply| mailbox.post(SessionMessage::KeepStop { stop: kept.clone(), reply }));
        StopTicket { answer, joined, keep }
    }

    /// Asks the turn at work to stop, this one if named; the session goes on (S5.3). Never blocks.
    pub fn stop_turn(&self, turn: Option<TurnId>, request: StopRequest) -> TurnStopTicket {
        let (reply, answer) = oneshot::channel();
        let (mailbox, kept, reached) =
            (self.shared.mailbox.clone(), request.clone(), Arc::new(OnceLock::new()));
        self.shared.mailbox.post(SessionMessage::StopTurn {
            turn,
            request,
            reached: Arc::clone(&reached),
            reply,
        });
        let keep = Box::new(move |reply| {
            // Behind the stop itself, so it is known by then which turn that reached.
            let (request, reached) = (kept.clone(), Arc::clone(&reached));
            mailbox.post(SessionMessage::KeepTurnStop { request, reached, reply });
        });
        TurnStopTicket { answer, keep }
    }

    /// Takes a [`SessionStop::when_idle_for`] back.
    pub fn withdraw_idle_stop(&self) {
        self.shared.mailbox.post(SessionMessage::KeepOpen);
    }
}
