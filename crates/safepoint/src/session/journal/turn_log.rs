//! The log of one turn's run, inside its session's journal.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures_core::future::BoxFuture;

use super::{
    APPEND, Journal, JournalLine, PAGE, approvals::answer_as_before, line::Grown, look::looked, within,
};
use crate::{
    contract::{
        log::{Log, LogError, RunRecord},
        store::{self, ApprovalClose, Durability, NewApproval, Write},
    },
    sync::Mutex,
    value::{
        approval::ApprovalRequest,
        effect::EffectClass,
        event::{Fact, RecordedSteer, Resolution},
        history::History,
        ids::{ApprovalId, CallId, Path, RunId, SteerId, TurnId},
    },
};

/// Records the facts of one turn.
pub(in crate::session) struct TurnLog {
    /// Weak: the log is part of outcomes, which may outlive the session and must not keep its store alive.
    journal: Weak<Journal>,
    turn: TurnId,
    /// The conversation before the turn, closed.
    base: History,
    /// Where in the journal the turn may begin.
    from: u64,
    /// Held to look at one fact, and not across its write. Runs of one tree do so in any order; a call's end is
    /// looked at after its start, because one run appends one fact after the other.
    seen: Mutex<SeenFacts>,
    /// Why a record was not written, or why that is unknown: none is written after it (S3.4). Set at most once. A
    /// write of another run of the tree that had begun before is not recalled.
    lost: OnceLock<String>,
}

/// What the facts so far say, as far as later ones need it.
#[derive(Default)]
struct SeenFacts {
    run: Option<RunId>,
    /// By run too: runs of one tree may name calls alike.
    calls: HashMap<(Path, CallId), EffectClass>,
}

impl TurnLog {
    pub(in crate::session) fn new(journal: &Arc<Journal>, turn: TurnId, base: History, from: u64) -> Self {
        Self {
            journal: Arc::downgrade(journal),
            turn,
            base,
            from,
            seen: Mutex::default(),
            lost: OnceLock::new(),
        }
    }

    fn line(&self, record: &RunRecord) -> JournalLine {
        let RunRecord { path, fact } = record;
        let (fact, grown) = match &**fact {
            Fact::AttemptOpened { run, attempt, history: Some(history), at, on_unknown, limits }
                if path.is_root() =>
            {
                let base = history.entries().common(self.base.entries(), |one, other| one == other);
                let entries = history.entries().range(base..).cloned().collect();
                let fact = Fact::AttemptOpened {
                    run: run.clone(),
                    attempt: *attempt,
                    history: None,
                    at: *at,
                    on_unknown: *on_unknown,
                    limits: limits.clone(),
                };
                (Arc::new(fact), Some(Grown { base, entries, view: history.view().clone() }))
            }
            _ => (Arc::clone(fact), None),
        };
        JournalLine::fact(self.turn, path.clone(), fact, grown)
    }

    /// The durability that the fact needs before it is acknowledged, and what it changes beside the journal.
    fn durability_of(&self, path: &Path, fact: &Fact) -> (Durability, Option<Write>) {
        let mut seen = self.seen.lock();
        match fact {
            Fact::AttemptOpened { run, .. } => {
                seen.run.get_or_insert_with(|| run.clone());
                (Durability::Recorded, None)
            }
            Fact::CallStarted { call_id, effect, .. } => {
                seen.calls.insert((path.clone(), call_id.clone()), *effect);
                let class =
                    if *effect == EffectClass::ReadOnly { Durability::Recorded } else { Durability::Durable };
                (class, None)
            }
            Fact::CallEnded { report, .. } => {
                let class = match seen.calls.get(&(path.clone(), report.call_id.clone())) {
                    Some(EffectClass::Unsafe | EffectClass::Keyed) => Durability::Durable,
                    Some(EffectClass::ReadOnly | EffectClass::Idempotent) | None => Durability::Recorded,
                };
                (class, None)
            }
            Fact::ApprovalRequested(asked) => {
                let run = seen.run.clone().unwrap_or_else(RunId::fresh);
                (Durability::Durable, Some(Write::OpenApproval(opened(asked, run))))
            }
            Fact::ApprovalResolved { id, answer, .. } => {
                let closed = match answer {
                    Resolution::Decided(_) => ApprovalClose::Used,
                    Resolution::Expired => ApprovalClose::Expired,
                    Resolution::Withdrawn => ApprovalClose::Withdrawn,
                };
                (Durability::Durable, Some(Write::CloseApproval(id.clone(), closed)))
            }
            _ => (Durability::Recorded, None),
        }
    }

    /// A decision made at this process's own terminal is stored first, so that it is consumed once like any
    /// other.
    async fn decide_first(
        &self,
        id: &ApprovalId,
        answer: &Resolution,
        limit: Duration,
    ) -> Result<(), LogError> {
        let Resolution::Decided(decision) = answer else { return Ok(()) };
        let journal = self.journal()?;
        let row =
            within(limit, journal.store().approval(journal.session(), id)).await.map_err(LogError::new)?;
        let Some(row) = row else { return Ok(()) };
        if let store::ApprovalState::Decided { .. } = row.state {
            return Ok(());
        }
        let decision = store::NewDecision {
            id: id.clone(),
            digest: row.asked.digest,
            principal: "the owner's approver".into(),
            bytes: serde_json::to_vec(decision).map_err(LogError::new)?,
        };
        within(limit, journal.store().decide(journal.session(), decision)).await.map_err(LogError::new)?;
        Ok(())
    }

    fn journal(&self) -> Result<Arc<Journal>, LogError> {
        self.journal.upgrade().ok_or_else(|| LogError::new("the session that keeps it has ended"))
    }

    async fn answer_as_before(journal: &Journal, id: &ApprovalId) -> Result<(), store::Error> {
        let rows = journal.store().approvals(journal.session()).await?;
        match rows.iter().find(|row| row.asked.id == *id) {
            Some(row) => answer_as_before(journal, &row.asked, &rows).await,
            None => Ok(()),
        }
    }

    /// For every run of the turn's tree.
    async fn write(&self, record: RunRecord, limit: Duration) -> Result<u64, LogError> {
        self.unless_lost(self.write_one(record, limit)).await
    }

    async fn unless_lost<P>(
        &self,
        writing: impl Future<Output = Result<P, LogError>>,
    ) -> Result<P, LogError> {
        if let Some(why) = self.lost.get() {
            return Err(LogError::new(why.clone()));
        }
        let written = writing.await;
        if let Err(error) = &written
            && error.gone_steer().is_none()
            && self.lost.set(format!("nothing more is written: {error}")).is_err()
        {
            // Another process met the request first.
        }
        written
    }

    async fn write_one(&self, record: RunRecord, limit: Duration) -> Result<u64, LogError> {
        if let Fact::ApprovalResolved { id, answer, .. } = &*record.fact {
            self.decide_first(id, answer, limit).await?;
        }
        let journal = self.journal()?;
        let (class, beside) = self.durability_of(&record.path, &record.fact);
        let mut writes = vec![self.line(&record).write().map_err(LogError::new)?];
        writes.extend(beside);
        if let Fact::SteerTaken { steers, .. } = &*record.fact {
            // The item is delivered and taken in one transaction: never lost, never twice.
            let items = steers.iter().filter_map(RecordedSteer::item);
            writes.extend(items.filter_map(|item| journal.number_of(item)).map(Write::TakeItem));
        }
        let place = match journal.append_within(writes, class, limit).await {
            Err(error @ store::Error::ItemElsewhere(number)) => {
                // The caller that withdrew the item has it.
                let Some(item) = journal.item_of(number) else { return Err(LogError::new(error)) };
                return Err(LogError::steer_gone(SteerId::from(item.to_string()), error));
            }
            place => place.map_err(unrecorded)?,
        };
        if let Fact::ApprovalRequested(asked) = &*record.fact {
            within(limit, Self::answer_as_before(&journal, &asked.id)).await.map_err(unrecorded)?;
        }
        Ok(place)
    }

    /// Writes all records in one transaction, if none of them needs another request to the store before or
    /// after it. Returns the position of each.
    async fn write_all(&self, records: Vec<RunRecord>, limit: Duration) -> Result<Vec<u64>, LogError> {
        // A question, a decision and a steer write more than their record.
        let is_more = |record: &RunRecord| {
            matches!(
                *record.fact,
                Fact::ApprovalRequested(_)
                    | Fact::ApprovalResolved { answer: Resolution::Decided(_), .. }
                    | Fact::SteerTaken { .. }
            )
        };
        if records.iter().any(is_more) {
            // Other runs of the tree may write between two of them.
            let mut positions = Vec::with_capacity(records.len());
            for record in records {
                positions.push(self.write(record, limit).await?);
            }
            return Ok(positions);
        }
        self.unless_lost(async {
            let (journal, mut highest, mut writes) = (self.journal()?, Durability::Recorded, Vec::new());
            for record in &records {
                let (class, beside) = self.durability_of(&record.path, &record.fact);
                highest = highest.max(class);
                writes.push(self.line(record).write().map_err(LogError::new)?);
                writes.extend(beside);
            }
            let first = journal.append_within(writes, highest, limit).await.map_err(unrecorded)?;
            // One transaction: nothing is between them.
            Ok((first..).take(records.len()).collect())
        })
        .await
    }

    async fn read_all(&self) -> Result<Vec<RunRecord>, LogError> {
        let journal = self.journal()?;
        let mut records = Vec::new();
        let mut from = Some(self.from);
        while let Some(position) = from {
            let page = looked(journal.store().read(journal.session(), position, PAGE))
                .await
                .map_err(LogError::new)?;
            for entry in page.entries {
                let record = entry.record.map_err(LogError::new)?;
                if record.is_checkpoint() {
                    continue;
                }
                let line = JournalLine::read(entry.position, &record).map_err(LogError::new)?;
                if let JournalLine::Fact { turn, path, fact, grown, .. } = line
                    && turn == self.turn
                {
                    records.push(RunRecord { path, fact: restore(&self.base, fact, grown) });
                }
            }
            from = page.next;
        }
        Ok(records)
    }
}

impl Log for TurnLog {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(self.write(record, APPEND))
    }

    fn append_within(&self, record: RunRecord, limit: Duration) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(self.write(record, limit))
    }

    fn append_all(
        &self,
        records: Vec<RunRecord>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u64>, LogError>> {
        Box::pin(self.write_all(records, limit))
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        Box::pin(self.read_all())
    }
}

fn unrecorded(error: store::Error) -> LogError {
    if error.is_uncertain() { LogError::unknown(error) } else { LogError::new(error) }
}

/// Rebuilds a history.
pub(super) fn restore(base: &History, fact: Arc<Fact>, grown: Option<Grown>) -> Arc<Fact> {
    let (Fact::AttemptOpened { run, attempt, at, on_unknown, limits, .. }, Some(grown)) = (&*fact, grown)
    else {
        return fact;
    };
    Arc::new(Fact::AttemptOpened {
        run: run.clone(),
        attempt: *attempt,
        history: Some(grown.onto(base)),
        at: *at,
        on_unknown: *on_unknown,
        limits: limits.clone(),
    })
}

fn opened(asked: &ApprovalRequest, run: RunId) -> NewApproval {
    NewApproval {
        id: asked.id.clone(),
        run,
        call: asked.call_id.clone(),
        digest: asked.digest.clone(),
        expires: asked.expires_at,
        bytes: serde_json::to_vec(asked).unwrap_or_default(),
    }
}

impl std::fmt::Debug for TurnLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnLog").field("turn", &self.turn).finish_non_exhaustive()
    }
}
