//! Background runs that outlive the turn that began them, reached through the turn's run while they are alive
//! (S9.1).
//!
//! **Invariants**: the machine learns that background runs are alive before it learns that the turn ended,
//! and learns that none is left only once that is true.

use std::collections::HashSet;

use tokio::sync::oneshot;

use super::{Driver, Input, Item, RunHandle, TurnId};
use crate::{
    contract::store::ApprovalState,
    session::journal::{Journal, in_time},
    sync,
    value::{approval::ApprovalRequest, ids::ApprovalId},
};

impl<T: Item> Driver<T> {
    /// Called when the turn has ended; what it began in the background may still run.
    pub(super) async fn note_background(&mut self, turn: TurnId) {
        let aside = self.running(turn).filter(|run| run.has_background_runs()).cloned();
        if let Some(run) = aside {
            self.turns.background.push(run);
            self.step(Input::Aside { is_alive: true }).await;
        }
    }

    pub(super) async fn background_over(&mut self) {
        if self.turns.background.is_empty() {
            return;
        }
        self.turns.background.retain(RunHandle::has_background_runs);
        if self.turns.background.is_empty() {
            self.step(Input::Aside { is_alive: false }).await;
        }
    }

    /// All open questions, oldest first: those of the current or suspended turn, and those of background
    /// runs.
    pub(super) async fn questions(&mut self, reply: oneshot::Sender<Vec<ApprovalRequest>>) {
        let suspended =
            self.turns.left.as_ref().filter(|_| self.machine.is_suspended()).map(|(work, _)| work);
        let runs = self.turns.current.iter().chain(suspended).filter_map(|work| work.handle.as_ref());
        let mut open: Vec<ApprovalRequest> =
            runs.chain(&self.turns.background).flat_map(RunHandle::questions).collect();
        let recovered = suspended.is_some_and(|work| work.handle.is_none());
        if let Some(journal) = self.recorder.journal.clone().filter(|_| recovered) {
            open.extend(stored(&journal, &self.approvals.open).await);
        }
        open.retain(|asked| !self.approvals.decisions.iter().any(|(decided, _)| *decided == asked.id));
        open.sort_by_key(|asked| asked.asked_at);
        open.dedup_by(|one, other| one.id == other.id);
        sync::reply(reply, open);
    }
}

/// Questions of a turn that another owner left suspended; only the store knows them.
async fn stored(journal: &Journal, known: &HashSet<ApprovalId>) -> Vec<ApprovalRequest> {
    let rows = in_time(journal.store().approvals(journal.session())).await.unwrap_or_default();
    let open = rows.iter().filter(|row| row.state == ApprovalState::Open && known.contains(&row.asked.id));
    open.filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok()).collect()
}
