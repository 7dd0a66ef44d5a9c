//! Stop requests made in this process, and what they reached.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use safepoint_scope::{StopAck, StopRequest};
use tokio::sync::oneshot;

use super::{Item, SessionHandle, SessionStop, machine::Answer, mail::SessionMessage};
use crate::value::ids::TurnId;

/// A stop request. Dropping the ticket changes nothing.
pub struct StopTicket {
    pub(super) answer: oneshot::Receiver<Answer>,
    /// What it added to the demand of the session's runs; none if it waits for a turn's end.
    pub(super) joined: Option<StopAck>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<StopPersistence>) + Send + Sync>,
}

/// Whether a stop outlives the process that requested it. Exhaustive: stored, no longer needed, or not
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPersistence {
    /// The stop is durable, under this number among the session's stops. If this process dies before the
    /// session ends, the stop applies to the next owner.
    Stored(u64),
    /// Nothing is left to stop: the session or the turn has ended.
    Ended,
    /// The session has no store, or the store did not accept the stop. The stop still applies in this
    /// process.
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
            // The new demand may have the same strength and an earlier deadline.
            Ok(Answer::NothingAdded) if self.joined == Some(StopAck::Strengthened) => StopAck::Strengthened,
            Ok(Answer::NothingAdded) => StopAck::Unchanged,
            Ok(_) | Err(_) => StopAck::TooLate,
        }
    }

    /// The durable promise (S1.9): stores the stop, and resolves once it is stored. The stop itself does not
    /// wait for the store; it took effect when it was requested.
    ///
    /// # Cancel safety
    /// The stop may be stored even if the caller no longer waits.
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

/// A stop request for one turn. Dropping the ticket changes nothing.
pub struct TurnStopTicket {
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) keep: Box<dyn Fn(oneshot::Sender<StopPersistence>) + Send + Sync>,
}

/// Which turn a stop reached. Exhaustive: this one, none, or a different one than the one named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStopAck {
    /// The stop reached this turn.
    Stopping(TurnId),
    /// There is no current turn.
    NoTurn,
    /// The current turn is a different one.
    Mismatch(TurnId),
}

impl TurnStopTicket {
    /// What the stop reached.
    ///
    /// # Cancel safety
    /// The stop still applies.
    pub async fn asked(self) -> TurnStopAck {
        match self.answer.await {
            Ok(Answer::StoppingTurn(turn)) => TurnStopAck::Stopping(turn),
            Ok(Answer::TurnMismatch(turn)) => TurnStopAck::Mismatch(turn),
            Ok(_) | Err(_) => TurnStopAck::NoTurn,
        }
    }

    /// The durable promise (S1.9): stores the stop of the turn that it reached, and resolves once it is
    /// stored. [`StopPersistence::Ended`] if the stop reached no turn, or the turn has ended. The stop itself
    /// does not wait for the store.
    ///
    /// # Cancel safety
    /// The stop may be stored even if the caller no longer waits.
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
    /// Once this returns, no turn begins. Unless the stop waits for the end of the turn, no model call and no
    /// tool call begins either (S6.13).
    pub fn stop(&self, stop: SessionStop) -> StopTicket {
        let (reply, answer) = oneshot::channel();
        let (mailbox, kept) = (self.shared.mailbox.clone(), stop.clone());
        self.shared.mailbox.post(SessionMessage::Stop { stop: stop.clone(), reply });
        let joined = self.shared.family.ask(&stop);
        let keep =
            Box::new(move |reply| mailbox.post(SessionMessage::KeepStop { stop: kept.clone(), reply }));
        StopTicket { answer, joined, keep }
    }

    /// Asks the current turn to stop, or only `turn` if given; the session continues (S5.3). Never blocks.
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
            // Posted after the stop itself, so `reached` is known by the time the driver handles this.
            let (request, reached) = (kept.clone(), Arc::clone(&reached));
            mailbox.post(SessionMessage::KeepTurnStop { request, reached, reply });
        });
        TurnStopTicket { answer, keep }
    }

    /// Withdraws a [`SessionStop::when_idle_for`].
    pub fn withdraw_idle_stop(&self) {
        self.shared.mailbox.post(SessionMessage::KeepOpen);
    }
}
