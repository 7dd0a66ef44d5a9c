//! The inbox of one session: each request costs the same, however many items there are or were.
//!
//! **Invariants**: item number `n` is at index `n - 1`; `waiting` counts the waiting items.

use std::collections::HashMap;

use jiff::Timestamp;

use super::super::{Error, InboxRow, ItemState, NewItem, Pushed};

#[derive(Debug, Default)]
pub(super) struct ItemRows {
    rows: Vec<InboxRow>,
    /// The number of each client's id, for the session's life.
    clients: HashMap<String, u64>,
    waiting: usize,
}

/// An item before it was moved: its number, its state and what is removed of it.
pub(super) type Moved = (u64, ItemState, Option<Vec<u8>>);

impl ItemRows {
    pub(super) fn of(rows: Vec<InboxRow>) -> Self {
        let clients = rows.iter().filter_map(|row| Some((row.client_id.clone()?, row.number))).collect();
        let waiting = rows.iter().filter(|row| row.state == ItemState::Waiting).count();
        Self { rows, clients, waiting }
    }

    pub(super) fn all(&self) -> &[InboxRow] {
        &self.rows
    }

    pub(super) fn known(&self, push: &NewItem) -> Option<Pushed> {
        let number = *self.clients.get(push.client_id.as_ref()?)?;
        let is_same = self.get(number).is_some_and(|item| item.digest == push.digest);
        Some(if is_same { Pushed::Same(number) } else { Pushed::Conflict(number) })
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn push(&mut self, push: NewItem, at: Timestamp) -> u64 {
        let NewItem { client_id, digest, bytes, .. } = push;
        let number = self.rows.len() as u64 + 1;
        self.clients.extend(client_id.clone().map(|client| (client, number)));
        self.rows.push(InboxRow { number, client_id, digest, state: ItemState::Waiting, at, bytes });
        self.waiting += 1;
        number
    }

    pub(super) fn present(&self) -> Vec<InboxRow> {
        self.rows.iter().filter(|item| item.state != ItemState::Removed).cloned().collect()
    }

    pub(super) fn get(&self, number: u64) -> Option<&InboxRow> {
        self.rows.get(index(number)?)
    }

    /// Moves an item, if it is where the caller expects; returns its earlier state.
    pub(super) fn shift(&mut self, number: u64, from: &[ItemState], to: ItemState) -> Result<Moved, Error> {
        let item = index(number).and_then(|index| self.rows.get_mut(index));
        let item = item.filter(|item| from.contains(&item.state)).ok_or(Error::ItemElsewhere(number))?;
        let bytes = (to == ItemState::Removed).then(|| std::mem::take(&mut item.bytes));
        let state = std::mem::replace(&mut item.state, to);
        self.waiting -= usize::from(state == ItemState::Waiting);
        self.waiting += usize::from(to == ItemState::Waiting);
        Ok((number, state, bytes))
    }

    /// Undoes these moves.
    pub(super) fn undo(&mut self, moved: Vec<Moved>) {
        for (number, state, bytes) in moved.into_iter().rev() {
            let Some(item) = index(number).and_then(|index| self.rows.get_mut(index)) else { continue };
            self.waiting -= usize::from(item.state == ItemState::Waiting);
            self.waiting += usize::from(state == ItemState::Waiting);
            item.state = state;
            item.bytes = bytes.unwrap_or_else(|| std::mem::take(&mut item.bytes));
        }
    }
}

fn index(number: u64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}
