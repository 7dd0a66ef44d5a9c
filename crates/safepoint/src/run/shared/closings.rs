//! Closed questions of all runs of a session, or of a tree without one: the result of a later decision.

use std::collections::HashMap;

use crate::{
    definition::toolset,
    sync::Mutex,
    value::{
        approval::{Decision, Ruled},
        event::{Fact, Resolution},
        ids::ApprovalId,
    },
};

/// Why a decision was not accepted (S8.2).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// This run, or session, has no question with this id.
    #[error("no approval has this id")]
    Unknown,
    /// An earlier decision was accepted.
    #[error("it was decided before, by {by}")]
    Decided {
        /// Who made it, as far as known.
        by: String,
        /// The decision.
        decision: Box<Decision>,
    },
    /// The question expired.
    #[error("the question has expired")]
    Expired,
    /// A stop, or the end of the call that asked, withdrew the question.
    #[error("the approval was withdrawn")]
    Withdrawn,
    /// The store did not accept the decision, and why.
    #[error("the decision could not be recorded: {0}")]
    NotRecorded(String),
    /// The run has ended.
    #[error("the run has ended")]
    RunEnded,
    /// The changed arguments do not fit the tool, and why. Nothing was recorded, and the question is open: decide again
    /// (S8.14).
    #[error("the changed arguments do not fit, and the question is still open: {0}")]
    Unfit(String),
}

impl DecideError {
    /// From the text that a model would get about such arguments.
    pub(crate) fn unfit(why: String) -> Self {
        let why = why.strip_prefix("error: ").unwrap_or(&why);
        Self::Unfit(why.strip_suffix(toolset::AGAIN).unwrap_or(why).to_owned())
    }
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

/// The result of a later decision on the question.
impl From<Closing> for DecideError {
    fn from(closing: Closing) -> Self {
        match closing {
            Closing::Decided(Ruled { decision, by, .. }) => {
                Self::Decided { by, decision: Box::new(decision) }
            }
            Closing::Expired => Self::Expired,
            Closing::Withdrawn => Self::Withdrawn,
        }
    }
}

/// How each question was closed.
/// The lock is held for one entry or one look-up; no other lock is taken under it. The first entry stays, so
/// two closes at a time give one result.
#[derive(Debug, Default)]
pub(crate) struct Closings(Mutex<HashMap<ApprovalId, DecideError>>);

impl Closings {
    /// Closes a question: the first close counts.
    pub(super) fn add(&self, id: &ApprovalId, how: DecideError) {
        self.0.lock().entry(id.clone()).or_insert(how);
    }

    /// Applies the records of an earlier attempt; who decided is recorded with the decision.
    pub(crate) fn take(&self, fact: &Fact) {
        const BEFORE: &str = "an earlier attempt";
        let Fact::ApprovalResolved { id, answer, .. } = fact else { return };
        let closing = match answer {
            Resolution::Decided(decision) => Closing::Decided(decision.clone().by(BEFORE)),
            Resolution::Expired => Closing::Expired,
            Resolution::Withdrawn => Closing::Withdrawn,
        };
        self.add(id, closing.into());
    }

    /// The result of a decision on this question; `None` if it is not closed.
    pub(crate) fn of(&self, id: &ApprovalId) -> Option<DecideError> {
        self.0.lock().get(id).cloned()
    }
}
