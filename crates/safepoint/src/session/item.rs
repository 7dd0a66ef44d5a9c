//! Items, and how they are pushed.

use std::{sync::Arc, time::Duration};

use safepoint_scope::{Grace, SafePoints};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use super::{
    machine::{PreemptSpec, PushKind},
    outcome::IfUndelivered,
};
use crate::{run::steer::SteerTiming, value::ids::TurnId};

/// What can be pushed into a session: anything that can be stored.
pub trait Item: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Item for T {}

/// One item on its way in.
///
/// ```
/// use safepoint::session::{Policy, Push};
/// // Goes to the model with the next request of the running turn; the id makes a second push of it harmless.
/// let push = Push::new("Only in the docs.".to_owned()).policy(Policy::steer()).id("message-17");
/// ```
#[derive(Clone, Debug)]
#[must_use = "hand it to `SessionHandle::push`"]
pub struct Push<T> {
    pub(super) item: T,
    pub(super) client_id: Option<String>,
    pub(super) policy: Policy,
    /// The number of an item that a session was created with. Compared by identity: it counts for that
    /// session only, and once.
    pub(super) stored: Option<Arc<u64>>,
}

impl<T> Push<T> {
    /// An item that waits for its turn.
    pub fn new(item: T) -> Self {
        Self { item, client_id: None, policy: Policy::Enqueue, stored: None }
    }

    /// Whether the item is in the store already: its session was created with it
    /// ([`SessionBuilder::open_with`](super::SessionBuilder::open_with)).
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Sets what happens if a turn is running.
    pub fn policy(mut self, policy: impl Into<Policy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Sets an id of the sender's own, unique for the session's life: the same id again is the same item
    /// (S6.2).
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }
}

impl<T> From<T> for Push<T> {
    fn from(item: T) -> Self {
        Self::new(item)
    }
}

/// What happens when an item arrives while a turn is running (S6.6). Without a running turn the item simply
/// begins one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The item waits.
    #[default]
    Enqueue,
    /// The running turn gets the item.
    Steer(SteerTiming, IfUndelivered),
    /// This turn gets the item, running or suspended. If it is not the current one, the item goes back to its sender
    /// ([`RejectReason::TurnMismatch`](super::RejectReason::TurnMismatch)).
    SteerTurn(TurnId, SteerTiming, IfUndelivered),
    /// The running turn is stopped for the item.
    Preempt(Preempt),
    /// The item goes back to its sender.
    Reject,
    /// The running turn is stopped now, and its history is forgotten.
    Rollback,
}

impl Policy {
    /// Steers with the next model request, or waits.
    #[must_use]
    pub const fn steer() -> Self {
        Self::Steer(SteerTiming::NextRequest, IfUndelivered::Queue)
    }

    /// Whether a turn that there is gets the item.
    pub(super) const fn is_steer(self) -> bool {
        matches!(self, Self::Steer(..) | Self::SteerTurn(..))
    }

    pub(super) fn push_kind(self) -> PushKind {
        match self {
            Self::Enqueue => PushKind::Enqueue,
            Self::Reject => PushKind::Reject,
            Self::Steer(when, or) => PushKind::Steer(when, or),
            Self::SteerTurn(turn, when, or) => PushKind::SteerTurn(turn, when, or),
            Self::Preempt(preempt) => PushKind::Preempt(preempt.0),
            Self::Rollback => PushKind::Preempt(PreemptSpec { forgets: true, ..Preempt::now().0 }),
        }
    }
}

/// A stop of the running turn, so that the next one can start with a newer item (S6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "hand it to `Push::policy`"]
pub struct Preempt(PreemptSpec);

impl From<Preempt> for Policy {
    fn from(preempt: Preempt) -> Self {
        Self::Preempt(preempt)
    }
}

impl Preempt {
    /// At once.
    pub fn now() -> Self {
        Self(PreemptSpec { points: None, grace: None, delay: None, turn: None, forgets: false })
    }

    /// At the first of these safe points.
    pub fn at(points: SafePoints) -> Self {
        Self(PreemptSpec { points: Some(points), ..Self::now().0 })
    }

    /// At the first of these safe points, or after `grace` at once and on the whole tree.
    pub fn at_within(points: SafePoints, grace: Grace) -> Self {
        Self(PreemptSpec { grace: Some(micros(grace.as_duration())), ..Self::at(points).0 })
    }

    pub(super) fn spec(self) -> PreemptSpec {
        self.0
    }

    pub(super) fn from_spec(spec: PreemptSpec) -> Self {
        Self(spec)
    }

    /// Delays the stop by `delay`. If the turn has ended by then, no other turn is stopped.
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.delay = Some(micros(delay));
        self
    }

    /// Targets only this turn: if another one is running, the push is refused.
    pub fn of(mut self, turn: TurnId) -> Self {
        self.0.turn = Some(turn);
        self
    }
}

/// As the machine counts time.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The same content gives the same digest.
pub(super) fn digest<T: Serialize + ?Sized>(item: &T) -> Result<[u8; 32], serde_json::Error> {
    Ok(Sha256::digest(serde_json::to_vec(item)?).into())
}

/// Why a push was not accepted; the item comes back.
///
/// ```
/// use safepoint::{SessionHandle, session::PushError};
/// /// Queues a question; gives it back where there is no room.
/// fn ask(session: &SessionHandle<String>, question: String) -> Result<(), String> {
///     match session.push(question) {
///         Ok(_ticket) => Ok(()),
///         Err(PushError::Full(question)) => Err(question),
///         Err(other) => Err(other.to_string()),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError<T> {
    /// The inbox is full.
    #[error("the inbox is full: wait for a turn to end, or withdraw something")]
    Full(T),
    /// The session has ended.
    #[error("the session has ended: start or resume one first")]
    Closed(T),
    /// The session has ended, and keeps what comes late.
    #[error("the session has ended: the item is kept in its exit")]
    KeptLate,
    /// The id was used before, for other content.
    #[error("this id was used before for other content: give a new one")]
    OtherContent(T),
    /// There is nothing in it that a model could answer.
    #[error("there is nothing in it: say something, or attach something")]
    Blank(T),
    /// The item cannot be stored.
    #[error("the item cannot be stored: {1}")]
    NotStorable(T, String),
}

impl<T> PushError<T> {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Full(_) => "full",
            Self::Closed(_) => "closed",
            Self::KeptLate => "kept_late",
            Self::OtherContent(_) => "other_content",
            Self::Blank(_) => "input",
            Self::NotStorable(..) => "not_storable",
        }
    }

    /// The item, if it is not kept.
    pub fn into_item(self) -> Option<T> {
        match self {
            Self::Full(item)
            | Self::Closed(item)
            | Self::OtherContent(item)
            | Self::Blank(item)
            | Self::NotStorable(item, _) => Some(item),
            Self::KeptLate => None,
        }
    }
}
