//! One session of the store in memory, and the requests on it.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use crate::value::ids::{ApprovalId, NodeId, SessionId};

use super::super::{
    ApprovalRow, ApprovalState, ApprovalsToWithdraw, Chain, ChainCheck, ChainReader, Changes, DecisionResult,
    DecisionUse, ItemState, LeaseHolder, NewDecision, NewItem, NewSession, Pushed, Record, SessionRow,
    StopIntent, StopRow, Tenure, Withdrawn,
};

use super::items::ItemRows;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) records: Vec<(Record, Chain)>,
    pub(super) chain: Chain,
    pub(super) epoch: u64,
    pub(super) held: Option<Holding>,
    pub(super) tenures: Vec<Tenure>,
    pub(super) pool: String,
    pub(super) priority: i16,
    /// When it wants an owner, if it does.
    pub(super) due: Option<Timestamp>,
    /// When it was last named as due.
    pub(super) named: Option<Timestamp>,
    /// Owners that died since it was at rest.
    pub(super) tries: u16,
    pub(super) is_at_rest: bool,
    pub(super) parked: Option<String>,
    pub(super) items: ItemRows,
    /// Copied only by an append that changes it: a refused append restores the kept copy.
    pub(super) side: Arc<Side>,
}

/// Who holds a session.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) node: NodeId,
    pub(super) since: Timestamp,
}

/// Everything except the journal and the items.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    pub(super) label: String,
    pub(super) title: String,
    pub(super) setup: String,
    pub(super) is_inbox_closed: bool,
    pub(super) inbox_changes: u64,
    pub(super) stops: Vec<StopRow>,
    pub(super) approvals: Vec<ApprovalRow>,
    /// Where the open ones stand among them.
    pub(super) open: BTreeSet<usize>,
    pub(super) decisions: u64,
}

impl Side {
    /// Where the open ones stand among these.
    pub(super) fn open_of(approvals: &[ApprovalRow]) -> BTreeSet<usize> {
        let open = approvals.iter().enumerate().filter(|(_, row)| row.state == ApprovalState::Open);
        open.map(|(place, _)| place).collect()
    }

    /// The approvals that are open, oldest first.
    pub(super) fn still_open(&self) -> impl Iterator<Item = &ApprovalRow> {
        self.open.iter().filter_map(|place| self.approvals.get(*place))
    }

    /// Changes an approval. One that is open no more is not among the open ones.
    pub(super) fn change<T>(
        &mut self,
        id: &ApprovalId,
        change: impl FnOnce(&mut ApprovalRow) -> T,
    ) -> Option<T> {
        let place = self.approvals.iter().position(|row| row.asked.id == *id)?;
        let row = self.approvals.get_mut(place)?;
        let changed = change(row);
        if row.state != ApprovalState::Open {
            self.open.remove(&place);
        }
        Some(changed)
    }
}

impl Session {
    pub(super) fn new(new: &NewSession, now: Timestamp) -> Self {
        let NewSession { label, title, setup, .. } = new.clone();
        let side = Side { label, title, setup, ..Side::default() };
        Self {
            created: now,
            updated: now,
            records: Vec::new(),
            chain: Chain::of(&new.id),
            epoch: 0,
            held: None,
            tenures: Vec::new(),
            pool: new.pool.clone(),
            priority: new.priority,
            due: None,
            named: None,
            tries: 0,
            is_at_rest: true,
            parked: None,
            items: ItemRows::default(),
            side: Arc::new(side),
        }
    }

    pub(super) fn row(&self, id: &SessionId, holder: Option<LeaseHolder>) -> SessionRow {
        SessionRow {
            id: id.clone(),
            created: self.created,
            updated: self.updated,
            label: self.side.label.clone(),
            title: self.side.title.clone(),
            setup: self.side.setup.clone(),
            head: self.records.len() as u64,
            chain: self.chain,
            epoch: self.epoch,
            holder,
        }
    }

    /// Whether an item waits in it, or an approval is open or waits to be used.
    pub(super) fn waits(&self) -> bool {
        self.items.waiting() > 0 || self.side.approvals.iter().any(|row| row.state.waits())
    }

    /// How many of its owners will have died if this one has.
    pub(super) fn tries_after_death(&self) -> u16 {
        self.tries.saturating_add(u16::from(!self.is_at_rest))
    }

    pub(super) fn check(&self, id: &SessionId) -> ChainCheck {
        let mut walk = ChainReader::from(0, Some(Chain::of(id)));
        for (record, chain) in &self.records {
            if let Err(damage) = walk.step(record.clone(), Some(*chain)) {
                return ChainCheck::Damaged(damage);
            }
        }
        walk.end(self.records.len() as u64, self.chain)
    }

    fn side(&mut self) -> &mut Side {
        Arc::make_mut(&mut self.side)
    }

    /// The result of a push that changes nothing.
    fn known(&self, push: &NewItem) -> Option<Pushed> {
        if let Some(known) = self.items.known(push) {
            return Some(known);
        }
        if self.side.is_inbox_closed {
            return Some(Pushed::Closed);
        }
        (self.items.waiting() >= push.capacity).then_some(Pushed::Full)
    }

    /// Also whether it changed anything; so do the requests below.
    pub(super) fn push(&mut self, push: NewItem, at: Timestamp) -> (Pushed, bool) {
        if let Some(known) = self.known(&push) {
            return (known, false);
        }
        let number = self.items.push(push, at);
        self.side().inbox_changes += 1;
        (Pushed::Accepted(number), true)
    }

    pub(super) fn withdraw(&mut self, number: u64) -> (Withdrawn, bool) {
        let Some(item) = self.items.get(number).cloned() else {
            return (Withdrawn::Unknown, false);
        };
        if self.items.shift(number, &[ItemState::Waiting], ItemState::Removed).is_err() {
            return (Withdrawn::Taken, false);
        }
        self.side().inbox_changes += 1;
        (Withdrawn::Item(item), true)
    }

    pub(super) fn ask_stop(&mut self, stop: StopIntent, at: Timestamp) -> (u64, bool) {
        let side = self.side();
        let number = side.stops.len() as u64 + 1;
        side.stops.push(StopRow { number, at, seen: false, bytes: stop.bytes });
        let is_meant = |row: &ApprovalRow| match &stop.approvals {
            ApprovalsToWithdraw::Stay => false,
            ApprovalsToWithdraw::Withdrawn => true,
            ApprovalsToWithdraw::Only(these) => these.contains(&row.asked.id),
        };
        let meant: Vec<ApprovalId> =
            side.still_open().filter(|row| is_meant(row)).map(|row| row.asked.id.clone()).collect();
        for id in &meant {
            side.change(id, |row| row.state = ApprovalState::Withdrawn);
        }
        side.decisions += meant.len() as u64;
        (number, true)
    }

    pub(super) fn stops(&self, after: u64) -> Vec<StopRow> {
        self.side.stops.iter().filter(|stop| stop.number > after).cloned().collect()
    }

    pub(super) fn approval(&self, id: &ApprovalId) -> Option<&ApprovalRow> {
        self.side.approvals.iter().find(|row| row.asked.id == *id)
    }

    pub(super) fn decide(&mut self, decision: NewDecision, at: Timestamp) -> (DecisionResult, bool) {
        let side = self.side();
        let id = decision.id.clone();
        let judged = side.change(&id, |row| {
            let decided = row.judge(&decision, at);
            if decided == DecisionResult::Taken {
                let NewDecision { principal, bytes, .. } = decision;
                row.state = ApprovalState::Decided { principal, at, bytes, used: DecisionUse::Waiting };
            }
            decided
        });
        let decided = judged.unwrap_or(DecisionResult::Unknown);
        let is_taken = decided == DecisionResult::Taken;
        side.decisions += u64::from(is_taken);
        (decided, is_taken)
    }

    pub(super) fn notice(&self) -> Changes {
        Changes {
            items: self.side.inbox_changes,
            stops: self.side.stops.len() as u64,
            decisions: self.side.decisions,
            epoch: self.epoch,
        }
    }
}
