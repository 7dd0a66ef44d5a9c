//! What a person has allowed for the rest of a session, folded from recorded facts (S8.6).
//!
//! **Invariants**: it only grows, and by recorded facts alone. An approval after something may have happened
//! already allows nothing further. An approval is valid for the tool as it was declared when the question was
//! asked, and on the same host.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    sync::Mutex,
    value::{
        approval::{AllowScope, ApprovalKind, Decision, Holds},
        event::{Fact, Resolution},
        ids::ApprovalId,
    },
};

/// The lasting approvals of one session, or of one tree of runs without a session.
/// The lock is held for one fact or one look-up; no other lock is taken under it. A call that is checked just
/// before a person allows it asks once more.
#[derive(Debug, Default)]
pub(crate) struct AllowList(Mutex<AllowState>);

/// What was asked and allowed so far. A checkpoint of a session's journal keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AllowState {
    asked: BTreeMap<ApprovalId, About>,
    /// Tools by name and definition.
    tools: BTreeSet<(String, String)>,
    /// Calls by their whole digest.
    calls: BTreeSet<String>,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    tool: (String, String),
    digest: String,
    holds: Holds,
}

impl AllowState {
    /// How much there is of it.
    pub(crate) fn entries(&self) -> usize {
        self.asked.len() + self.tools.len() + self.calls.len()
    }
}

impl From<AllowState> for AllowList {
    fn from(state: AllowState) -> Self {
        Self(Mutex::new(state))
    }
}

impl AllowList {
    /// How much was asked and allowed so far.
    pub(crate) fn entries(&self) -> usize {
        self.0.lock().entries()
    }

    /// What was asked and allowed so far.
    pub(crate) fn state(&self) -> AllowState {
        self.0.lock().clone()
    }

    /// Applies a recorded fact.
    pub(crate) fn take(&self, fact: &Fact) {
        match fact {
            // A question of an older release does not include the tool's definition: its approval does not
            // last.
            Fact::ApprovalRequested(asked)
                if asked.question != ApprovalKind::AfterUnknownEnd && !asked.definition.is_empty() =>
            {
                let tool = (asked.tool.clone(), asked.definition.clone());
                let about = About { tool, digest: asked.digest.clone(), holds: asked.holds };
                self.0.lock().asked.insert(asked.id.clone(), about);
            }
            Fact::ApprovalResolved { id, answer, .. } => self.close(id, answer),
            _ => {}
        }
    }

    /// Whether this needs no further question: `tool` by its name and definition, `digest` of the whole of it.
    pub(crate) fn covers(&self, tool: (&str, &str), digest: &str) -> bool {
        let held = self.0.lock();
        held.tools.iter().any(|(name, definition)| (name.as_str(), definition.as_str()) == tool)
            || held.calls.contains(digest)
    }

    fn close(&self, id: &ApprovalId, answer: &Resolution) {
        let mut held = self.0.lock();
        let (Some(about), Resolution::Decided(decision)) = (held.asked.remove(id), answer) else { return };
        match (decision, about.holds) {
            (Decision::ApproveAlways { covers: AllowScope::Tool }, _) => {
                held.tools.insert(about.tool);
            }
            (Decision::ApproveAlways { covers: AllowScope::Call }, _)
            | (Decision::Approve, Holds::Session) => {
                held.calls.insert(about.digest);
            }
            (Decision::Approve, Holds::Once)
            | (Decision::ApproveWith { .. } | Decision::Deny { .. } | Decision::Respond { .. }, _) => {}
        }
    }
}
