//! What all runs of one tree share: the owner of its background runs, the open questions, and the records of
//! earlier attempts.
//!
//! **Invariants**: the records of a run are taken once, by the attempt that resumes it; a decision is taken
//! once, by the run whose question it answers.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use safepoint_scope::Scope;
use tokio::sync::oneshot;

use super::{AllowList, Closings, DecideError, RunMessage, SharedRun};
use crate::{
    contract::log::Recorded,
    sync::{Mutex, mailbox::Mailbox},
    value::{
        approval::{ApprovalRequest, Ruled},
        event::{Fact, Feed},
        ids::{ApprovalId, Path, RunId, SessionId},
    },
};

/// A tree of runs.
pub(crate) struct RunTree {
    /// Background runs keep this scope from being quiet. Without a session it is the root run's.
    pub(crate) family: Scope,
    /// Calls that may run without a further question.
    pub(crate) always: Arc<AllowList>,
    /// How questions were closed.
    pub(crate) closings: Arc<Closings>,
    /// The session that its root run is a turn of.
    pub(crate) conversation: Option<SessionId>,
    /// Set where nothing keeps a copy of the tree from continuing elsewhere.
    of_a_copy: OnceLock<()>,
    /// In a session: what background runs show once the root's stream has ended.
    pub(crate) kept: Option<Arc<Feed>>,
    /// By whom an open question is answered. Of this and the next three locks a thread holds one at a time;
    /// the one exception is `leave_early`, which takes `left_open` under `decided`. Nothing is awaited under
    /// them.
    asked: Mutex<HashMap<ApprovalId, ApprovalRoute>>,
    /// What earlier attempts recorded. Removing is taking, so one attempt gets the records of a run.
    past: Mutex<HashMap<Path, Vec<Recorded>>>,
    /// Questions that earlier attempts of runs below asked and that no run answers for yet, by run.
    left_open: Mutex<HashMap<ApprovalId, Path>>,
    /// Decisions for runs that are about to be resumed. Removing is taking, so one run gets a decision.
    decided: Mutex<HashMap<ApprovalId, Decided>>,
}

/// An open question, and the run that answers for it.
struct ApprovalRoute {
    request: ApprovalRequest,
    mailbox: Mailbox<RunMessage>,
    path: Path,
}

/// Tells the caller whether its decision was accepted.
pub(crate) type Reply = oneshot::Sender<Result<(), DecideError>>;

/// A decision on its way to the run that asked, and the caller that waits to learn whether it was accepted,
/// if one does.
pub(crate) type Decided = (Ruled, Option<Reply>);

/// What the runs of a session share: what may run without a question, how questions were closed, and its id, if it is one.
pub(crate) type OfSession = (Arc<AllowList>, Arc<Closings>, Option<SessionId>);

impl RunTree {
    pub(super) fn new(
        family: Scope,
        (always, closings, conversation): OfSession,
        kept: Option<Arc<Feed>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            family,
            always,
            closings,
            conversation,
            of_a_copy: OnceLock::new(),
            kept,
            asked: Mutex::default(),
            past: Mutex::default(),
            left_open: Mutex::default(),
            decided: Mutex::default(),
        })
    }

    /// From now on its runs do only what a copy of it may do too (S7.19).
    pub(crate) fn set_of_a_copy(&self) {
        self.of_a_copy.get_or_init(|| ());
    }

    /// Whether nothing keeps a copy of the tree from continuing elsewhere.
    pub(crate) fn is_of_a_copy(&self) -> bool {
        self.of_a_copy.get().is_some()
    }

    /// Keeps the records of the runs below the one that is resumed.
    pub(crate) fn remember(&self, runs: HashMap<Path, Vec<Recorded>>) {
        self.left_open.lock().extend(runs.values().flat_map(|recorded| left_open(recorded)));
        *self.past.lock() = runs;
    }

    /// The records of the run at `path`; nothing if it is new.
    pub(crate) fn past_of(&self, path: &Path) -> Vec<Recorded> {
        self.past.lock().remove(path).unwrap_or_default()
    }

    /// The id of the run that was at `path` before.
    pub(super) fn run_at(&self, path: &Path) -> Option<RunId> {
        let past = self.past.lock();
        past.get(path)?.iter().find_map(|recorded| match &**recorded.fact() {
            Fact::AttemptOpened { run, .. } => Some(run.clone()),
            _ => None,
        })
    }

    /// Registers who answers for an open question: the run that asked, or its parent once that run is
    /// suspended.
    pub(crate) fn asks(&self, request: &ApprovalRequest, by: &SharedRun) {
        let asker =
            ApprovalRoute { request: request.clone(), mailbox: by.mailbox.clone(), path: by.path.clone() };
        self.asked.lock().insert(request.id.clone(), asker);
        self.left_open.lock().remove(&request.id);
    }

    /// The open questions, oldest first.
    pub(crate) fn open(&self) -> Vec<ApprovalRequest> {
        let mut open: Vec<_> = self.asked.lock().values().map(|asker| asker.request.clone()).collect();
        open.sort_by_key(|request| request.asked_at);
        open
    }

    /// Closes a question. The closing is added before the question is removed, so that a reader in between
    /// finds it closed already.
    pub(crate) fn closes(&self, id: &ApprovalId, how: DecideError) {
        self.closings.add(id, how);
        self.asked.lock().remove(id);
        self.left_open.lock().remove(id);
    }

    pub(crate) fn asker(&self, id: &ApprovalId) -> Option<Mailbox<RunMessage>> {
        self.asked.lock().get(id).map(|asker| asker.mailbox.clone())
    }

    /// Who answers for it, if that is another run than the one at `path`.
    pub(super) fn asker_beside(&self, id: &ApprovalId, path: &Path) -> Option<Mailbox<RunMessage>> {
        let asked = self.asked.lock();
        asked.get(id).filter(|asker| asker.path != *path).map(|asker| asker.mailbox.clone())
    }

    /// Whether a live run below the root waits for the answer.
    pub(crate) fn waits_below(&self, id: &ApprovalId) -> bool {
        self.asked.lock().get(id).is_some_and(|asker| !asker.path.is_root() && !asker.mailbox.is_gone())
    }

    /// Leaves a decision for the run whose question it answers, which is about to be resumed.
    pub(crate) fn leave(&self, id: ApprovalId, decided: Decided) {
        self.decided.lock().insert(id, decided);
    }

    /// The run that asked this in an earlier attempt and has yet to be resumed.
    pub(crate) fn left_open_by(&self, id: &ApprovalId) -> Option<Path> {
        self.left_open.lock().get(id).cloned()
    }

    /// Leaves a decision for a run that asked in an earlier attempt and has yet to be resumed; any other is
    /// returned.
    pub(super) fn leave_early(
        &self,
        id: &ApprovalId,
        ruled: Ruled,
        reply: Reply,
    ) -> Result<(), (Ruled, Reply)> {
        // A resuming run registers its question before it looks for a decision. So either the question is
        // seen here, or the run finds this decision.
        let mut decided = self.decided.lock();
        if self.left_open_by(id).is_none() {
            return Err((ruled, reply));
        }
        decided.insert(id.clone(), (ruled, Some(reply)));
        Ok(())
    }

    pub(crate) fn take(&self, id: &ApprovalId) -> Option<Decided> {
        self.decided.lock().remove(id)
    }

    /// The root has its outcome, so no run is resumed any more: callers whose decisions no run has taken learn that.
    pub(super) fn drop_decisions(&self) {
        let untaken = std::mem::take(&mut *self.decided.lock());
        drop(untaken);
    }
}

/// The questions in one run's records that nothing has closed, and which run asked them.
fn left_open(recorded: &[Recorded]) -> HashMap<ApprovalId, Path> {
    let mut open = HashMap::new();
    for recorded in recorded {
        match &**recorded.fact() {
            Fact::ApprovalRequested(request) => drop(open.insert(request.id.clone(), request.path.clone())),
            Fact::ApprovalResolved { id, .. } => drop(open.remove(id)),
            _ => {}
        }
    }
    open
}
