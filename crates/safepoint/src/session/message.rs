//! The messages of a session's driver. Everything is one message, so that each interleaving is a sequence.

use std::sync::{Arc, OnceLock};

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{
    item::Policy, machine::RequestAnswer, planner::Plan, stop::SessionStop, stop::StopPersistence,
    stored_stop::StoredStop, ticket::TicketState,
};
use crate::{
    run::{outcome::Outcome, shared::DecideError},
    sync::mailbox,
    value::{
        approval::{ApprovalRequest, Decision, Ruled},
        event::ErrorReport,
        ids::{ApprovalId, ItemId, SteerId, TurnId},
    },
};

/// One message. Exhaustive: the driver must handle each.
pub(super) enum SessionMessage<T> {
    Push {
        item: T,
        slip: Arc<TicketState<T>>,
        policy: Policy,
        client_id: Option<String>,
    },
    /// Another process put an item into the store.
    Adopt {
        number: u64,
        item: T,
        slip: Arc<TicketState<T>>,
        policy: Policy,
    },
    /// Everything that the last owner left is in the mailbox.
    Adopted,
    /// Another process withdrew an item from the store.
    Gone {
        number: u64,
    },
    /// Another process requested a stop.
    Intent {
        number: u64,
        intent: StoredStop,
    },
    /// Something in the store that this release cannot read. It stays there.
    Unreadable {
        number: u64,
        why: String,
    },
    /// A decision that the store has taken.
    Decided {
        id: ApprovalId,
        decision: Decision,
    },
    PushBy {
        item: T,
        slip: Arc<TicketState<T>>,
        strategy: Strategy,
    },
    Withdraw {
        item: ItemId,
        reply: oneshot::Sender<Option<T>>,
    },
    /// The run ended before it could return a steer: the driver looks again once it has handled that end.
    WantedAtEnd {
        turn: TurnId,
        item: ItemId,
        reply: oneshot::Sender<Option<T>>,
    },
    Waiting {
        reply: oneshot::Sender<Vec<(ItemId, T)>>,
    },
    /// The run has returned a steer.
    TookBack {
        item: ItemId,
        reply: oneshot::Sender<Option<T>>,
    },
    Stop {
        stop: SessionStop,
        reply: oneshot::Sender<RequestAnswer>,
    },
    /// A caller wants its stop stored.
    KeepStop {
        stop: SessionStop,
        reply: oneshot::Sender<StopPersistence>,
    },
    /// The store has answered; `None`: it did not accept the stop.
    StopKept {
        number: Option<u64>,
        is_idle: bool,
    },
    StopTurn {
        turn: Option<TurnId>,
        request: StopRequest,
        /// Filled in once it is known which turn that is.
        reached: Arc<OnceLock<TurnId>>,
        reply: oneshot::Sender<RequestAnswer>,
    },
    /// A caller wants the stop of a turn stored.
    KeepTurnStop {
        request: StopRequest,
        reached: Arc<OnceLock<TurnId>>,
        reply: oneshot::Sender<StopPersistence>,
    },
    /// The store has answered, as for the session's.
    TurnStopKept {
        number: Option<u64>,
        turn: TurnId,
    },
    KeepOpen,
    Resume {
        reply: oneshot::Sender<RequestAnswer>,
    },
    Decide {
        id: ApprovalId,
        ruled: Ruled,
        reply: oneshot::Sender<Result<(), DecideError>>,
    },
    /// A marker: every item accepted before this plan was requested is earlier in the mailbox.
    Gathered(u64),
    Planned {
        plan: u64,
        made: Result<Plan, ErrorReport>,
    },
    SteerTaken {
        turn: TurnId,
        item: ItemId,
        round: u32,
    },
    /// The model learned what became of a background run.
    Noticed {
        turn: TurnId,
        notice: SteerId,
    },
    Settled {
        turn: TurnId,
        outcome: Outcome,
    },
    Quiet {
        turn: TurnId,
        survivors: Vec<String>,
    },
    /// No background run of the turn is alive any more.
    AsideOver,
    /// A caller lists the open questions.
    Questions {
        reply: oneshot::Sender<Vec<ApprovalRequest>>,
    },
    Read {
        turn: TurnId,
    },
    /// The reader returned before the turn's end.
    ReadEnough {
        turn: TurnId,
    },
    Broke(ErrorReport),
    /// Another process owns the session, or may own it, or the session cannot be used any more.
    Lost(ErrorReport),
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

    pub(super) fn post(&self, mail: SessionMessage<T>) {
        if self.0.post(mail).is_err() {
            // The session is over and no driver is left; a caller that waits for a reply sees it dropped.
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
