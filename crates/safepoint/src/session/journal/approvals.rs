//! Reconciles stored questions before a session continues: questions that were withdrawn, questions of
//! background runs whose process has ended, and questions that were answered before they were asked again.

use std::collections::HashMap;

use super::{InheritedTurn, Journal, JournalLine, LeftTurn, Recovered, in_time, looked};
use crate::{
    contract::{
        log::RunRecord,
        store::{
            ApprovalClose, ApprovalRow, ApprovalState, Cause, DecisionUse, Durability, Error, NewApproval,
            NewDecision, Write,
        },
    },
    session::outcome::ItemOutcome,
    value::{
        approval::ApprovalRequest,
        event::{Fact, Resolution},
        ids::{ApprovalId, CallId, Path},
    },
};

/// Where a question is open: the run that asked, and each run above that waits for it, by its call.
type Open = HashMap<ApprovalId, Vec<(Path, CallId)>>;

/// Brings the journal in line with the store, so that a resumed turn asks again and waits for no answer that
/// cannot come. If a turn waited only for questions that were withdrawn, that withdrawal interrupted it.
pub(in crate::session) async fn reconcile(journal: &Journal, found: &mut Recovered) -> Result<(), Error> {
    if found.left.is_none() && found.background.is_empty() {
        return Ok(());
    }
    let rows = looked(journal.store().approvals(journal.session())).await?;
    let mut writes = Vec::new();
    if let Some(left) = found.left.as_mut().filter(|_| !rows.is_empty()) {
        writes = close_withdrawn(left, &rows).await?;
        for row in rows.iter().filter(|row| left.open.contains(&row.asked.id)) {
            answer_as_before(journal, &row.asked, &rows).await?;
        }
    }
    let is_background =
        |asked: &ApprovalRequest| found.background.iter().any(|run| asked.path.is_within(run));
    for row in rows {
        if serde_json::from_slice(&row.asked.bytes).is_ok_and(|asked| is_background(&asked)) {
            writes.extend(closing_of(&row.state).map(|closed| Write::CloseApproval(row.asked.id, closed)));
        }
    }
    if !writes.is_empty() {
        journal.append(writes, Durability::Recorded).await?;
    }
    Ok(())
}

/// An answer that was stored before a stop withdrew its question applies to the same call with the same
/// arguments. It answers the new question, so that a person is not asked twice.
pub(super) async fn answer_as_before(
    journal: &Journal,
    asked: &NewApproval,
    rows: &[ApprovalRow],
) -> Result<(), Error> {
    // Approval to run a call does not approve running it again when it may have run.
    let question = |asked: &NewApproval| {
        serde_json::from_slice::<ApprovalRequest>(&asked.bytes).ok().map(|asked| asked.question)
    };
    let is_same = |row: &&ApprovalRow| {
        let before = &row.asked;
        let same = |one: &NewApproval| (one.run.clone(), one.call.clone(), one.digest.clone(), question(one));
        before.id != asked.id && same(before) == same(asked)
    };
    let mut answers = rows.iter().filter(is_same).filter_map(|row| match &row.state {
        ApprovalState::Decided { principal, bytes, used: DecisionUse::Waiting, .. } => {
            Some((row.asked.id.clone(), principal.clone(), bytes.clone()))
        }
        _ => None,
    });
    let Some((before, principal, bytes)) = answers.next_back() else { return Ok(()) };
    let decision = NewDecision { id: asked.id.clone(), digest: asked.digest.clone(), principal, bytes };
    in_time(journal.store().decide(journal.session(), decision)).await?;
    journal.append(vec![Write::CloseApproval(before, ApprovalClose::Used)], Durability::Recorded).await?;
    Ok(())
}

/// How to close a question that no run will continue with.
fn closing_of(state: &ApprovalState) -> Option<ApprovalClose> {
    match state {
        ApprovalState::Open => Some(ApprovalClose::Withdrawn),
        // The answer came too late to be used: nothing should wait for it.
        ApprovalState::Decided { used: DecisionUse::Waiting, .. } => Some(ApprovalClose::Used),
        ApprovalState::Decided { .. } | ApprovalState::Withdrawn | ApprovalState::Expired => None,
    }
}

async fn close_withdrawn(left: &mut LeftTurn, rows: &[ApprovalRow]) -> Result<Vec<Write>, Error> {
    let records = left.log.read().await.map_err(|error| Error::Failed(Cause::new(error)))?;
    let mut open = open_of(&records);
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.state == ApprovalState::Withdrawn) {
        let id = &row.asked.id;
        for (path, call_id) in open.remove(id).unwrap_or_default() {
            let fact = Fact::ApprovalResolved { id: id.clone(), call_id, answer: Resolution::Withdrawn };
            lines.push(JournalLine::fact(left.turn, path, fact.into(), None));
        }
    }
    if !lines.is_empty() && open.is_empty() && matches!(left.fate, ItemOutcome::Suspended(_)) {
        left.fate = ItemOutcome::Interrupted(left.turn);
        left.left_open = InheritedTurn::Withdrawn;
        lines.push(JournalLine::ended(left.turn, left.fate, left.holds));
    }
    left.open = open.into_keys().collect();
    let writes = lines.iter().map(JournalLine::write).collect::<Result<_, _>>();
    writes.map_err(|error| Error::Failed(Cause::new(error)))
}

/// What was asked for this call is no longer asked there.
fn no_longer_at(open: &mut Open, path: &Path, call_id: &CallId) {
    let is_here = |(at, call): &(Path, CallId)| at == path && call == call_id;
    open.values_mut().for_each(|places| places.retain(|place| !is_here(place)));
}

fn open_of(records: &[RunRecord]) -> Open {
    let mut open = Open::new();
    for RunRecord { path, fact } in records {
        match &**fact {
            Fact::ApprovalRequested(asked) => {
                open.insert(asked.id.clone(), vec![(path.clone(), asked.call_id.clone())]);
            }
            Fact::ChildSuspended { call_id, approvals, .. } => {
                for asked in approvals {
                    open.entry(asked.id.clone()).or_default().push((path.clone(), call_id.clone()));
                }
            }
            // The run of this call was resumed; if it waits, it waits inside.
            Fact::CallStarted { call_id, .. } => no_longer_at(&mut open, path, call_id),
            Fact::CallEnded { report, .. } => no_longer_at(&mut open, path, &report.call_id),
            Fact::ApprovalResolved { id, .. } => drop(open.remove(id)),
            _ => {}
        }
    }
    open.retain(|_, places| !places.is_empty());
    open
}
