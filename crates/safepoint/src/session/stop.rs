//! How a session, or its turn alone, is asked to stop (S6.7, S6.8), and what the request reached.

use std::{fmt, time::Duration};

use safepoint_scope::{Grace, Reach, Reason, SafePoints, StopAck, StopRequest};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::machine::{RequestAnswer, Strength};
use crate::value::ids::TurnId;

/// A stop of a session. Stops can be requested many times: a later one may strengthen the demand and never
/// weakens it.
///
/// ```
/// use std::time::Duration;
/// use safepoint::{Reason, secs, session::SessionStop};
/// let last = SessionStop::when_idle_for(Duration::from_secs(60));
/// let soon = SessionStop::graceful_within(secs(5)).with_reason(Reason::user("closing"));
/// let now = SessionStop::now(); // each makes the one before it sooner
/// ```
#[derive(Clone, Debug)]
#[must_use = "hand it to `SessionHandle::stop`"]
pub struct SessionStop {
    pub(super) how: StopWhen,
    pub(super) request: StopRequest,
    pub(super) cause: Option<String>,
    pub(super) after: StoppedTurn,
}

/// Exhaustive: by strength, or once it was idle for long enough. Both at once cannot be written (S6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopWhen {
    Strength(Strength),
    WhenIdle(Duration),
}

/// A request for these safe points, or for now without any.
pub(super) fn request_at(points: Option<SafePoints>, grace: Option<Grace>) -> StopRequest {
    match (points, grace) {
        (None, _) => StopRequest::now(),
        (Some(points), None) => StopRequest::at(points),
        (Some(points), Some(grace)) => StopRequest::at_within(points, grace),
    }
}

/// Whether the turn that is stopped may be resumed later. Exhaustive: it may, or it will not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedTurn {
    /// It may.
    #[default]
    Resumable,
    /// It will not: records and items stay, the turn is given up.
    Abandoned,
}

impl SessionStop {
    fn new(how: StopWhen, request: StopRequest) -> Self {
        Self { how, request, cause: None, after: StoppedTurn::Resumable }
    }

    /// After the running turn has ended.
    pub fn at_turn_end() -> Self {
        Self::new(StopWhen::Strength(Strength::AtTurnEnd), StopRequest::graceful_unbounded())
    }

    /// At the next safe point of the running turn and of everything that it has begun.
    pub fn graceful() -> Self {
        Self::new(StopWhen::Strength(Strength::Graceful), StopRequest::graceful_unbounded())
    }

    /// At the next safe point, or after `grace` now.
    pub fn graceful_within(grace: Grace) -> Self {
        Self::new(StopWhen::Strength(Strength::Graceful), StopRequest::graceful(grace))
    }

    /// Everything, now.
    pub fn now() -> Self {
        Self::new(StopWhen::Strength(Strength::Now), StopRequest::now().with_reach(Reach::Tree))
    }

    /// Once the session was idle for `idle`: no turn, nothing queued, nothing suspended, and no background
    /// run alive, whether it runs or waits for a person. A running turn is not touched (S6.8). In a session that a store keeps, a
    /// turn that waits for a decision, and what is queued behind it, wait in the store: the session is idle (S6.21).
    pub fn when_idle_for(idle: Duration) -> Self {
        Self::new(StopWhen::WhenIdle(idle), StopRequest::graceful_unbounded())
    }

    /// Bounds all clean-ups of the running turn.
    pub fn cleanup_cap(mut self, cap: Duration) -> Self {
        self.request = self.request.with_cleanup_cap(cap);
        self
    }

    /// Sets who requests the stop and why, as the turn's receipt reports it.
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.request = self.request.with_reason(reason);
        self
    }

    /// Who requested the stop and why, as far as given.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.request.reason()
    }

    /// Sets the cause, for people; the first cause given stays.
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into()).filter(|cause| !cause.trim().is_empty());
        self
    }

    /// Declares that the running turn will not be resumed. A later request does not change that.
    pub fn abandon(mut self) -> Self {
        self.after = StoppedTurn::Abandoned;
        self
    }

    pub(super) fn is_when_idle(&self) -> bool {
        matches!(self.how, StopWhen::WhenIdle(_))
    }
}

/// Has a stop stored, each time that it is called.
pub(super) type Keep = Box<dyn Fn() -> oneshot::Receiver<StopPersistence> + Send + Sync>;

/// A stop request. Dropping the ticket changes nothing.
pub struct StopTicket {
    pub(super) answer: oneshot::Receiver<RequestAnswer>,
    /// What it added to the demand of the session's runs; none if it waits for a turn's end.
    pub(super) joined: Option<StopAck>,
    pub(super) keep: Keep,
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
            Ok(RequestAnswer::First) => StopAck::First,
            Ok(RequestAnswer::Strengthened) => StopAck::Strengthened,
            // The new demand may have the same strength and an earlier deadline.
            Ok(RequestAnswer::NothingAdded) if self.joined == Some(StopAck::Strengthened) => {
                StopAck::Strengthened
            }
            Ok(RequestAnswer::NothingAdded) => StopAck::Unchanged,
            Ok(_) | Err(_) => StopAck::TooLate,
        }
    }

    /// The durable promise (S1.9): stores the stop, and resolves once it is stored. The stop itself does not
    /// wait for the store; it took effect when it was requested.
    ///
    /// # Cancel safety
    /// The stop may be stored even if the caller no longer waits.
    pub async fn recorded(&self) -> StopPersistence {
        (self.keep)().await.unwrap_or(StopPersistence::Ended)
    }
}

impl fmt::Debug for StopTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopTicket").finish_non_exhaustive()
    }
}

/// A stop request for one turn. Dropping the ticket changes nothing.
pub struct TurnStopTicket {
    pub(super) answer: oneshot::Receiver<RequestAnswer>,
    pub(super) keep: Keep,
}

/// Which turn a stop reached. Exhaustive: this one, none, the plan of the next one, or a different one than the one named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStopAck {
    /// The stop reached this turn.
    Stopping(TurnId),
    /// There is no current turn.
    NoTurn,
    /// No turn had begun, and the next one, which was planned, does not begin: what waits is held until the next
    /// [resume](super::SessionHandle::resume) or item (S6.23).
    Held,
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
            Ok(RequestAnswer::StoppingTurn(turn)) => TurnStopAck::Stopping(turn),
            Ok(RequestAnswer::TurnMismatch(turn)) => TurnStopAck::Mismatch(turn),
            Ok(RequestAnswer::Held) => TurnStopAck::Held,
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
        (self.keep)().await.unwrap_or(StopPersistence::Ended)
    }
}

impl fmt::Debug for TurnStopTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnStopTicket").finish_non_exhaustive()
    }
}
