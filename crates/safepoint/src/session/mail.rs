//! What reaches the owner of a session: everything is one message to it, so that each interleaving is a sequence.

use std::sync::{Arc, OnceLock};

use safepoint_scope::StopRequest;
use tokio::sync::oneshot;

use super::{
    asking::StopPersistence,
    intent::StoredStop,
    item::{Policy, TicketState},
    machine::Answer,
    planner::Plan,
    stop::SessionStop,
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

/// One message. Exhaustive: the owner must act on each.
pub(super) enum SessionMessage<T> {
    Push {
        item: T,
        slip: Arc<TicketState<T>>,
        policy: Policy,
        client_id: Option<String>,
    },
    /// Somebody else put it into the store.
    Adopt {
        number: u64,
        item: T,
        slip: Arc<TicketState<T>>,
        policy: Policy,
    },
    /// All that was left by the last owner is in the mail.
    Adopted,
    /// Somebody else took it out again.
    Gone {
        number: u64,
    },
    /// Somebody else asked for a stop.
    Intent {
        number: u64,
        intent: StoredStop,
    },
    /// Something in the store that this release cannot read; it stays there.
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
    /// The run ended before it could give a steer back: it is looked for again once that end is heard.
    WantedAtEnd {
        turn: TurnId,
        item: ItemId,
        reply: oneshot::Sender<Option<T>>,
    },
    Waiting {
        reply: oneshot::Sender<Vec<(ItemId, T)>>,
    },
    /// The run has given a steer back.
    TookBack {
        item: ItemId,
        reply: oneshot::Sender<Option<T>>,
    },
    Stop {
        stop: SessionStop,
        reply: oneshot::Sender<Answer>,
    },
    /// Whoever asked for a stop wants it kept.
    KeepStop {
        stop: SessionStop,
        reply: oneshot::Sender<StopPersistence>,
    },
    /// The store has answered; none: it did not take it.
    StopKept {
        number: Option<u64>,
        is_idle: bool,
    },
    StopTurn {
        turn: Option<TurnId>,
        request: StopRequest,
        /// Filled in once it is known which turn that is.
        reached: Arc<OnceLock<TurnId>>,
        reply: oneshot::Sender<Answer>,
    },
    /// Whoever asked for the stop of a turn wants it kept.
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
        reply: oneshot::Sender<Answer>,
    },
    Decide {
        id: ApprovalId,
        ruled: Ruled,
        reply: oneshot::Sender<Result<(), DecideError>>,
    },
    /// What was accepted before this plan was wanted is in the mail before this.
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
    /// The model is told what became of something in the background.
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
    /// Nothing that the turn began in the background is alive any more.
    AsideOver,
    /// Somebody wants to know what is open.
    Questions {
        reply: oneshot::Sender<Vec<ApprovalRequest>>,
    },
    Read {
        turn: TurnId,
    },
    /// The reader had enough before the turn's end.
    ReadEnough {
        turn: TurnId,
    },
    Broke(ErrorReport),
    /// The session is somebody else's, or may be, or cannot be used any more.
    Lost(ErrorReport),
}

/// Looks at the turn at work, and chooses how an item comes (S6.4).
pub(super) type Strategy = Box<dyn FnOnce(Option<&super::TurnView>) -> Policy + Send>;

/// Where mail is put.
pub(super) struct Mailbox<T>(mailbox::Mailbox<SessionMessage<T>>);

/// Where the owner finds it.
pub(super) type Received<T> = mailbox::Received<SessionMessage<T>>;

impl<T> Mailbox<T> {
    pub(super) fn new() -> (Self, Received<T>) {
        let (sender, receiver) = mailbox::Mailbox::new();
        (Self(sender), receiver)
    }

    pub(super) fn post(&self, mail: SessionMessage<T>) {
        if self.0.post(mail).is_err() {
            // The session is over, and nobody is left to tell; whoever waits for a reply sees it dropped.
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
