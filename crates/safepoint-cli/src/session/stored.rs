//! A session of a store that this process owns, and the wait for its turns.
//!
//! **Invariants**: an event is read once, except to look back at what has happened; a wait can be left at any moment and
//! taken up again.

use std::sync::Arc;

use safepoint::{
    RunHandle, Session,
    event::Events,
    ids::{ItemId, SessionId},
    raw::{
        decode_row, encode_item,
        store::{InboxRow, ItemState, Pushed},
    },
    session::{ExitReason, ItemOutcome, LostRun, Policy, Push, PushError, SessionEvent, SessionStop, Ticket},
    store::Store,
};

use crate::{exit::Usage, render::approval::is_open};

/// How many items may wait in a stored session.
pub(crate) const INBOX: usize = 1024;

/// A session of a store that this process owns.
pub(crate) struct StoredSession {
    pub(crate) session: Session<String>,
    pub(crate) id: SessionId,
    /// How many owners it has had, this process the last.
    pub(crate) epoch: u64,
    events: Events<SessionEvent>,
    pub(crate) store: Arc<dyn Store>,
    wait: Wait,
    number: Option<u64>,
    /// The first prompt, until it is said. A new session was created with it.
    first: Option<Push<String>>,
}

/// What follows a prompt or a resume. Exhaustive: the caller that waits for a turn acts on each.
pub(crate) enum NextTurn {
    /// The turn that was asked for.
    Own(Turn),
    /// A turn that comes first: it was queued, or another process pushed it.
    Other(Turn),
    /// No turn until this number of approvals is decided.
    Undecided(usize),
    /// No turn: the session was asked to stop, for this cause.
    Stopped(Option<String>),
    /// No turn: the prompt was withdrawn.
    TakenBack,
    /// No turn: nothing to resume.
    Nothing,
}

/// A turn that has begun.
pub(crate) struct Turn {
    /// The number of the turn in its conversation, from 1; a stored session counts over all its processes.
    pub(crate) number: u64,
    pub(crate) run: RunHandle,
}

/// What the caller waits for. Exhaustive: the turn of its prompt, or the work that a resumed session has
/// left.
enum Wait {
    Said(Ticket<String>),
    /// A prompt for a session that had just ended: it waits in the store for the next owner.
    Late(String),
    /// No caller has taken it yet.
    Resume,
    Left,
}

impl StoredSession {
    pub(crate) fn new(
        (session, first): (Session<String>, Option<Push<String>>),
        (id, epoch): (SessionId, u64),
        store: Arc<dyn Store>,
    ) -> Self {
        let events = session.events();
        Self { session, id, epoch, events, store, wait: Wait::Left, number: None, first }
    }

    pub(crate) fn say(&mut self, text: String) -> anyhow::Result<()> {
        self.number = None;
        let push = self.first.take().unwrap_or_else(|| Push::new(text));
        self.wait = match self.session.push(push) {
            Ok(ticket) => Wait::Said(ticket),
            // A stop that waited in the store was first.
            Err(PushError::Closed(text)) => Wait::Late(text),
            Err(error) => return Err(Usage(error.to_string()).into()),
        };
        Ok(())
    }

    /// Ends the session before anything was said. The prompt that it was created with is withdrawn.
    pub(crate) async fn leave_unsaid(self) {
        // First: no turn begins once the session is asked to stop, so that the prompt stays in the store.
        drop(self.session.stop(SessionStop::now()));
        let stored = self.first.filter(Push::is_stored).and_then(|first| self.session.push(first).ok());
        drop(self.session.done().await);
        if let Some(ticket) = stored
            && let Some(number) = ticket.recorded().await
            && self.store.withdraw(&self.id, number).await.is_err()
        {
            // It waits, and `safepoint sessions` shows that.
        }
    }

    pub(crate) fn resume(&mut self) {
        (self.wait, self.number) = (Wait::Resume, None);
    }

    pub(crate) fn said(&self) -> Option<ItemId> {
        match &self.wait {
            Wait::Said(ticket) => Some(ticket.id()),
            Wait::Late(_) | Wait::Resume | Wait::Left => None,
        }
    }

    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// Whether a turn follows that this process did not ask for: items that wait in a resumed session.
    pub(crate) async fn has_more(&self) -> bool {
        self.said().is_none() && (self.items_waiting().await > 0)
    }

    /// What went on in the background of another process, and ended with it.
    pub(crate) fn lost(&self) -> Vec<LostRun> {
        let (mut lost, mut all) = (Vec::new(), self.session.events());
        while let Some(event) = all.now() {
            match event.kind {
                SessionEvent::BackgroundLost(one) => lost.push(one),
                // It is reported before a turn begins.
                SessionEvent::TurnStarted { .. } => break,
                _ => {}
            }
        }
        lost
    }

    /// What waits and is not delivered, and why.
    pub(crate) async fn undeliverable(&self) -> Vec<(u64, String)> {
        let items = self.items(ItemState::Waiting).await;
        items
            .iter()
            .filter_map(|item| Some((item.number, decode_row::<String>(item).err()?.to_string())))
            .collect()
    }

    /// Whether it has no first turn, which gives a session its title, and no item of one.
    pub(crate) async fn never_began(&self) -> bool {
        let is_untitled = self.store.open(&self.id).await.is_ok_and(|row| row.title.is_empty());
        is_untitled && self.store.inbox(&self.id).await.is_ok_and(|items| items.is_empty())
    }

    /// Waits for a turn, or for what says that none comes.
    pub(crate) async fn next(&mut self) -> anyhow::Result<NextTurn> {
        match &self.wait {
            Wait::Said(ticket) => {
                self.number = ticket.recorded().await;
                if let (None, Some(ItemOutcome::Returned(why))) = (self.number, ticket.fate_now()) {
                    anyhow::bail!("the prompt was not taken: {why}");
                }
            }
            Wait::Late(text) => {
                self.session.done().await;
                let push = encode_item(text, Policy::Enqueue, None, INBOX)?;
                if let Pushed::Accepted(number) = self.store.push(&self.id, push).await? {
                    self.number = Some(number);
                }
            }
            Wait::Resume => {
                self.wait = Wait::Left;
                // Always requested: a decision made meanwhile resumes a turn that waits for it, but not one
                // that was cut before it could wait.
                if !self.session.resume().await
                    && let Some(none) = self.none().await
                {
                    return Ok(none);
                }
            }
            Wait::Left => {}
        }
        self.turn().await
    }

    /// The next step for a turn that waits for decisions. With a user present, the user decides first and the
    /// turn is next, as it is after a decision made meanwhile. Otherwise nothing comes before the decision.
    async fn held_up(&self) -> Option<NextTurn> {
        if self.session.resume().await || self.session.current_turn().is_some() {
            return None;
        }
        let open = self.open_questions().await;
        (open > 0).then_some(NextTurn::Undecided(open))
    }

    async fn turn(&mut self) -> anyhow::Result<NextTurn> {
        while let Some(event) = self.events.next().await {
            match event.kind {
                SessionEvent::TurnStarted { turn, items, run, .. } => {
                    let is_own = self.said().is_none_or(|said| items.contains(&said));
                    let turn = Turn { number: turn.number(), run };
                    return Ok(if is_own { NextTurn::Own(turn) } else { NextTurn::Other(turn) });
                }
                SessionEvent::Blocked { item, .. } if self.said().is_none_or(|said| said == item) => {
                    if let Some(undecided) = self.held_up().await {
                        return Ok(undecided);
                    }
                }
                SessionEvent::ItemSettled { item, fate } if self.said() == Some(item) => match fate {
                    ItemOutcome::Withdrawn => return Ok(NextTurn::TakenBack),
                    ItemOutcome::Unhandled => break,
                    ItemOutcome::Returned(why) => anyhow::bail!("the prompt was not taken: {why}"),
                    _ => {}
                },
                SessionEvent::ItemSettled { fate: ItemOutcome::Withdrawn, .. }
                    if self.said().is_none() && self.items_waiting().await == 0 =>
                {
                    return Ok(NextTurn::Nothing);
                }
                _ => {}
            }
        }
        let exit = self.session.done().await;
        match exit.reason() {
            ExitReason::Failed(error) => anyhow::bail!("the session failed: {}", error.message),
            ExitReason::Stopped | ExitReason::Idle => Ok(NextTurn::Stopped(exit.cause().map(str::to_owned))),
        }
    }

    /// Why no turn comes, if none does: nothing could be taken up.
    async fn none(&self) -> Option<NextTurn> {
        let open = self.open_questions().await;
        // A taken item has a turn, whose start may not be reported yet.
        let (waiting, taken) = (self.items_waiting().await, self.items(ItemState::Taken).await.len());
        let (mut has_begun, mut stopped) = (false, None);
        let mut all = self.session.events();
        while let Some(event) = all.now() {
            match event.kind {
                SessionEvent::TurnStarted { .. } => has_begun = true,
                SessionEvent::StopRequested { cause, once_idle_for: None } => stopped = Some(cause),
                _ => {}
            }
        }
        match (has_begun, stopped, open) {
            (true, ..) => None,
            (false, Some(cause), _) => Some(NextTurn::Stopped(cause)),
            (false, None, 1..) => Some(NextTurn::Undecided(open)),
            (false, None, 0) => (waiting + taken == 0).then_some(NextTurn::Nothing),
        }
    }

    /// How many of its questions can still be answered.
    async fn open_questions(&self) -> usize {
        let rows = self.store.approvals(&self.id).await.unwrap_or_default();
        rows.iter().filter(|row| is_open(row)).count()
    }

    async fn items(&self, state: ItemState) -> Vec<InboxRow> {
        let mut items = self.store.inbox(&self.id).await.unwrap_or_default();
        items.retain(|item| item.state == state);
        items
    }

    /// How many items wait for a turn that this release can read.
    async fn items_waiting(&self) -> usize {
        let waiting = self.items(ItemState::Waiting).await;
        waiting.iter().filter(|item| decode_row::<String>(item).is_ok()).count()
    }
}
