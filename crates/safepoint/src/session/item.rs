//! Items, how they are pushed, and the tickets that tell what became of them.

use std::{fmt, sync::Arc, time::Duration};

use safepoint_scope::{Grace, SafePoints};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use super::{
    machine::{PreemptSpec, PushKind, Record},
    words::{IfUndelivered, ItemOutcome, PreemptOutcome},
};
use crate::{
    run::steer::SteerTiming,
    sync::told::Told,
    value::ids::{ItemId, TurnId},
};

/// What can be pushed into a session: anything that can be stored.
pub trait Item: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Item for T {}

/// One item on its way in.
#[derive(Clone, Debug)]
#[must_use = "hand it to `SessionHandle::push`"]
pub struct Push<T> {
    pub(super) item: T,
    pub(super) client_id: Option<String>,
    pub(super) policy: Policy,
}

impl<T> Push<T> {
    /// An item that waits its turn.
    pub fn new(item: T) -> Self {
        Self { item, client_id: None, policy: Policy::Enqueue }
    }

    /// Says what happens if a turn is at work.
    pub fn policy(mut self, policy: impl Into<Policy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Gives it an id of yours, unique for the session's life: the same again is the same item (S6.2).
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

/// What happens when an item comes while a turn is at work (S6.6). With none at work it simply begins one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// It waits.
    #[default]
    Enqueue,
    /// It is handed to the turn at work.
    Steer(SteerTiming, IfUndelivered),
    /// The turn at work is stopped for it.
    Preempt(Preempt),
    /// It goes back to its sender.
    Reject,
    /// The turn at work is stopped now, and its history forgotten.
    Rollback,
}

impl Policy {
    /// Steers with the next model request, or waits.
    #[must_use]
    pub const fn steer() -> Self {
        Self::Steer(SteerTiming::NextRequest, IfUndelivered::Queue)
    }

    pub(super) fn how(self) -> PushKind {
        match self {
            Self::Enqueue => PushKind::Enqueue,
            Self::Reject => PushKind::Reject,
            Self::Steer(when, or) => PushKind::Steer { when, or },
            Self::Preempt(preempt) => PushKind::Preempt(preempt.0),
            Self::Rollback => PushKind::Preempt(PreemptSpec { record: Record::Forget, ..Preempt::now().0 }),
        }
    }
}

/// A stop of the turn at work, so that the next one can start with a newer item (S6.3).
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
        Self(PreemptSpec { points: None, grace: None, delay: None, turn: None, record: Record::Keep })
    }

    /// At the first of these safe points.
    pub fn at(points: SafePoints) -> Self {
        Self(PreemptSpec { points: Some(points), ..Self::now().0 })
    }

    /// The same, but after `grace` at once, and on the whole tree.
    pub fn at_within(points: SafePoints, grace: Grace) -> Self {
        Self(PreemptSpec { grace: Some(micros(grace.as_duration())), ..Self::at(points).0 })
    }

    pub(super) fn wish(self) -> PreemptSpec {
        self.0
    }

    pub(super) fn of_wish(wish: PreemptSpec) -> Self {
        Self(wish)
    }

    /// Asked only after `delay`; if the turn has ended by then, no other one is hit.
    pub fn after(mut self, delay: Duration) -> Self {
        self.0.delay = Some(micros(delay));
        self
    }

    /// Means this turn and no other: if another is at work, the push is refused.
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError<T> {
    /// The inbox is full.
    Full(T),
    /// The session has ended.
    Closed(T),
    /// The session has ended, and keeps what comes late.
    KeptLate,
    /// The id was used before, for other content.
    OtherContent(T),
    /// There is nothing in it that a model could answer.
    Blank(T),
    /// The item cannot be stored.
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

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("the inbox is full: wait for a turn to end, or withdraw something"),
            Self::Closed(_) => f.write_str("the session has ended: start or resume one first"),
            Self::KeptLate => f.write_str("the session has ended: the item is kept for whoever takes it up"),
            Self::OtherContent(_) => f.write_str("this id was used before for other content: give a new one"),
            Self::Blank(_) => f.write_str("there is nothing in it: say something, or attach something"),
            Self::NotStorable(_, why) => write!(f, "the item cannot be stored: {why}"),
        }
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}

/// An accepted item: where it is, and what became of it. Cheap to clone; dropping it changes nothing.
pub struct Ticket<T> {
    pub(super) slip: Arc<TicketState<T>>,
}

/// What is told of one item.
pub(super) struct TicketState<T> {
    id: ItemId,
    told: Told<Known<T>>,
}

struct Known<T> {
    fate: Option<ItemOutcome>,
    preempted: Option<PreemptOutcome>,
    delivered: Option<Delivery>,
    /// Whether a preempt is still to be answered though its item has come to rest.
    is_preempt_open: bool,
    behind: Option<TurnId>,
    recorded: Option<u64>,
    back: Option<T>,
}

/// Where a steer was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// In which turn.
    pub turn: TurnId,
    /// Before which of its model calls, from 1.
    pub round: u32,
}

impl<T> TicketState<T> {
    pub(super) fn new(id: ItemId) -> Self {
        let known = Known {
            fate: None,
            preempted: None,
            delivered: None,
            is_preempt_open: false,
            behind: None,
            recorded: None,
            back: None,
        };
        Self { id, told: Told::new(known) }
    }
    pub(super) fn id(&self) -> ItemId {
        self.id
    }
    pub(super) fn fate(&self, fate: ItemOutcome) {
        self.told.tell(|told| told.fate = Some(fate));
    }
    pub(super) fn fate_now(&self) -> Option<ItemOutcome> {
        self.told.look(|told| told.fate)
    }
    pub(super) fn preempted(&self, preempted: PreemptOutcome) {
        self.told.tell(|told| told.preempted = Some(preempted));
    }
    /// Its sender takes it back, and the preempt that came with it is still out.
    pub(super) fn preempts_on(&self) {
        self.told.tell(|told| told.is_preempt_open = true);
    }
    pub(super) fn delivered(&self, delivered: Delivery) {
        self.told.tell(|told| told.delivered = Some(delivered));
    }
    pub(super) fn behind(&self, turn: Option<TurnId>) {
        self.told.tell(|told| told.behind = turn);
    }
    pub(super) fn recorded(&self, number: u64) {
        self.told.tell(|told| told.recorded = Some(number));
    }
    pub(super) fn back(&self, item: T, fate: ItemOutcome) {
        self.told.tell(|told| {
            told.back = Some(item);
            told.fate = Some(fate);
        });
    }
}

impl<T> Ticket<T> {
    /// The item's position: its place in the order of acceptance.
    #[must_use]
    pub fn id(&self) -> ItemId {
        self.slip.id
    }

    /// The durable promise (S6.2): resolves when the item is recorded, to its number in the store. None if it came back
    /// instead. A session without a store promises no more than its own memory, and numbers from 0.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn recorded(&self) -> Option<u64> {
        self.slip
            .told
            .wait(|told| {
                told.recorded
                    .map(Some)
                    .or_else(|| matches!(told.fate, Some(ItemOutcome::Returned(_))).then_some(None))
            })
            .await
    }

    /// Where the item came to rest, first of all: a turn that ended early may be resumed, and its items with it;
    /// [`Ticket::fate_now`] and the events tell the latest.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn outcome(&self) -> ItemOutcome {
        self.slip.told.wait(|told| told.fate).await
    }

    /// The latest that is known of where it is; none while it waits or its turn is at work.
    #[must_use]
    pub fn fate_now(&self) -> Option<ItemOutcome> {
        self.slip.fate_now()
    }

    /// The suspended turn that the item waits behind, until somebody decides; none if it waits for nothing of the kind.
    /// [`SessionEvent::Blocked`](super::SessionEvent::Blocked) says so as it happens.
    #[must_use]
    pub fn blocked_by(&self) -> Option<TurnId> {
        self.slip.told.look(|told| told.behind.filter(|_| told.fate.is_none()))
    }

    /// What a preempt came to; it is answered also if its item was taken back meanwhile. An item that was pushed without
    /// one gets no answer before its fate; then [`PreemptOutcome::NoTurn`].
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn preempted(&self) -> PreemptOutcome {
        self.slip
            .told
            .wait(|told| {
                let is_over = told.fate.is_some() && !told.is_preempt_open;
                told.preempted.or_else(|| is_over.then_some(PreemptOutcome::NoTurn))
            })
            .await
    }

    /// Where a steer was delivered; none if it came to rest otherwise.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn delivered(&self) -> Option<Delivery> {
        self.slip.told.wait(|told| told.delivered.map(Some).or_else(|| told.fate.map(|_over| None))).await
    }

    /// The item itself, if it came back ([`ItemOutcome::Returned`], [`ItemOutcome::Withdrawn`]); once.
    #[must_use]
    pub fn take_back(&self) -> Option<T> {
        self.slip.told.look(|told| told.back.take())
    }
}

impl<T> Clone for Ticket<T> {
    fn clone(&self) -> Self {
        Self { slip: Arc::clone(&self.slip) }
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("id", &self.slip.id).finish_non_exhaustive()
    }
}
