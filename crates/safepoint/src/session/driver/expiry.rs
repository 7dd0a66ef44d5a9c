//! A turn that waits for decisions: wakes when a question expires, and reports the items that it blocks.
//!
//! **Invariants**: at most one wake-up is set; none without a suspended turn.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{Driver, Input, Item, ItemId, SessionEvent, TurnId};
use crate::{
    contract::store::{ApprovalState, Error},
    run::outcome::Outcome,
    session::machine::Moment,
};

/// How often the wall clock is checked while a question is open: the clock may be set, and the machine may
/// have slept.
const LOOK: Duration = Duration::from_secs(60);

/// Questions expire by the wall clock, which other processes share; the task's own clock only says when to
/// check it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overdue {
    /// When the first open question expires.
    at: Timestamp,
    pub(super) look: Instant,
}

impl Overdue {
    fn new(at: Timestamp) -> Self {
        let left = Duration::try_from(at.duration_since(Timestamp::now()).max(SignedDuration::ZERO));
        // Never before the expiry, despite what the clocks round away.
        let left = left.unwrap_or_default().min(LOOK) + Duration::from_millis(1);
        Self { at, look: Instant::now() + left }
    }
}

impl<T: Item> Driver<T> {
    /// When the owner must wake without mail.
    pub(super) fn wake(&self) -> Option<Instant> {
        let machine =
            self.machine.deadline().map(|Moment(micros)| self.queue.began + Duration::from_micros(micros));
        match (machine, self.approvals.overdue) {
            (Some(machine), Some(overdue)) => Some(machine.min(overdue.look)),
            (machine, overdue) => machine.or(overdue.map(|overdue| overdue.look)),
        }
    }

    /// Time has passed, and a question may have expired. If so, the turn resumes and its model learns of the
    /// expiry (S8.5).
    pub(super) async fn pass_time(&mut self) {
        let Some(overdue) = self.approvals.overdue.filter(|overdue| overdue.look <= Instant::now()) else {
            return self.step(Input::Tick).await;
        };
        self.approvals.overdue = None;
        if !self.machine.is_suspended() || self.is_foreign() {
            return self.step(Input::Tick).await;
        }
        if Timestamp::now() < overdue.at {
            self.approvals.overdue = Some(Overdue::new(overdue.at));
            return self.step(Input::Tick).await;
        }
        // No decision goes with it: overdue questions expire when the run continues, and the others stay
        // open.
        self.step(Input::Decided).await;
    }

    /// Whether a question of the suspended turn has expired.
    pub(super) fn is_overdue(&self) -> bool {
        self.approvals.overdue.is_some_and(|overdue| overdue.at <= Timestamp::now())
    }

    /// Watches the questions of a turn that was just suspended.
    pub(super) fn watch_questions(&mut self, outcome: Option<&Outcome>) {
        self.approvals.overdue = match outcome {
            Some(Outcome::Suspended(waiting)) => {
                waiting.approvals().iter().map(|asked| asked.expires_at).min().map(Overdue::new)
            }
            _ => None,
        };
    }

    /// Watches the questions of a turn that another owner left suspended; only the store knows them.
    pub(in crate::session) async fn watch_recovered(&mut self) -> Result<(), Error> {
        let Some(journal) = self.recorder.journal.clone().filter(|_| self.machine.is_suspended()) else {
            return Ok(());
        };
        let rows = journal.store().approvals(journal.session()).await?;
        let open = rows.iter().filter(|row| matches!(row.state, ApprovalState::Open));
        self.approvals.overdue = open.map(|row| row.asked.expires).min().map(Overdue::new);
        Ok(())
    }

    /// Reports every queued item as blocked by a decision (S8.1).
    pub(super) fn tell_all_blocked(&mut self, turn: TurnId) {
        for item in self.machine.waiting().iter().copied().collect::<Vec<_>>() {
            self.tell_blocked(item, turn);
        }
    }

    /// Reports an item that arrived while the turn was suspended.
    pub(super) fn tell_if_blocked(&mut self, item: ItemId) {
        if self.machine.is_suspended()
            && let Some(turn) = self.machine.left()
            && self.machine.is_waiting(item)
        {
            self.tell_blocked(item, turn);
        }
    }

    pub(super) fn tell_blocked(&mut self, item: ItemId, turn: TurnId) {
        let Some(held) = self.items.held.get(&item) else { return };
        held.slip.behind(Some(turn));
        self.items.blocked.push(item);
        self.show(SessionEvent::Blocked { item, turn });
    }

    /// The turn continues, or is over: nothing waits for its decision any more.
    pub(super) fn tell_unblocked(&mut self) {
        self.approvals.overdue = None;
        for item in std::mem::take(&mut self.items.blocked) {
            if let Some(held) = self.items.held.get(&item) {
                held.slip.behind(None);
            }
        }
    }
}
