//! What the driver records before it acts: the beginning and end of a turn, and where its items are.
//!
//! **Invariants**: no turn starts unrecorded; after a failed write nothing more is written.

use std::{collections::HashSet, sync::Arc};

use safepoint_scope::Code;

use super::{
    Action, ApprovalId, Driver, ErrorReport, Input, Item, ItemId, ItemOutcome, Outcome, Request, StoppedTurn,
    TurnId, resume::started, store_report,
};
use crate::{
    contract::store::{self, ApprovalClose, ApprovalState, Durability, Write},
    run::outcome::Persisted,
    session::{
        journal::{Journal, JournalLine, in_time},
        label,
        machine::StartFrom,
    },
};

/// The session's journal, and what the driver has written through it.
pub(super) struct Recorder {
    /// `None`: nothing is stored.
    pub(super) journal: Option<Arc<Journal>>,
    pub(super) persisted: Persisted,
    /// Items that are taken in the store.
    pub(super) taken: HashSet<ItemId>,
    /// Numbers of items that another process withdrew.
    pub(super) gone: HashSet<u64>,
    /// The turn that is recorded as given up.
    pub(super) given_up: Option<TurnId>,
}

impl Default for Recorder {
    /// A recorder without a journal.
    fn default() -> Self {
        Self {
            journal: None,
            persisted: Persisted::Yes,
            taken: HashSet::new(),
            gone: HashSet::new(),
            given_up: None,
        }
    }
}

impl Recorder {
    /// Gives the session a title. One that is not recorded changes nothing else.
    pub(super) async fn rename(&self, title: &str) -> Result<(), store::Error> {
        match &self.journal {
            Some(journal) if self.persisted == Persisted::Yes => journal.rename(title).await,
            Some(_) | None => Err(store::Error::NotStored),
        }
    }
}

impl<T: Item> Driver<T> {
    /// Records what these actions announce. An action that could not be recorded does not happen: the turn
    /// does not begin, and the session ends. Returns for each action the position of its record in the journal; nothing
    /// if none is recorded.
    pub(super) async fn record(&mut self, actions: &mut Vec<Action>, request: &Request) -> Vec<Option<u64>> {
        let Some(journal) = self.recorder.journal.clone() else { return Vec::new() };
        if self.recorder.persisted == Persisted::Yes {
            match self.append(&journal, actions, request).await {
                Ok(positions) => return positions,
                Err(error) => self.store_failed(&error, actions),
            }
        }
        Vec::new()
    }

    async fn append(
        &mut self,
        journal: &Journal,
        actions: &mut Vec<Action>,
        request: &Request,
    ) -> Result<Vec<Option<u64>>, store::Error> {
        let questions = self.questions_of_the_left(journal, actions).await?;
        loop {
            let unwritten =
                |error: serde_json::Error| store::Error::Failed(store::Cause::new(error.to_string()));
            let (writes, offsets) = self.writes(actions, request).map_err(unwritten)?;
            if writes.is_empty() {
                return Ok(Vec::new());
            }
            let writes = writes.into_iter().chain(questions.iter().cloned()).collect();
            match journal.append(writes, Durability::Recorded).await {
                Ok(first) => {
                    self.note_taken(actions);
                    return Ok(offsets.into_iter().map(|offset| Some(first + offset?)).collect());
                }
                // Another process withdrew the item while the turn was planned: it is planned again without
                // the item.
                Err(store::Error::ItemElsewhere(number)) if self.withdraw_from_plan(number, actions) => {}
                Err(store::Error::ItemElsewhere(number)) if self.recorder.gone.insert(number) => {
                    self.mark_withdrawn(number, actions);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A new turn closes the one that was left. Open questions of the left turn are withdrawn with it.
    async fn questions_of_the_left(
        &mut self,
        journal: &Journal,
        actions: &[Action],
    ) -> Result<Vec<Write>, store::Error> {
        let begins =
            actions.iter().any(|action| matches!(action, Action::Start { from: StartFrom::Plan, .. }));
        let Some((left, _)) = self.turns.left.as_ref().filter(|_| begins) else { return Ok(Vec::new()) };
        let rows = in_time(journal.store().approvals(journal.session())).await?;
        let open = rows.into_iter().filter(|row| {
            row.state == ApprovalState::Open
                && row.asked.run == left.run
                && self.background_run_that_asked(&row.asked.id).is_none()
        });
        Ok(open.map(|row| Write::CloseApproval(row.asked.id, ApprovalClose::Withdrawn)).collect())
    }

    /// These actions as the writes of one transaction, and for each action how many records are before its own.
    fn writes(
        &self,
        actions: &[Action],
        request: &Request,
    ) -> Result<(Vec<Write>, Vec<Option<u64>>), serde_json::Error> {
        let (mut writes, mut offsets, mut records) = (Vec::new(), Vec::with_capacity(actions.len()), 0);
        for action in actions {
            let (from, before) = (writes.len(), records);
            self.write_action(action, request, &mut writes)?;
            records += writes[from..].iter().filter(|write| matches!(write, Write::Record(_))).count() as u64;
            offsets.push((records > before).then_some(before));
        }
        Ok((writes, offsets))
    }

    fn write_action(
        &self,
        action: &Action,
        request: &Request,
        writes: &mut Vec<Write>,
    ) -> Result<(), serde_json::Error> {
        let number = |item: &ItemId| {
            let number = self.recorder.journal.as_ref().and_then(|journal| journal.number_of(*item));
            number.filter(|number| !self.recorder.gone.contains(number))
        };
        match action {
            Action::Start { turn, from: StartFrom::Plan, .. } => {
                let left = self.turns.left.iter().flat_map(|(work, _)| &work.items);
                writes.extend(
                    left.filter(|item| self.recorder.taken.contains(item))
                        .filter_map(number)
                        .map(Write::RemoveItem),
                );
                let items: Vec<u64> = self.machine.items().iter().filter_map(number).collect();
                writes.push(JournalLine::planned(*turn, items.clone()).write()?);
                writes.extend(items.into_iter().map(Write::TakeItem));
                writes.extend([Write::Label(label::RUNNING.into()), Write::AtWork]);
                writes.extend(self.title(*turn, request));
            }
            Action::Start { .. } => writes.extend([Write::Label(label::RUNNING.into()), Write::AtWork]),
            Action::Forget(turn) => writes.push(JournalLine::forgotten(*turn).write()?),
            Action::TurnEnded(turn, fate) => {
                // A stop may still end a turn that waits for a decision.
                if !matches!(fate, ItemOutcome::Suspended(_)) {
                    writes.extend(self.stops.of_turn(*turn));
                }
                writes.push(JournalLine::ended(*turn, *fate, self.holds(*fate)).write()?);
                writes.extend([Write::Label(label::of(*fate).into()), Write::AtRest]);
                if !matches!(fate, ItemOutcome::Suspended(_)) && self.gives_up() == Some(*turn) {
                    writes.extend(self.give_up(*turn)?);
                }
            }
            Action::End(_) => {
                if let Some(turn) = self.gives_up() {
                    writes.extend(self.give_up(turn)?);
                }
            }
            Action::Requeued(item) if self.recorder.taken.contains(item) => {
                writes.extend(number(item).map(Write::PutBackItem));
            }
            Action::Settle(item, fate) if is_done(*fate) => {
                writes.extend(number(item).map(Write::RemoveItem))
            }
            _ => {}
        }
        Ok(())
    }

    /// The turn that ended early and will not be resumed, if the session's stop says so (S6.7).
    fn gives_up(&self) -> Option<TurnId> {
        let is_left = |turn: &TurnId| self.recorder.given_up != Some(*turn);
        self.machine.left().filter(|_| self.end.stopped_turn == StoppedTurn::Abandoned).filter(is_left)
    }

    /// No other owner resumes the turn, and its questions are closed.
    fn give_up(&self, turn: TurnId) -> Result<Vec<Write>, serde_json::Error> {
        let open: Vec<ApprovalId> = match self.turns.left_outcome() {
            Some(Some(Outcome::Suspended(waiting))) => {
                waiting.approvals().iter().map(|asked| asked.id.clone()).collect()
            }
            Some(None) => self.approvals.open.iter().cloned().collect(),
            Some(Some(_)) | None => Vec::new(),
        };
        let closed = open.into_iter().map(|id| Write::CloseApproval(id, ApprovalClose::Withdrawn));
        let writes = [JournalLine::given_up(turn).write()?, Write::Label(label::IDLE.into())];
        Ok(writes.into_iter().chain(closed).collect())
    }

    /// The session's title, once there is text to derive it from.
    fn title(&self, turn: TurnId, request: &Request) -> Option<Write> {
        let Request::Plan(plan) = request else { return None };
        let input = plan.input.first()?;
        self.recorder.journal.as_ref()?.title(turn, input)
    }

    /// What a run could not record is not recorded around it either. This owner writes nothing more, and the
    /// next one continues from what is stored (S3.4).
    pub(super) fn note_unrecorded(&mut self, outcome: &Outcome) -> Option<ErrorReport> {
        let persisted = outcome.persisted();
        if self.recorder.journal.is_none() || *persisted == Persisted::Yes {
            return None;
        }
        self.recorder.persisted = persisted.clone();
        let why = match persisted {
            Persisted::No(why) => why.as_str(),
            _ => "it is unknown whether the end of the turn was recorded",
        };
        Some(ErrorReport::new("store", why, None))
    }

    /// Writes nothing more, and ends everything that runs (S7.14).
    pub(super) async fn lease_lost(&mut self, error: ErrorReport) {
        if self.recorder.persisted == Persisted::Yes {
            self.recorder.persisted = Persisted::No(error.message.clone());
        }
        self.end.turns_end_by = Some(Code::LEASE);
        self.fail_unless_stopped(error);
        self.step(Input::Broke).await;
    }

    /// A session that was asked to stop has stopped, whatever became of its records; any other has failed
    /// (S2.13).
    pub(super) fn fail_unless_stopped(&mut self, error: ErrorReport) {
        if !self.machine.is_stopping() {
            self.fail(error);
        }
    }

    /// Up to which item of the inbox what waits behind a turn that ended early waits for a later item.
    fn holds(&self, fate: ItemOutcome) -> Option<u64> {
        let is_early = fate.is_open() && !matches!(fate, ItemOutcome::Suspended(_));
        let journal = self.recorder.journal.as_ref().filter(|_| is_early)?;
        Some(self.machine.barrier().map_or(0, |barrier| journal.highest_before(barrier)))
    }

    fn note_taken(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Start { from: StartFrom::Plan, .. } => {
                    self.recorder.taken.extend(self.machine.items())
                }
                Action::TurnEnded(turn, fate) if !matches!(fate, ItemOutcome::Suspended(_)) => {
                    self.stops.turn_noted(*turn);
                    self.recorder.given_up = self.gives_up().or(self.recorder.given_up);
                }
                Action::End(_) => self.recorder.given_up = self.gives_up().or(self.recorder.given_up),
                Action::Requeued(item) => {
                    self.recorder.taken.remove(item);
                }
                Action::Settle(item, fate) if is_done(*fate) => {
                    self.recorder.taken.remove(item);
                }
                _ => {}
            }
        }
    }

    /// Removes an item that is no longer in the store's inbox from the plan; false if it is not about to be
    /// taken.
    fn withdraw_from_plan(&mut self, number: u64, actions: &mut Vec<Action>) -> bool {
        let Some(item) = self.recorder.journal.as_ref().and_then(|journal| journal.item_of(number)) else {
            return false;
        };
        let Some((turn, _)) = started(actions) else { return false };
        self.recorder.gone.insert(number);
        // The machine may plan at once; the withdrawal drops that plan, and a new one is made.
        self.take_start_back(turn, actions);
        self.machine.step(self.now(), Input::Withdraw(item), actions);
        true
    }

    /// The item was withdrawn there a moment before it would have been returned here: the caller there has
    /// it, and no other.
    fn mark_withdrawn(&self, number: u64, actions: &mut [Action]) {
        let gone = self.recorder.journal.as_ref().and_then(|journal| journal.item_of(number));
        for action in actions {
            if let Action::Settle(item, _) = action
                && gone == Some(*item)
            {
                *action = Action::Settle(*item, ItemOutcome::Withdrawn);
            }
        }
    }

    /// The store did not accept a required record: nothing begins any more, and the session ends.
    fn store_failed(&mut self, error: &store::Error, actions: &mut Vec<Action>) {
        self.recorder.persisted =
            if error.is_uncertain() { Persisted::Unknown } else { Persisted::No(error.to_string()) };
        self.fail_unless_stopped(store_report(error));
        let begins = started(actions);
        self.machine.step(self.now(), Input::Broke, actions);
        if let Some((turn, _)) = begins {
            self.take_start_back(turn, actions);
        }
    }
}

/// Whether the item is done: no turn resumes it, and it does not wait for the next owner.
fn is_done(fate: ItemOutcome) -> bool {
    !fate.is_open() && fate != ItemOutcome::Unhandled
}
