//! A stop asked through the store alone: by whoever does not own the session, whether its owner lives or not (S7.5).

use std::collections::HashSet;

use super::{intent::StoredStop, journal::Line, lost::begun_behind};
use crate::{
    contract::store::{ApprovalState, ApprovalsToWithdraw, Does, Error, StopIntent, Store, ask},
    value::{
        approval::ApprovalRequest,
        event::Fact,
        ids::{ApprovalId, Path, SessionId, TurnId},
    },
};

/// How many records are read at once.
const PAGE: usize = 1024;

/// Puts a stop into the store, durable before this returns, and says its number among the session's stops.
///
/// A stop of a turn takes the open questions of that turn back in the same moment: a later answer is refused, whether an
/// owner lives or not. Of another turn than the one that is named, or of a run in the background, it takes back none. A
/// stop of the session leaves all of them open: the end of its loop does not decide about a run that waits (S8.3).
///
/// # Errors
/// The store's, if there is no such session or nothing could be written; [`Error::Damaged`] if it cannot be read whose the
/// open questions are; [`Error::Failed`] or [`Error::Unknown`] if the store panics.
///
/// # Cancel safety
/// The stop may have been asked.
pub async fn store_stop(store: &dyn Store, session: &SessionId, intent: &StoredStop) -> Result<u64, Error> {
    let approvals = match intent {
        StoredStop::Session(_) => ApprovalsToWithdraw::Stay,
        StoredStop::Turn(turn, _) => match questions(store, session, *turn).await? {
            none if none.is_empty() => ApprovalsToWithdraw::Stay,
            these => ApprovalsToWithdraw::Only(these),
        },
    };
    let stop = StopIntent { bytes: intent.to_bytes(), approvals };
    ask(Does::Writes, || store.ask_stop(session, stop)).await
}

/// What is open of this turn, or of any if none is named. What is asked after this look is asked by an owner who lives, and
/// who sees to the stop himself.
async fn questions(
    store: &dyn Store,
    session: &SessionId,
    turn: Option<TurnId>,
) -> Result<Vec<ApprovalId>, Error> {
    let rows = ask(Does::Reads, || store.approvals(session)).await?;
    let mut open: Vec<ApprovalRequest> = rows
        .iter()
        .filter(|row| row.state == ApprovalState::Open)
        .filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok())
        .collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let told = Told::read(store, session).await?;
    open.retain(|asked| {
        let is_behind = told.behind.iter().any(|run| asked.path.is_within(run));
        let is_of_it = turn.is_none_or(|turn| told.asked.contains(&(turn, asked.id.clone())));
        is_of_it && !is_behind
    });
    Ok(open.into_iter().map(|asked| asked.id).collect())
}

/// What the journal says of questions.
#[derive(Default)]
struct Told {
    /// Which turn asked what.
    asked: HashSet<(TurnId, ApprovalId)>,
    /// The runs in the background.
    behind: HashSet<Path>,
}

impl Told {
    async fn read(store: &dyn Store, session: &SessionId) -> Result<Self, Error> {
        let (mut told, mut from) = (Self::default(), Some(0));
        while let Some(position) = from {
            let page = ask(Does::Reads, || store.read(session, position, PAGE)).await?;
            for entry in page.entries {
                let damaged = |damage| Error::Damaged(session.clone(), damage);
                let record = entry.record.map_err(damaged)?;
                if let Line::Fact { turn, fact, .. } = Line::read(entry.position, &record).map_err(damaged)? {
                    told.take(turn, &fact);
                }
            }
            from = page.next;
        }
        Ok(told)
    }

    fn take(&mut self, turn: TurnId, fact: &Fact) {
        self.behind.extend(begun_behind(fact));
        if let Fact::ApprovalRequested(asked) = fact {
            self.asked.insert((turn, asked.id.clone()));
        }
    }
}
