//! The rows of a session as columns: one array for each.

use std::borrow::Cow;

use jiff::Timestamp;
use safepoint::raw::store::{ApprovalState, DecisionUse, ItemState, SessionImage};

use super::super::column::{int, stored, stored_time};

/// Values of one kind of row, as columns.
pub(super) type Columns<'a> = Vec<&'a (dyn tokio_postgres::types::ToSql + Sync)>;

pub(super) struct ItemColumns<'a> {
    numbers: Vec<i64>,
    clients: Vec<Option<Cow<'a, str>>>,
    digests: Vec<Cow<'a, str>>,
    states: Vec<i16>,
    times: Vec<Timestamp>,
    bytes: Vec<&'a [u8]>,
}

impl<'a> ItemColumns<'a> {
    pub(super) fn of(image: &'a SessionImage) -> Self {
        let items = &image.items;
        let state = |state: ItemState| match state {
            ItemState::Waiting => 0,
            ItemState::Taken => 1,
            ItemState::Removed => 2,
        };
        Self {
            numbers: items.iter().map(|item| int(item.number)).collect(),
            clients: items.iter().map(|item| item.client_id.as_deref().map(stored)).collect(),
            digests: items.iter().map(|item| stored(&item.digest)).collect(),
            states: items.iter().map(|item| state(item.state)).collect(),
            times: items.iter().map(|item| stored_time(item.at)).collect(),
            bytes: items.iter().map(|item| &item.bytes[..]).collect(),
        }
    }

    pub(super) fn values(&self) -> Columns<'_> {
        vec![&self.numbers, &self.clients, &self.digests, &self.states, &self.times, &self.bytes]
    }
}

pub(super) struct StopColumns<'a> {
    numbers: Vec<i64>,
    times: Vec<Timestamp>,
    seen: Vec<bool>,
    bytes: Vec<&'a [u8]>,
}

impl<'a> StopColumns<'a> {
    pub(super) fn of(image: &'a SessionImage) -> Self {
        let stops = &image.stops;
        Self {
            numbers: stops.iter().map(|stop| int(stop.number)).collect(),
            times: stops.iter().map(|stop| stored_time(stop.at)).collect(),
            seen: stops.iter().map(|stop| stop.seen).collect(),
            bytes: stops.iter().map(|stop| &stop.bytes[..]).collect(),
        }
    }

    pub(super) fn values(&self) -> Columns<'_> {
        vec![&self.numbers, &self.times, &self.seen, &self.bytes]
    }
}

#[derive(Default)]
pub(super) struct ApprovalColumns<'a> {
    /// The id, the run, the call and the digest.
    words: [Vec<Cow<'a, str>>; 4],
    expires: Vec<Timestamp>,
    questions: Vec<&'a [u8]>,
    times: Vec<Timestamp>,
    states: Vec<i16>,
    principals: Vec<Option<Cow<'a, str>>>,
    decided: Vec<Option<Timestamp>>,
    decisions: Vec<Option<&'a [u8]>>,
}

impl<'a> ApprovalColumns<'a> {
    pub(super) fn of(image: &'a SessionImage) -> Self {
        let mut columns = Self::default();
        for row in &image.approvals {
            let asked = &row.asked;
            let words = [asked.id.as_str(), asked.run.as_str(), asked.call.as_str(), &asked.digest];
            for (column, word) in columns.words.iter_mut().zip(words) {
                column.push(stored(word));
            }
            columns.expires.push(stored_time(asked.expires));
            columns.questions.push(&asked.bytes);
            columns.times.push(stored_time(row.at));
            let (state, decision) = match &row.state {
                ApprovalState::Open => (0, None),
                ApprovalState::Decided { principal, at, bytes, used } => {
                    let state = if *used == DecisionUse::Used { 2 } else { 1 };
                    (state, Some((principal, at, bytes)))
                }
                ApprovalState::Withdrawn => (3, None),
                ApprovalState::Expired => (4, None),
            };
            columns.states.push(state);
            columns.principals.push(decision.map(|(principal, ..)| stored(principal)));
            columns.decided.push(decision.map(|(_, at, _)| stored_time(*at)));
            columns.decisions.push(decision.map(|(.., bytes)| &bytes[..]));
        }
        columns
    }

    pub(super) fn values(&self) -> Columns<'_> {
        let [ids, runs, calls, digests] = &self.words;
        vec![
            ids,
            runs,
            calls,
            digests,
            &self.expires,
            &self.questions,
            &self.times,
            &self.states,
            &self.principals,
            &self.decided,
            &self.decisions,
        ]
    }
}

pub(super) struct TenureColumns<'a> {
    epochs: Vec<i64>,
    nodes: Vec<Cow<'a, str>>,
    heads: Vec<i64>,
    times: Vec<Timestamp>,
}

impl<'a> TenureColumns<'a> {
    pub(super) fn of(image: &'a SessionImage) -> Self {
        let tenures = &image.tenures;
        Self {
            epochs: tenures.iter().map(|tenure| int(tenure.epoch)).collect(),
            nodes: tenures.iter().map(|tenure| stored(tenure.node.as_str())).collect(),
            heads: tenures.iter().map(|tenure| int(tenure.head)).collect(),
            times: tenures.iter().map(|tenure| stored_time(tenure.at)).collect(),
        }
    }

    pub(super) fn values(&self) -> Columns<'_> {
        vec![&self.epochs, &self.nodes, &self.heads, &self.times]
    }
}
