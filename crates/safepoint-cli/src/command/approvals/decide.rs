//! Stores a decision. The first decision counts; a later one gets the reason why it does not.

use std::sync::Arc;

use safepoint::{
    approval::Decision,
    ids::SessionId,
    raw::{
        self,
        store::{ApprovalRow, ApprovalState, DecisionResult, DecisionUse, Liveness},
    },
    store::Store,
};

use super::asked;
use crate::{
    command::principal,
    control::notify_owner,
    exit::code,
    render::{
        approval::{self, verb},
        text::moment,
    },
};

/// Writes the decision to the store; returns the exit code and the reply.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// The decision may have been taken.
pub(crate) async fn judged(
    store: &Arc<dyn Store>,
    session: &SessionId,
    row: &ApprovalRow,
    decision: Decision,
) -> anyhow::Result<(u8, String)> {
    let bytes = serde_json::to_vec(&decision)?;
    let principal = principal::here();
    let (id, digest) = (row.asked.id.clone(), row.asked.digest.clone());
    let answer = raw::store::NewDecision { id: id.clone(), digest, principal, bytes: bytes.clone() };
    Ok(match store.decide(session, answer).await? {
        DecisionResult::Taken => {
            // One that does not answer looks by itself before long, and what is recorded holds.
            drop(notify_owner(session.as_str()).await);
            (0, taken(store, session, row, &decision).await)
        }
        DecisionResult::AlreadyDecided { bytes: other, principal, at } => {
            let was = verb(&other);
            let now = store.approval(session, &id).await?.unwrap_or_else(|| row.clone());
            let at = moment(at);
            match &now.state {
                ApprovalState::Decided { used: DecisionUse::Used, .. } => {
                    (code::TOO_LATE, format!("already {was} by {principal} at {at} and applied"))
                }
                _ if other == bytes => (0, format!("already so: {was} by {principal} at {at}")),
                _ => {
                    (code::TOO_LATE, format!("already {was} by {principal} at {at}; the first answer counts"))
                }
            }
        }
        DecisionResult::Withdrawn => (
            code::TOO_LATE,
            format!(
                "too late: a stop took this question back, and the call did not begin; `safepoint resume {session}` asks \
                 again, under a new id"
            ),
        ),
        DecisionResult::Expired => (
            code::TOO_LATE,
            format!("expired at {}: the call was denied without an answer", moment(row.asked.expires)),
        ),
        DecisionResult::OtherArguments { .. } => (
            code::CONFLICT,
            format!("the question is about other arguments now; look again: safepoint approvals {session}"),
        ),
        DecisionResult::Unknown => (code::NONE_SUCH, "there is no such question".into()),
    })
}

/// What the decision does, and who acts on it.
async fn taken(
    store: &Arc<dyn Store>,
    session: &SessionId,
    row: &ApprovalRow,
    decision: &Decision,
) -> String {
    let what = asked(row).map_or_else(|| "decided".to_owned(), |asked| approval::taken(&asked, decision));
    let holder = store.open(session).await.ok().and_then(|row| row.holder);
    let next = match holder.map(|held| (held.owner.life(), held.owner)) {
        Some((Liveness::Alive, owner)) => format!("{owner} resumes it"),
        _ => format!("`safepoint resume {session}` resumes it"),
    };
    format!("{what}. Recorded; {next}")
}
