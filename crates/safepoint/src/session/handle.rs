//! A session in hand, what talks to it, and what makes one.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use safepoint_scope::{Code, Reason, StopRequest};

use crate::{
    contract::store::Error,
    run::{
        shared::DecideError,
        steer::{Steer, SteerTicket},
    },
    value::{
        approval::{ApprovalRequest, Ruled},
        event::Events,
        history::History,
        ids::{ApprovalId, ItemId, Path, SessionId, TurnId},
    },
};

use super::{
    Fork, Forked, Item, ItemOutcome, ItemStopTicket, Planner, Policy, Push, PushError, QueueAfterStop,
    SessionBuilder, SessionEvent, SessionExit, SessionStop, StopTicket, Ticket, TurnStopTicket, TurnView,
    item::digest,
    item_stop::{ItemStop, SteerLook},
    machine::RequestAnswer,
    message::SessionMessage,
    shared::{SharedSession, ShownTurn},
    stop::Keep,
};

/// A session in hand. Dropping it is [`SessionStop::now`] with reason `shutdown`; keep a [`SessionHandle`] to talk to it
/// from elsewhere.
///
/// ```
/// use safepoint::{Agent, Session, session::{ChatPlanner, ItemOutcome, SessionStop}};
/// # use safepoint_testkit::{script::{Reply, Script}, scripted::ScriptedModel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let agent = Agent::builder(ScriptedModel::new(Script::of([Reply::text("Lisbon.")]))).build();
/// let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start();
/// let ticket = session.push("What is the capital of Portugal?".to_owned()).expect("an open session with room");
/// assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
/// session.stop(SessionStop::at_turn_end());
/// session.done().await;
/// # }
/// ```
pub struct Session<T: Item> {
    pub(super) handle: SessionHandle<T>,
}

/// Talks to a session. Cheap to clone; dropping it does nothing.
pub struct SessionHandle<T: Item> {
    pub(super) shared: Arc<SharedSession<T>>,
}

impl<T: Item> Session<T> {
    /// A session whose turns are planned by `planner`.
    pub fn builder(planner: impl Planner<T>) -> SessionBuilder<T> {
        SessionBuilder::new(planner)
    }

    /// A handle for use from other tasks.
    #[must_use]
    pub fn handle(&self) -> SessionHandle<T> {
        self.handle.clone()
    }
}

impl<T: Item> Deref for Session<T> {
    type Target = SessionHandle<T>;
    fn deref(&self) -> &SessionHandle<T> {
        &self.handle
    }
}

impl<T: Item> Drop for Session<T> {
    fn drop(&mut self) {
        let reason = Reason::new(Code::SHUTDOWN).with_text("the session was dropped");
        drop(self.handle.stop(SessionStop::now().with_reason(reason)));
    }
}

impl<T: Item> SessionHandle<T> {
    /// Pushes an item into the session: accepted at once, or returned (S6.2).
    ///
    /// # Errors
    /// [`PushError`], with the item.
    pub fn push(&self, push: impl Into<Push<T>>) -> Result<Ticket<T>, PushError<T>> {
        let Push { item, client_id, policy, stored } = push.into();
        if let Some(number) = self.shared.take_first(stored.as_ref()) {
            return Ok(self.push_stored(number, Push { item, client_id, policy, stored }));
        }
        if self.shared.is_blank(&item) {
            return Err(PushError::Blank(item));
        }
        self.shared.inbox.push(item, client_id, |item, ticket, client_id| {
            SessionMessage::Push(item, ticket, policy, client_id)
        })
    }

    /// Pushes the item that the session was created with. It is never returned: if the session has ended, the
    /// item waits in the store for the next owner.
    fn push_stored(&self, number: u64, push: Push<T>) -> Ticket<T> {
        let Push { item, client_id, policy, .. } = push;
        let known_as = client_id.and_then(|id| Some((id, digest(&item).ok()?)));
        let pushed = self
            .shared
            .inbox
            .push_stored(known_as, |ticket| SessionMessage::PushStored(number, item, ticket, policy));
        let ticket = pushed.unwrap_or_else(|shut| {
            shut.state.settle(ItemOutcome::Unhandled);
            shut
        });
        ticket.state.set_recorded(number);
        ticket
    }

    /// Pushes an item whose policy `strategy` chooses, given the current turn. No turn begins or ends
    /// meanwhile. If the strategy exceeds its bound, the item is enqueued; if it panics, the session ends
    /// (S6.4).
    ///
    /// # Errors
    /// [`PushError`], with the item.
    pub fn push_with(
        &self,
        item: T,
        strategy: impl FnOnce(Option<&TurnView>) -> Policy + Send + 'static,
    ) -> Result<Ticket<T>, PushError<T>> {
        if self.shared.is_blank(&item) {
            return Err(PushError::Blank(item));
        }
        let strategy = Box::new(strategy);
        self.shared.inbox.push(item, None, |item, ticket, _| SessionMessage::PushWith(item, ticket, strategy))
    }

    /// Steers a child run of the current turn. `None` if there is no such run, or it has ended (S6.5).
    #[must_use]
    pub fn steer_child(&self, child: &Path, steer: Steer) -> Option<SteerTicket> {
        let child = self.current_turn()?.run.child(child)?;
        (!child.is_done()).then(|| child.steer(steer))
    }

    /// Resumes the last turn if it ended early, or else what is [held](Self::is_holding), and returns whether there was either. A turn
    /// that waits for decisions resumes only if its agent has an [`Approver`](crate::approval::Approver): the approver gets the open
    /// questions, and nothing else changes.
    ///
    /// # Cancel safety
    /// The turn may resume even if the caller no longer waits for the answer.
    pub async fn resume(&self) -> bool {
        let answer = self.shared.mailbox.ask(SessionMessage::Resume).await;
        matches!(answer, Ok(RequestAnswer::Resuming | RequestAnswer::Released))
    }

    /// Withdraws a queued item, or a steer that was not delivered yet. `None` if a turn has the item or it is
    /// gone: then it is too late. Never touches a running turn (S6.12).
    ///
    /// The request is sent before this returns, whether or not the caller awaits the answer; a later push
    /// comes after it.
    ///
    /// # Cancel safety
    /// The item may be withdrawn even if the caller no longer waits; its ticket has the item then.
    pub fn withdraw(&self, item: ItemId) -> impl Future<Output = Option<T>> + Send + use<T> {
        let answer = self.shared.mailbox.ask(|reply| SessionMessage::Withdraw(item, reply));
        async move { answer.await.ok().flatten() }
    }

    /// What waits and no turn has, in the order of the queue, copied. None once the session has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn queued(&self) -> Vec<(ItemId, T)> {
        self.shared.mailbox.ask(SessionMessage::ListQueued).await.unwrap_or_default()
    }

    /// Reports that another process wrote into the store: the driver checks it at once.
    pub fn check_store(&self) {
        self.shared.store_has_changed();
    }

    /// Answers an open question of the current turn, of a background run, or of the suspended turn, which
    /// then resumes. The decision may name [who made it](crate::approval::Decision::by).
    ///
    /// # Errors
    /// [`DecideError`]: the question was already decided, has expired, was withdrawn or is unknown; changed arguments do not
    /// fit, and the question is still open; the store did not accept the decision; or the session has ended.
    ///
    /// # Cancel safety
    /// The decision may be applied even if the caller no longer waits for the answer.
    pub async fn decide(&self, id: &ApprovalId, ruled: impl Into<Ruled>) -> Result<(), DecideError> {
        let (id, ruled) = (id.clone(), ruled.into());
        let answer = self.shared.mailbox.ask(|reply| SessionMessage::Decide(id, ruled, reply));
        answer.await.unwrap_or(Err(DecideError::RunEnded))
    }

    /// The open questions of the whole session, oldest first: those of the current turn, of the suspended
    /// turn, and of background runs that outlive their turns. Each is answered by [`decide`](Self::decide).
    /// Empty once the session has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn approvals(&self) -> Vec<ApprovalRequest> {
        self.shared.mailbox.ask(SessionMessage::ListApprovals).await.unwrap_or_default()
    }

    /// Makes a new session that continues this one from the end of `turn`, or of its last turn that has ended (S7.21). This
    /// one continues as it is. [`Fork`] gives the new one a name of your choice, and forks sessions that have no owner.
    ///
    /// # Errors
    /// Those of [`Fork::create`], and [`Error::NotStored`] if this session is in no store or has ended.
    ///
    /// # Cancel safety
    /// The new session may have been made: as a whole, or not at all.
    pub async fn fork(&self, turn: Option<TurnId>) -> Result<Forked, Error> {
        let journal = self.shared.journal().ok_or(Error::NotStored)?;
        let fork = Fork::of(journal.session().clone());
        let fork = if let Some(turn) = turn { fork.at(turn) } else { fork };
        fork.create(Arc::clone(journal.store())).await
    }

    /// Gives the session a title, which lists of sessions show: in one line, of which 80 letters stay. It replaces the one that
    /// was taken from the first turn; an empty one leaves the naming to the first turn (S7.41).
    ///
    /// # Errors
    /// [`Error::NotStored`] if this session is in no store or has ended; the store's.
    ///
    /// # Cancel safety
    /// The title may be set even if the caller no longer waits for the answer.
    ///
    /// # Examples
    /// ```
    /// # async fn name(session: safepoint::SessionHandle<String>) -> Result<(), safepoint::store::Error> {
    /// session.rename("plan the trip to Oslo").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rename(&self, title: impl Into<String>) -> Result<(), Error> {
        let title = title.into();
        let answer = self.shared.mailbox.ask(|reply| SessionMessage::Rename(title, reply));
        answer.await.unwrap_or(Err(Error::NotStored))
    }

    /// Asks the session to stop (S6.7). Never blocks; callable from anywhere, any number of times.
    ///
    /// Once this returns, no turn begins. Unless the stop waits for the end of the turn, no model call and no
    /// tool call begins either (S6.13).
    pub fn stop(&self, stop: SessionStop) -> StopTicket {
        let answer = self.shared.mailbox.ask(|reply| SessionMessage::Stop(stop.clone(), reply));
        let joined = self.shared.runs.stop_by(&stop);
        let mailbox = self.shared.mailbox.clone();
        let keep = Box::new(move || mailbox.ask(|reply| SessionMessage::WriteStop(stop.clone(), reply)));
        StopTicket { answer, joined, keep }
    }

    /// Asks the current turn to stop, or only `turn` if given; the session continues (S5.3). Never blocks.
    pub fn stop_turn(&self, turn: Option<TurnId>, request: StopRequest) -> TurnStopTicket {
        let reached = Arc::new(OnceLock::new());
        let keep = self.keeps(request.clone(), Arc::clone(&reached));
        let message = |reply| SessionMessage::StopTurn { turn, request, reached, reply };
        TurnStopTicket { answer: self.shared.mailbox.ask(message), keep }
    }

    /// Stores the stop of the turn that it has reached, each time that this is called.
    fn keeps(&self, request: StopRequest, reached: Arc<OnceLock<TurnId>>) -> Keep {
        let mailbox = self.shared.mailbox.clone();
        Box::new(move || {
            // Posted after the stop itself, so `reached` is known by the time the driver handles this.
            let (request, reached) = (request.clone(), Arc::clone(&reached));
            mailbox.ask(|reply| SessionMessage::WriteTurnStop { request, reached, reply })
        })
    }

    /// Stops one item, wherever it is: one that no turn has is withdrawn, also while a turn is planned on it; the turn that has
    /// it, running or suspended, is asked to stop with `request`. `queue` says what the items behind it do then. Never blocks;
    /// the request is sent before this returns, so a stop right behind a push finds the item (S6.19).
    ///
    /// ```
    /// use safepoint::{SessionHandle, StopRequest, session::{ItemStopAck, QueueAfterStop}, ids::ItemId};
    /// async fn cancel(session: &SessionHandle<String>, item: ItemId) -> bool {
    ///     let stop = session.stop_item(item, StopRequest::now(), QueueAfterStop::Continues);
    ///     stop.asked().await != ItemStopAck::TooLate
    /// }
    /// ```
    pub fn stop_item(&self, item: ItemId, request: StopRequest, queue: QueueAfterStop) -> ItemStopTicket {
        let reached = Arc::new(OnceLock::new());
        let keep = self.keeps(request.clone(), Arc::clone(&reached));
        let message = |reply| {
            let stop = ItemStop { item, request, queue, reached, reply, stored: None };
            SessionMessage::StopItem(Box::new(stop), SteerLook::Unasked)
        };
        ItemStopTicket { answer: self.shared.mailbox.ask(message), keep }
    }

    /// The item that stands in the store's inbox under this number, which [`Ticket::recorded`] gives. `None`: the session is in no
    /// store or has ended, or this owner does not know the number.
    #[must_use]
    pub fn item_of(&self, number: u64) -> Option<ItemId> {
        self.shared.journal()?.item_of(number)
    }

    /// Withdraws a [`SessionStop::when_idle_for`].
    pub fn withdraw_idle_stop(&self) {
        self.shared.mailbox.post(SessionMessage::WithdrawIdleStop);
    }

    /// Its id: of a stored session, its name in the store; of one in memory, one that no other session has.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.shared.id()
    }

    /// The number of this owner of a stored session, from 1; none of one in memory. It is the `epoch` of the events' lines.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.shared.epoch()
    }

    /// The conversation as the last turn that has ended left it: for a page that is loaded again. What the running turn says
    /// is in its [events](Self::events), which begin with this owner of the session.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn history(&self) -> History {
        match self.shared.mailbox.ask(SessionMessage::History).await {
            Ok(history) => history,
            Err(_over) => self.done().await.history().clone(),
        }
    }

    /// The running turn.
    #[must_use]
    pub fn current_turn(&self) -> Option<TurnView> {
        match &*self.shared.turn.lock() {
            ShownTurn::Running(view) => Some(view.clone()),
            ShownTurn::Left(_) | ShownTurn::Held | ShownTurn::None => None,
        }
    }

    /// The turn that ended early and may be [resumed](Self::resume), if none runs: none that waits for a decision. What waits behind it
    /// begins once it is, or with the next item that is pushed.
    #[must_use]
    pub fn resumable(&self) -> Option<TurnId> {
        match *self.shared.turn.lock() {
            ShownTurn::Left(turn) => Some(turn),
            ShownTurn::Running(_) | ShownTurn::Held | ShownTurn::None => None,
        }
    }

    /// Whether items wait that begin only with a [resume](Self::resume), or with the next item that is pushed, while no turn is
    /// [`resumable`](Self::resumable): a stop found the next turn planned, or the planner waits.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        matches!(*self.shared.turn.lock(), ShownTurn::Held)
    }

    /// The session's events from the first on; the last is [`SessionEvent::Ended`].
    #[must_use]
    pub fn events(&self) -> Events<SessionEvent> {
        self.shared.feed.read(0)
    }

    /// The session's events from the one with this number on. A reader that comes back continues by the id of an event:
    /// [`EventEncoder::catch_up_session`](crate::event::EventEncoder::catch_up_session).
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events<SessionEvent> {
        self.shared.feed.read(seq)
    }

    /// How the session ended. Every caller gets the same exit, any number of times.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn done(&self) -> Arc<SessionExit<T>> {
        loop {
            let over = self.shared.over.notified();
            if let Some(exit) = self.shared.exit.get() {
                return Arc::clone(exit);
            }
            over.await;
        }
    }

    /// Whether it accepts nothing more: it has ended, or is about to.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.shared.inbox.is_shut()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.exit.get().is_some()
    }
}

impl<T: Item> Clone for SessionHandle<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Item> fmt::Debug for Session<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl<T: Item> fmt::Debug for SessionHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").finish_non_exhaustive()
    }
}
