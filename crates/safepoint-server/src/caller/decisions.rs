//! Decisions: bound to the digest of the question and to who decides, and taken once (S13.9).

use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, SessionId},
    raw::store::{ApprovalRow, ApprovalState, DecisionResult, NewDecision},
};

use serde_json::json;

use super::{Caller, Kept};
use crate::{
    answer::{ApprovalAnswer, DecisionAnswer},
    load::Load,
    problem::{Answered, Problem},
};

impl Caller {
    /// The open questions of the session, in the order in which they were asked.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn questions(&self, session: &SessionId) -> Answered<Vec<ApprovalRequest>> {
        let rows = self.store().approvals(session).await?;
        let open = rows.iter().filter(|row| row.state == ApprovalState::Open);
        // One that this release cannot read is answered where it can be.
        Ok(open.filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok()).collect())
    }

    /// Answers a question of the session, which continues with it.
    ///
    /// # Errors
    /// `decided_otherwise`, `withdrawn`, `expired`, `other_arguments`, `no_such_approval`, and the store's.
    ///
    /// # Cancel safety
    /// The decision may have been taken.
    pub(crate) async fn decide(
        &self,
        kept: &Kept,
        id: &str,
        digest: String,
        decision: &Decision,
    ) -> Answered<DecisionAnswer> {
        let id = ApprovalId::from(id);
        let bytes = serde_json::to_vec(decision)?;
        let principal = self.who.name().to_owned();
        let new = NewDecision { id: id.clone(), digest, principal, bytes: bytes.clone() };
        Load::count(&self.load.decisions);
        let already = match self.store().decide(kept.id(), new).await? {
            DecisionResult::Taken => {
                self.wake(kept);
                false
            }
            DecisionResult::AlreadyDecided { bytes: other, .. } if other == bytes => true,
            refused => return Err(problem(refused)),
        };
        Ok(DecisionAnswer { approval: id.to_string(), already })
    }
}

fn problem(refused: DecisionResult) -> Problem {
    match refused {
        DecisionResult::AlreadyDecided { principal, at, bytes } => {
            let other = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
            Problem::conflict("decided_otherwise", format!("{principal} decided it before"))
                .with("by", principal)
                .with("at", at.to_string())
                .with("decision", other["decision"].clone())
        }
        DecisionResult::Withdrawn => {
            Problem::conflict("withdrawn", "a stop withdrew the question, and the call did not begin")
        }
        DecisionResult::Expired => Problem::conflict("expired", "the question expired: the call was denied"),
        DecisionResult::OtherArguments { digest } => {
            Problem::conflict("other_arguments", "the question is about other arguments: look again")
                .with("digest", digest)
        }
        DecisionResult::Taken | DecisionResult::Unknown => Problem::no_such("approval"),
    }
}

/// A question, as every surface shows it. None: this release cannot read the question.
pub(crate) fn shown(session: &SessionId, row: &ApprovalRow) -> Option<ApprovalAnswer> {
    let asked: ApprovalRequest = serde_json::from_slice(&row.asked.bytes).ok()?;
    let (state, by, at) = match &row.state {
        ApprovalState::Open => ("open", None, None),
        ApprovalState::Decided { principal, at, .. } => ("decided", Some(principal.clone()), Some(*at)),
        ApprovalState::Withdrawn => ("withdrawn", None, None),
        ApprovalState::Expired => ("expired", None, None),
    };
    Some(ApprovalAnswer {
        id: asked.id.to_string(),
        session: session.to_string(),
        tool: asked.tool,
        question: json!(asked.question),
        args: asked.args,
        digest: asked.digest,
        asked_at: asked.asked_at,
        expires_at: asked.expires_at,
        state,
        by,
        at,
    })
}
