//! Decisions: bound to the digest of the question and to who decides, and taken once (S13.9).

use jiff::Timestamp;
use safepoint::{
    approval::{ApprovalRequest, Decision},
    ids::{ApprovalId, SessionId},
    raw::store::{ApprovalRow, ApprovalState, DecisionResult, NewDecision},
};
use serde_json::{Value, json};

use super::{Caller, Kept};
use crate::{
    answer::{ApprovalAnswer, DecisionAnswer},
    load::Load,
    problem::{Answered, Problem},
};

/// Where a stored no has its key, beside what it says.
const KEY: &str = "key";

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
        let value = serde_json::to_value(decision)?;
        self.answer(kept, (ApprovalId::from(id), digest), &value).await
    }

    /// Whether the caller has answered one of these questions with a no of this key.
    pub(crate) fn has_denied(&self, rows: &[ApprovalRow], key: &str) -> bool {
        rows.iter().any(|row| self.denied_at(row, key).is_some())
    }

    /// Answers the open ones of these questions with a no, which is kept with its key. The same key again answers none that was asked
    /// after it.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    ///
    /// # Cancel safety
    /// Some of them may be answered.
    pub(crate) async fn deny(
        &self,
        kept: &Kept,
        rows: &[ApprovalRow],
        (words, key): (&str, &str),
    ) -> Answered<()> {
        let first = rows.iter().filter_map(|row| self.denied_at(row, key)).min();
        let is_meant =
            |row: &&ApprovalRow| row.state == ApprovalState::Open && first.is_none_or(|first| row.at < first);
        let mut no = serde_json::to_value(Decision::deny(words))?;
        no[KEY] = json!(key);
        for row in rows.iter().filter(is_meant) {
            drop(self.answer(kept, (row.asked.id.clone(), row.asked.digest.clone()), &no).await?);
        }
        Ok(())
    }

    fn denied_at(&self, row: &ApprovalRow, key: &str) -> Option<Timestamp> {
        let ApprovalState::Decided { principal, at, bytes, .. } = &row.state else { return None };
        let answer: Value = serde_json::from_slice(bytes).ok()?;
        (principal == self.who.name() && answer[KEY] == key).then_some(*at)
    }

    async fn answer(
        &self,
        kept: &Kept,
        (id, digest): (ApprovalId, String),
        value: &Value,
    ) -> Answered<DecisionAnswer> {
        let principal = self.who.name().to_owned();
        let new = NewDecision { id: id.clone(), digest, principal, bytes: serde_json::to_vec(value)? };
        Load::count(&self.load.decisions);
        let already = match self.store().decide(kept.id(), new).await? {
            DecisionResult::Taken => {
                self.wake(kept);
                false
            }
            DecisionResult::AlreadyDecided { bytes, .. } if is_same(&bytes, value) => true,
            refused => return Err(problem(refused)),
        };
        Ok(DecisionAnswer { approval: id.to_string(), already })
    }
}

/// Whether a stored answer decides the same as this one, whatever their keys.
fn is_same(bytes: &[u8], value: &Value) -> bool {
    match (serde_json::from_slice::<Decision>(bytes), serde_json::from_value::<Decision>(value.clone())) {
        (Ok(stored), Ok(given)) => stored == given,
        _ => false,
    }
}

/// Whether a question was over before this answer: its turn says how it continues.
pub(crate) fn is_over(problem: &Problem) -> bool {
    matches!(problem.code(), "decided_otherwise" | "withdrawn" | "expired" | "other_arguments")
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
