//! A stop requested through the store alone, by a process that does not own the session, whether the owner is
//! alive or not (S7.5).

use std::collections::HashSet;

use super::{intent::StoredStop, journal::Line, lost::begun_behind};
use crate::{
    contract::store::{ApprovalState, ApprovalsToWithdraw, Error, StopIntent, Store, guarded},
    value::{
        approval::ApprovalRequest,
        event::Fact,
        ids::{ApprovalId, Path, SessionId, TurnId},
    },
};

/// How many records are read at once.
const PAGE: usize = 1024;

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
    let requests = Requests::read(store, session).await?;
    open.retain(|asked| {
        let is_behind = requests.behind.iter().any(|run| asked.path.is_within(run));
        let is_of_it = turn.is_none_or(|turn| requests.asked.contains(&(turn, asked.id.clone())));
        is_of_it && !is_behind
    });
    Ok(open.into_iter().map(|asked| asked.id).collect())
}

/// The questions in the journal.
#[derive(Default)]
struct Requests {
    /// Which turn asked what.
    asked: HashSet<(TurnId, ApprovalId)>,
    /// The runs in the background.
    behind: HashSet<Path>,
}

impl Requests {
    async fn read(store: &dyn Store, session: &SessionId) -> Result<Self, Error> {
        let (mut requests, mut from) = (Self::default(), Some(0));
        while let Some(position) = from {
            let page = guarded::read(|| store.read(session, position, PAGE)).await?;
            for entry in page.entries {
                let damaged = |damage| Error::Damaged(session.clone(), damage);
                let record = entry.record.map_err(damaged)?;
                if let Line::Fact { turn, fact, .. } = Line::read(entry.position, &record).map_err(damaged)? {
                    requests.take(turn, &fact);
                }
            }
            from = page.next;
        }
        Ok(requests)
    }

    fn take(&mut self, turn: TurnId, fact: &Fact) {
        self.behind.extend(begun_behind(fact));
        if let Fact::ApprovalRequested(asked) = fact {
            self.asked.insert((turn, asked.id.clone()));
        }
    }
}
