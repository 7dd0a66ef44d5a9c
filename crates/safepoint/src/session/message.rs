//! The messages of a session's driver. Everything is one message, so that each interleaving is a sequence.

use std::sync::{Arc, OnceLock};

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{
    item::Policy,
    item_stop::{ItemStop, SteerLook},
    machine::RequestAnswer,
    planner::Plan,
    stop::{SessionStop, StopPersistence},
    stored_stop::StoredStop,
    ticket::{Delivery, TicketState},
};
use crate::{
    contract::store::Error,
    run::{outcome::Outcome, shared::DecideError},
    sync::mailbox,
    value::{
        approval::{ApprovalRequest, Ruled},
        event::ErrorReport,
        history::History,
        ids::{ApprovalId, ItemId, SteerId, TurnId},
        receipt::Receipt,
    },
};

/// Where the answer to a message is sent.
pub(super) type Reply<A> = oneshot::Sender<A>;

/// One message. Exhaustive: the driver must handle each.
pub(super) enum SessionMessage<T> {
    /// With the id that its sender gave it.
    Push(T, Arc<TicketState<T>>, Policy, Option<String>),
    PushWith(T, Arc<TicketState<T>>, Strategy),
    /// An item that is in the store already, under this number.
    PushStored(u64, T, Arc<TicketState<T>>, Policy),
    /// Everything that the last owner left is in the mailbox.
    Inherited,
    /// Another process withdrew the item of this number from the store.
    WithdrawnElsewhere(u64),
    /// Another process requested a stop, which has this number.
    StopIntent(u64, StoredStop),
    /// The item of this number cannot be read by this release, and why. It stays in the store.
    Unreadable(u64, String),
    /// A decision that the store has taken.
    Decided(ApprovalId, Ruled),
    Withdraw(ItemId, Reply<Option<T>>),
    /// The run ended before it could return a steer: the driver looks again once it has handled that end.
    WithdrawAtEnd(TurnId, ItemId, Reply<Option<T>>),
    ListQueued(Reply<Vec<(ItemId, T)>>),
    /// The run has returned a steer.
    SteerReturned(ItemId, Reply<Option<T>>),
    Stop(SessionStop, Reply<RequestAnswer>),
    /// A caller wants its stop stored.
    WriteStop(SessionStop, Reply<StopPersistence>),
    /// The store has answered; `None`: it did not accept the stop.
    StopWritten(Option<u64>, StoredStop),
    StopTurn {
        turn: Option<TurnId>,
        request: StopRequest,
        /// Filled in once it is known which turn that is.
        reached: Arc<OnceLock<TurnId>>,
        reply: Reply<RequestAnswer>,
    },
    /// A caller wants the stop of a turn stored.
    WriteTurnStop {
        request: StopRequest,
        reached: Arc<OnceLock<TurnId>>,
        reply: Reply<StopPersistence>,
    },
    /// Stop the turn that has this item, or withdraw it; and what the run said of it, if it is a steer.
    StopItem(Box<ItemStop>, SteerLook),
    WithdrawIdleStop,
    Resume(Reply<RequestAnswer>),
    Decide(ApprovalId, Ruled, Reply<Result<(), DecideError>>),
    /// A marker: every item accepted before this plan was requested is earlier in the mailbox.
    Gathered(u64),
    Planned(u64, Result<Plan, ErrorReport>),
    SteerTaken(ItemId, Delivery),
    /// The model learned what became of a background run.
    Noticed(TurnId, SteerId),
    Settled(TurnId, Outcome),
    /// Nothing of the turn is alive, or these are.
    Quiet {
        turn: TurnId,
        survivors: Vec<String>,
        receipt: Arc<Receipt>,
        position: Option<u64>,
    },
    /// No background run of the turn is alive any more.
    BackgroundOver,
    /// A caller reads the conversation.
    History(Reply<History>),
    /// A caller gives the session this title.
    Rename(String, Reply<Result<(), Error>>),
    /// A caller lists the open questions.
    ListApprovals(Reply<Vec<ApprovalRequest>>),
    /// The reader of the turn's events is done.
    Read(TurnId),
    /// The reader returned before the turn's end.
    ReadEnough(TurnId),
    Broke(ErrorReport),
    /// Another process owns the session, or may own it, or the session cannot be used any more.
    LeaseLost(ErrorReport),
}

impl<T> SessionMessage<T> {
    /// Whether it gives the session something to do.
    pub(super) fn is_work(&self) -> bool {
        matches!(
            self,
            Self::Push(..)
                | Self::PushWith(..)
                | Self::PushStored(..)
                | Self::StopIntent(..)
                | Self::Decided(..)
                | Self::Decide(..)
                | Self::Resume(_)
        )
    }
}

/// Looks at the running turn, and chooses the policy of an item (S6.4).
pub(super) type Strategy = Box<dyn FnOnce(Option<&super::TurnView>) -> Policy + Send>;

/// The sending side of the driver's mailbox.
pub(super) struct Mailbox<T>(mailbox::Mailbox<SessionMessage<T>>);

/// The receiving side of the driver's mailbox.
pub(super) type Received<T> = mailbox::Received<SessionMessage<T>>;

impl<T> Mailbox<T> {
    pub(super) fn new() -> (Self, Received<T>) {
        let (sender, receiver) = mailbox::Mailbox::new();
        (Self(sender), receiver)
    }

    /// Posts a message that is answered. If no driver is left, the sender of the answer is dropped.
    pub(super) fn ask<A>(&self, message: impl FnOnce(Reply<A>) -> SessionMessage<T>) -> oneshot::Receiver<A> {
        let (reply, answer) = oneshot::channel();
        self.post(message(reply));
        answer
    }

    pub(super) fn post(&self, message: SessionMessage<T>) {
        if !self.0.post(message) {
            // The session is over and no driver is left; a caller that waits for a reply sees it dropped.
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
