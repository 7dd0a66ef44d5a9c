//! A stop requested through the store alone, by a process that does not own the session, whether the owner is
//! alive or not (S7.5).

use std::collections::HashSet;

use super::{
    intent::StoredStop,
    lookback::{JournalFact, read_journal},
    lost::begun_behind,
};
use crate::{
    contract::store::{ApprovalState, ApprovalsToWithdraw, Error, StopIntent, Store, guarded},
    value::{
        approval::ApprovalRequest,
        event::Fact,
        ids::{ApprovalId, SessionId, TurnId},
    },
};

/// Writes a stop into the store, durable before this returns, and returns its number among the session's
/// stops.
///
/// A stop of a turn also withdraws the open questions of that turn: a later answer is refused, whether an
/// owner is alive or not. It withdraws no question of another turn or of a background run. A stop of the
/// session leaves all questions open: the end of its loop does not decide about a run that waits (S8.3).
///
/// # Errors
/// The store's error, if there is no such session or nothing could be written; [`Error::Damaged`] if the
/// turns of the open questions cannot be read; [`Error::Failed`] or [`Error::Unknown`] if the store panics.
///
/// # Cancel safety
/// The stop may have been written.
pub async fn store_stop(store: &dyn Store, session: &SessionId, intent: &StoredStop) -> Result<u64, Error> {
    let approvals = match intent {
        StoredStop::Session(_) => ApprovalsToWithdraw::Stay,
        StoredStop::Turn(turn, _) => match questions(store, session, *turn).await? {
            none if none.is_empty() => ApprovalsToWithdraw::Stay,
            these => ApprovalsToWithdraw::Only(these),
        },
    };
    let stop = StopIntent { bytes: intent.to_bytes(), approvals };
    guarded::write(|| store.ask_stop(session, stop)).await
}

/// The open questions of this turn, or of any turn if none is given. A question asked after this look comes
/// from a live owner, which applies the stop itself.
async fn questions(
    store: &dyn Store,
    session: &SessionId,
    turn: Option<TurnId>,
) -> Result<Vec<ApprovalId>, Error> {
    let rows = guarded::read(|| store.approvals(session)).await?;
    let mut open: Vec<ApprovalRequest> = rows
        .iter()
        .filter(|row| row.state == ApprovalState::Open)
        .filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok())
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    // Which turn asked what, and the runs in the background.
    let (mut asked_by, mut behind) = (HashSet::new(), HashSet::new());
    let mut damage = None;
    read_journal(store, session, |step| match step.what {
        Ok(JournalFact::Fact { turn, fact, .. }) => {
            behind.extend(begun_behind(&fact));
            if let Fact::ApprovalRequested(asked) = &*fact {
                asked_by.insert((turn, asked.id.clone()));
            }
        }
        Ok(_) => {}
        Err(found) => drop(damage.get_or_insert(found)),
    })
    .await?;
    if let Some(damage) = damage {
        return Err(Error::Damaged(session.clone(), damage));
    }
    open.retain(|asked| {
        let is_behind = behind.iter().any(|run| asked.path.is_within(run));
        let is_of_it = turn.is_none_or(|turn| asked_by.contains(&(turn, asked.id.clone())));
        is_of_it && !is_behind
    });
    Ok(open.into_iter().map(|asked| asked.id).collect())
}
