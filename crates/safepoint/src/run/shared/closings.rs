//! Questions that are closed, over all runs of a session, or of a tree without one: what a later decision is told.

use std::collections::HashMap;

use crate::{
    sync::{Mutex, MutexGuard},
    value::{
        approval::{Decision, Ruled},
        event::{Fact, Resolution},
        ids::ApprovalId,
    },
};

/// Why a decision was not taken (S8.2).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// Nobody asked that: this run, or session, has put no question of this id.
    #[error("nobody asked this: no question has this id")]
    Unknown,
    /// Somebody was first, and that counts.
    #[error("it was decided before, by {by}")]
    Decided {
        /// Who, as far as it is known.
        by: String,
        /// What they said.
        decision: Box<Decision>,
    },
    /// Nobody decided in time.
    #[error("the question has expired")]
    Expired,
    /// A stop, or the end of the call that asked, took the question back.
    #[error("the question was taken back")]
    Withdrawn,
    /// The store did not take the decision, and why.
    #[error("the decision could not be recorded: {0}")]
    NotRecorded(String),
    /// The run has ended.
    #[error("the run has ended")]
    RunEnded,
}

/// How a question is closed. Exhaustive: the three ends.
#[derive(Clone, Debug)]
pub(crate) enum Closing {
    Decided(Ruled),
    Expired,
    Withdrawn,
}

impl Closing {
    /// As it is recorded.
    pub(crate) fn answer(&self) -> Resolution {
        match self {
            Self::Decided(ruled) => Resolution::Decided(ruled.decision.clone()),
            Self::Expired => Resolution::Expired,
            Self::Withdrawn => Resolution::Withdrawn,
        }
    }
}

/// What a later decision on the question is told.
impl From<Closing> for DecideError {
    fn from(closing: Closing) -> Self {
        match closing {
            Closing::Decided(Ruled { decision, by }) => Self::Decided { by, decision: Box::new(decision) },
            Closing::Expired => Self::Expired,
            Closing::Withdrawn => Self::Withdrawn,
        }
    }
}

/// How each was closed.
#[derive(Debug, Default)]
pub(crate) struct Closings(Mutex<HashMap<ApprovalId, DecideError>>);

impl Closings {
    /// A question is closed: the first end counts.
    pub(super) fn add(&self, id: &ApprovalId, how: DecideError) {
        self.lock().entry(id.clone()).or_insert(how);
    }

    /// Takes up what an earlier attempt recorded: who decided stands where the decision was made.
    pub(crate) fn take(&self, fact: &Fact) {
        const BEFORE: &str = "somebody, in an earlier attempt";
        let Fact::ApprovalResolved { id, answer, .. } = fact else { return };
        self.add(
            id,
            match answer {
                Resolution::Decided(decision) => {
                    DecideError::Decided { by: BEFORE.into(), decision: Box::new(decision.clone()) }
                }
                Resolution::Expired => DecideError::Expired,
                Resolution::Withdrawn => DecideError::Withdrawn,
            },
        );
    }

    /// What a decision on this question is told; none if it is not closed.
    pub(crate) fn of(&self, id: &ApprovalId) -> Option<DecideError> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ApprovalId, DecideError>> {
        self.0.lock()
    }
}
