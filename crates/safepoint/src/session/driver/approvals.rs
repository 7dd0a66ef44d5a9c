//! Open questions, and decisions on them: passed to the active run, or kept for the suspended one, which then resumes.
//!
//! **Invariants**: at most one wake-up for an expiry is set; none without a suspended turn.

use std::{collections::HashSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{
    Decision, Driver, Input, Item, Outcome, Reply, Request, RequestAnswer, RunHandle, SessionMessage,
};
use crate::{
    contract::store::{self, ApprovalState},
    run::{
        outcome::Suspended,
        shared::{AllowList, Closing, Closings, DecideError},
    },
    session::journal::{Journal, in_time, looked},
    sync,
    sync::clock,
    value::{
        approval::{ApprovalKind, ApprovalRequest, Ruled},
        ids::ApprovalId,
    },
};

/// Open questions, and decisions about them.
#[derive(Default)]
pub(super) struct OpenApprovals {
    /// For the turn that was left, until it is resumed.
    pub(super) decisions: Vec<(ApprovalId, Ruled)>,
    /// Calls that may run without a further question.
    pub(super) allowed: Option<Arc<AllowList>>,
    /// How questions were closed, where no store knows it.
    pub(super) closings: Option<Arc<Closings>>,
    /// The open questions of the turn that another owner left.
    pub(super) open: HashSet<ApprovalId>,
    /// When the first open question of the suspended turn expires, and when to look at that clock.
    pub(super) overdue: Option<(Timestamp, Instant)>,
}

impl OpenApprovals {
    /// What was decided about a question of the turn that was left.
    fn decided(&self, id: &ApprovalId) -> Option<&Ruled> {
        self.decisions.iter().find(|(decided, _)| decided == id).map(|(_, ruled)| ruled)
    }
}

/// How often the wall clock is checked while a question is open: the clock may be set, and the machine may
/// have slept.
const LOOK: Duration = Duration::from_secs(60);

/// When to look at questions of which the first expires then. Questions expire by the wall clock, which other processes
/// share; the task's own clock only says when to check it.
fn look_for(expires: Timestamp) -> (Timestamp, Instant) {
    let left = Duration::try_from(expires.duration_since(clock::now()).max(SignedDuration::ZERO));
    // Never before the expiry, despite what the clocks round away.
    let left = left.unwrap_or_default().min(LOOK) + Duration::from_millis(1);
    (expires, Instant::now() + left)
}

impl<T: Item> Driver<T> {
    pub(super) async fn decide(
        &mut self,
        id: ApprovalId,
        ruled: Ruled,
        reply: Reply<Result<(), DecideError>>,
    ) {
        if let Some(journal) = self.recorder.journal.clone() {
            if let Some(unfit) = self.unfit(&id, &ruled).await {
                return sync::reply(reply, Err(unfit));
            }
            // The store accepts exactly one decision, from whichever process; afterwards the decision is
            // handled as if it came from the store.
            let taken = take(&journal, &id, &ruled).await;
            let is_taken = taken.is_ok();
            sync::reply(reply, taken);
            if is_taken {
                self.apply_decision(id, ruled.taken()).await;
            }
            return;
        }
        if let Some(closed) = self.approvals.closings.as_ref().and_then(|closings| closings.of(&id)) {
            return sync::reply(reply, Err(closed));
        }
        let Some((run, may_suspend)) = self.run_to_decide(&id) else {
            let taken = self.decide_suspended(id, ruled).await;
            return sync::reply(reply, taken);
        };
        let mailbox = self.cx.shared.mailbox.clone();
        drop(self.cx.scope.spawn("decision", async move {
            match run.decide(&id, ruled.clone()).await {
                // The run may have suspended on this very question: retried once the suspension is handled.
                Err(DecideError::RunEnded) if may_suspend => {
                    drop(run.done().await);
                    mailbox.post(SessionMessage::Decide(id, ruled, reply));
                }
                taken => sync::reply(reply, taken),
            }
        }));
    }

    /// The active run that a decision goes to, and whether it may have suspended on the question: a background run
    /// that asked, or the run of the current turn.
    fn run_to_decide(&self, id: &ApprovalId) -> Option<(RunHandle, bool)> {
        let current = || self.turns.current.as_ref()?.handle.clone();
        let background = self.background_run_that_asked(id);
        background.map(|run| (run, false)).or_else(|| Some((current()?, true)))
    }

    async fn decide_suspended(&mut self, id: ApprovalId, ruled: Ruled) -> Result<(), DecideError> {
        let left = self.turns.left_outcome().flatten();
        let is_asked = matches!(left, Some(Outcome::Suspended(waiting)) if asks(waiting, &id));
        if let Some(first) = self.approvals.decided(&id) {
            return Err(Closing::Decided(first.clone()).into());
        }
        if !is_asked {
            return Err(DecideError::Unknown);
        }
        if let Some(unfit) = self.unfit(&id, &ruled).await {
            return Err(unfit);
        }
        // The step may resume the turn; the decision goes with it if it is accepted.
        match self.step_with(Input::Decided, Request::Decide(Box::new((id, ruled)))).await {
            Some(RequestAnswer::Resuming) => Ok(()),
            Some(RequestAnswer::TooLate) => Err(DecideError::RunEnded),
            // The turn is about to end, and its question with it.
            _ => Err(DecideError::Withdrawn),
        }
    }

    /// The run of an earlier turn whose background run asked this question.
    pub(super) fn background_run_that_asked(&self, id: &ApprovalId) -> Option<RunHandle> {
        self.turns.background.iter().find(|run| run.waits_below(id)).cloned()
    }

    /// Whether the turn that ended early may have asked this question. A decision for a background run
    /// arrives twice, from the caller here and from the store, and is not about this turn.
    async fn may_be_of_the_left_turn(&mut self, id: &ApprovalId) -> bool {
        match self.turns.left_outcome() {
            Some(Some(Outcome::Suspended(waiting))) => asks(waiting, id),
            // Another owner left the turn: its open questions are known since the session was opened.
            Some(None) => self.approvals.open.contains(id),
            // A failure leaves questions open, including those of the runs below.
            Some(Some(Outcome::Failed(_))) => self.is_of_the_left_run(id).await,
            Some(Some(Outcome::Done(_) | Outcome::Stopped(_))) | None => false,
        }
    }

    async fn is_of_the_left_run(&mut self, id: &ApprovalId) -> bool {
        let (Some(journal), Some((left, _))) = (&self.recorder.journal, &self.turns.left) else {
            return false;
        };
        let row = in_time(journal.store().approval(journal.session(), id)).await;
        matches!(row, Ok(Some(row)) if row.asked.run == left.run)
    }

    /// Applies a decision that was accepted.
    pub(super) async fn apply_decision(&mut self, id: ApprovalId, ruled: Ruled) {
        if let Some((run, may_suspend)) = self.run_to_decide(&id) {
            let mailbox = self.cx.shared.mailbox.clone();
            drop(self.cx.scope.spawn("decision", async move {
                // A background run that has ended meanwhile has withdrawn its question. The run of the turn may be
                // about to suspend, and resumes with this decision once it has suspended.
                let taken = run.decide(&id, ruled.clone()).await;
                if may_suspend && taken == Err(DecideError::RunEnded) {
                    drop(run.done().await);
                    mailbox.post(SessionMessage::Decided(id, ruled));
                }
            }));
            return;
        }
        // If this process cannot resume the turn, the decision stays in the store for a process that can.
        if !self.may_be_of_the_left_turn(&id).await
            || self.lacks_agent()
            || self.approvals.decided(&id).is_some()
        {
            return;
        }
        if self.machine.is_suspended() {
            self.step_with(Input::Decided, Request::Decide(Box::new((id, ruled)))).await;
        } else {
            // The turn was cut while it waited: the decision is used when the turn is resumed.
            self.approvals.decisions.push((id, ruled));
        }
    }

    /// Why the changed arguments of a decision cannot be used, if that is known here: of a question of the turn's own run
    /// about a tool that its agent always has. What is not known here, the run finds out when it uses the decision.
    async fn unfit(&mut self, id: &ApprovalId, ruled: &Ruled) -> Option<DecideError> {
        let Decision::ApproveWith { args, .. } = &ruled.decision else { return None };
        let asked = self.open_questions().await.into_iter().find(|asked| asked.id == *id)?;
        if !asked.path.is_root() || asked.question == ApprovalKind::DuringCall || self.lacks_agent() {
            return None;
        }
        let left = self.turns.left.as_ref().map(|(work, _)| work);
        let agent = self.turns.current.as_ref().or(left)?.agent.as_ref()?;
        agent.def.tools.get(&asked.tool)?;
        agent.def.tools.fit(&asked.tool, args).err().map(DecideError::unfit)
    }

    /// Sends the open questions.
    pub(super) async fn questions(&mut self, reply: Reply<Vec<ApprovalRequest>>) {
        let open = self.open_questions().await;
        sync::reply(reply, open);
    }

    /// All open questions, oldest first: those of the current or suspended turn, and those of background
    /// runs.
    async fn open_questions(&mut self) -> Vec<ApprovalRequest> {
        let suspended =
            self.turns.left.as_ref().filter(|_| self.machine.is_suspended()).map(|(work, _)| work);
        let runs = self.turns.current.iter().chain(suspended).filter_map(|work| work.handle.as_ref());
        let mut open: Vec<ApprovalRequest> =
            runs.chain(&self.turns.background).flat_map(RunHandle::approvals).collect();
        let recovered = suspended.is_some_and(|work| work.handle.is_none());
        if let Some(journal) = self.recorder.journal.clone().filter(|_| recovered) {
            open.extend(stored(&journal, &self.approvals.open).await);
        }
        open.retain(|asked| self.approvals.decided(&asked.id).is_none());
        open.sort_by_key(|asked| asked.asked_at);
        open.dedup_by(|one, other| one.id == other.id);
        open
    }

    /// Time has passed, and a question may have expired. If so, the turn resumes and its model learns of the
    /// expiry (S8.5).
    pub(super) async fn pass_time(&mut self) {
        let now = Instant::now();
        let input = match self.approvals.overdue.take_if(|(_, look)| *look <= now) {
            Some((expires, _)) if self.machine.is_suspended() && !self.lacks_agent() => {
                if expires <= clock::now() {
                    // No decision goes with it: overdue questions expire when the run continues, and the others
                    // stay open.
                    Input::Decided
                } else {
                    self.approvals.overdue = Some(look_for(expires));
                    Input::Tick
                }
            }
            _ => Input::Tick,
        };
        self.step(input).await;
    }

    /// Whether a question of the suspended turn has expired.
    pub(super) fn is_overdue(&self) -> bool {
        self.approvals.overdue.is_some_and(|(expires, _)| expires <= clock::now())
    }

    /// Watches the questions of a turn that was just suspended.
    pub(super) fn watch_questions(&mut self, suspended: &Suspended) {
        let expiries = suspended.approvals().iter().map(|asked| asked.expires_at);
        self.approvals.overdue = expiries.min().map(look_for);
    }

    /// Watches the questions of a turn that another owner left suspended; only the store knows them.
    pub(in crate::session) async fn watch_recovered(&mut self) -> Result<(), store::Error> {
        let Some(journal) = self.recorder.journal.clone().filter(|_| self.machine.is_suspended()) else {
            return Ok(());
        };
        let rows = looked(journal.store().approvals(journal.session())).await?;
        let open = rows.iter().filter(|row| matches!(row.state, ApprovalState::Open));
        self.approvals.overdue = open.map(|row| row.asked.expires).min().map(look_for);
        Ok(())
    }
}

async fn take(journal: &Arc<Journal>, id: &ApprovalId, ruled: &Ruled) -> Result<(), DecideError> {
    let lost = |error: store::Error| DecideError::NotRecorded(error.to_string());
    let (store, session) = (journal.store(), journal.session());
    let row = in_time(store.approval(session, id)).await.map_err(lost)?.ok_or(DecideError::Unknown)?;
    let bytes = serde_json::to_vec(&ruled.decision).unwrap_or_default();
    let (id, principal) = (id.clone(), ruled.by.clone());
    let decision = store::NewDecision { id, digest: row.asked.digest, principal, bytes };
    match in_time(store.decide(session, decision)).await.map_err(lost)? {
        store::DecisionResult::Taken => Ok(()),
        store::DecisionResult::AlreadyDecided { principal: by, bytes, .. } => {
            let unread = |error| format!("the decision of {by} cannot be read: {error}");
            let decision = serde_json::from_slice(&bytes);
            let decision = decision.map_err(|error| DecideError::NotRecorded(unread(error)))?;
            Err(DecideError::Decided { by, decision })
        }
        store::DecisionResult::Expired => Err(DecideError::Expired),
        store::DecisionResult::Withdrawn => Err(DecideError::Withdrawn),
        // The decision refers to the question's own row, so it cannot be about anything else.
        store::DecisionResult::OtherArguments { .. } | store::DecisionResult::Unknown => {
            Err(DecideError::Unknown)
        }
    }
}

fn asks(suspended: &Suspended, id: &ApprovalId) -> bool {
    suspended.approvals().iter().any(|asked| asked.id == *id)
}

/// Questions of a turn that another owner left suspended; only the store knows them.
async fn stored(journal: &Journal, known: &HashSet<ApprovalId>) -> Vec<ApprovalRequest> {
    let rows = in_time(journal.store().approvals(journal.session())).await.unwrap_or_default();
    let open = rows.iter().filter(|row| row.state == ApprovalState::Open && known.contains(&row.asked.id));
    open.filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok()).collect()
}
