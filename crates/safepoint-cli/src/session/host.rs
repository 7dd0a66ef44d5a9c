//! A session that takes items from this process and from others. It records who pushed each item, so that
//! every list can show it.

use std::{collections::HashMap, sync::Mutex};

use safepoint::{
    SessionHandle,
    ids::{ItemId, SessionId},
    session::{ItemOutcome, Policy, Push, PushError, Ticket},
};

use crate::{
    render::chat::queue::{Origin, PushKind, Pushed},
    sync::lock,
};

/// The session of this process.
pub(crate) struct Host {
    pub(crate) session: SessionHandle<String>,
    pub(crate) id: SessionId,
    /// What this process pushed. Held across a push, which blocks on nothing: the session's locks are taken
    /// under it, and the session never calls back here. Nothing is awaited under it.
    pushed: Mutex<HashMap<ItemId, (Pushed, Ticket<String>)>>,
    /// What others put into the store.
    /// Held for one entry or one look-up, and never together with `pushed`.
    found: Mutex<HashMap<ItemId, Pushed>>,
}

impl Host {
    pub(crate) fn new(session: SessionHandle<String>, id: SessionId) -> Self {
        Self { session, id, pushed: Mutex::default(), found: Mutex::default() }
    }

    /// Pushes an item, and records its sender.
    ///
    /// # Errors
    /// [`PushError`], with the text.
    pub(crate) fn push(
        &self,
        text: String,
        policy: Policy,
        client_id: Option<String>,
        origin: Origin,
    ) -> Result<Ticket<String>, PushError<String>> {
        let how = match policy {
            Policy::Steer(..) | Policy::SteerTurn(..) => PushKind::Steer,
            Policy::Preempt(_) | Policy::Rollback => PushKind::Preempt,
            _ => PushKind::Queue,
        };
        let mut push = Push::new(text.clone()).policy(policy);
        if let Some(id) = client_id {
            push = push.id(id);
        }
        // Under the lock: a caller that sees the acceptance finds the item here.
        let mut pushed = lock(&self.pushed);
        let ticket = self.session.push(push)?;
        pushed.entry(ticket.id()).or_insert_with(|| (Pushed { text, how, origin }, ticket.clone()));
        Ok(ticket)
    }

    /// Records a waiting item that was not pushed through this host: into the store by another process, or
    /// before the session was opened.
    pub(crate) fn found(&self, id: ItemId, item: Pushed) {
        lock(&self.found).insert(id, item);
    }

    pub(crate) fn pushed(&self, id: ItemId) -> Option<Pushed> {
        let pushed = lock(&self.pushed).get(&id).map(|(item, _)| item.clone());
        pushed.or_else(|| lock(&self.found).get(&id).cloned())
    }

    /// What no turn has yet, in order.
    pub(crate) fn waiting(&self) -> Vec<(Ticket<String>, String)> {
        let taken = self.session.current_turn().map(|turn| turn.items).unwrap_or_default();
        let waits = |id: &ItemId, ticket: &Ticket<String>| ticket.fate_now().is_none() && !taken.contains(id);
        let pushed = lock(&self.pushed);
        let mut waiting: Vec<_> = pushed
            .iter()
            .filter(|(id, (_, ticket))| waits(id, ticket))
            .map(|(_, (item, ticket))| (ticket.clone(), item.text.clone()))
            .collect();
        waiting.sort_by_key(|(ticket, _)| ticket.id());
        waiting
    }

    /// The items of this process that no turn has, in order.
    pub(crate) fn waiting_here(&self) -> Vec<ItemId> {
        let mut here: Vec<ItemId> = self.waiting().into_iter().map(|(ticket, _)| ticket.id()).collect();
        here.retain(|id| self.pushed(*id).is_some_and(|item| item.origin == Origin::Here));
        here
    }

    /// The withdrawn items.
    pub(crate) fn withdrawn(&self, id: ItemId) -> Option<String> {
        let pushed = lock(&self.pushed);
        let (item, ticket) = pushed.get(&id)?;
        (ticket.fate_now() == Some(ItemOutcome::Withdrawn)).then(|| item.text.clone())
    }
}
