//! Approvals as durable objects: opened by the holder, decided exactly once, by any process (S8.1, S8.2).

use jiff::Timestamp;

use crate::value::ids::{ApprovalId, CallId, RunId, SessionId};

use super::error::Error;

/// An approval that the holder asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApproval {
    /// Names the question, within the session.
    pub id: ApprovalId,
    /// The run of the call.
    pub run: RunId,
    /// The call that waits.
    pub call: CallId,
    /// Binds a decision to the arguments.
    pub digest: String,
    /// When it expires without an answer.
    pub expires: Timestamp,
    /// The question, opaque.
    pub bytes: Vec<u8>,
}

/// A decision to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDecision {
    /// The question.
    pub id: ApprovalId,
    /// The arguments that the answer is about.
    pub digest: String,
    /// Who decides.
    pub principal: String,
    /// The answer, opaque.
    pub bytes: Vec<u8>,
}

/// What came of a decision. Exhaustive: the caller must know whether it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionResult {
    /// It counts.
    Taken,
    /// An earlier decision was stored.
    AlreadyDecided {
        /// Who.
        principal: String,
        /// When.
        at: Timestamp,
        /// The earlier answer.
        bytes: Vec<u8>,
    },
    /// A stop withdrew the question.
    Withdrawn,
    /// The question has expired.
    Expired,
    /// The question is about other arguments.
    OtherArguments {
        /// The digest of the arguments that it is about.
        digest: String,
    },
    /// There is no such question.
    Unknown,
}

/// The state of an approval. Exhaustive: a list of approvals shows each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// The item waits.
    Open,
    /// It was decided.
    Decided {
        /// Who.
        principal: String,
        /// When.
        at: Timestamp,
        /// The answer.
        bytes: Vec<u8>,
        /// Whether the holder has acted on it.
        used: DecisionUse,
    },
    /// A stop withdrew it.
    Withdrawn,
    /// It expired without a decision.
    Expired,
}

/// Whether a decision was acted on. Exhaustive: yes or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionUse {
    /// Not yet.
    Waiting,
    /// It was.
    Used,
}

/// How the holder closes an approval. Exhaustive: the three ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalClose {
    /// Its decision was applied. Refused if there is none.
    Used,
    /// A stop withdraws it. If it is decided, the decision stands, and [`super::Appended::decided`] names it.
    Withdrawn,
    /// It expired. If it was decided first, the decision stands, and [`super::Appended::decided`] names it.
    Expired,
}

/// An approval as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// What was asked.
    pub asked: NewApproval,
    /// When.
    pub at: Timestamp,
    /// Its state.
    pub state: ApprovalState,
}

/// An approval, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionApproval {
    /// The session that asks.
    pub session: SessionId,
    /// The approval.
    pub row: ApprovalRow,
}

impl SessionApproval {
    /// The cursor for a list that continues after this one.
    #[must_use]
    pub fn after(&self) -> ApprovalCursor {
        let ApprovalRow { asked, at, .. } = &self.row;
        ApprovalCursor { at: *at, session: self.session.clone(), id: asked.id.clone() }
    }
}

/// Where the next page of a list of approvals begins: after this one. Approvals that were asked at the same time are ordered by these
/// names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovalCursor {
    /// When it was asked.
    pub at: Timestamp,
    /// The session that asks.
    pub session: SessionId,
    /// Its name within the session.
    pub id: ApprovalId,
}

impl ApprovalState {
    /// Whether something is to come of it: a decision, or its use.
    #[must_use]
    pub fn waits(&self) -> bool {
        match self {
            Self::Open | Self::Decided { used: DecisionUse::Waiting, .. } => true,
            Self::Decided { used: DecisionUse::Used, .. } | Self::Withdrawn | Self::Expired => false,
        }
    }
}

impl ApprovalRow {
    /// The result of a decision now; `Taken` if it is to be stored.
    #[must_use]
    pub fn judge(&self, decision: &NewDecision, now: Timestamp) -> DecisionResult {
        match &self.state {
            ApprovalState::Decided { principal, at, bytes, .. } => {
                DecisionResult::AlreadyDecided { principal: principal.clone(), at: *at, bytes: bytes.clone() }
            }
            ApprovalState::Withdrawn => DecisionResult::Withdrawn,
            ApprovalState::Expired => DecisionResult::Expired,
            ApprovalState::Open if self.asked.expires <= now => DecisionResult::Expired,
            ApprovalState::Open if self.asked.digest != decision.digest => {
                DecisionResult::OtherArguments { digest: self.asked.digest.clone() }
            }
            ApprovalState::Open => DecisionResult::Taken,
        }
    }
    /// Closes the approval.
    ///
    /// # Errors
    /// [`Error::NoApproval`] if a decision is to be applied and there is none.
    pub fn close(&mut self, closed: ApprovalClose) -> Result<CloseResult, Error> {
        match (&mut self.state, closed) {
            (ApprovalState::Decided { used, .. }, ApprovalClose::Used) => *used = DecisionUse::Used,
            (ApprovalState::Decided { .. }, ApprovalClose::Withdrawn | ApprovalClose::Expired) => {
                return Ok(CloseResult::TooLate);
            }
            (ApprovalState::Open, ApprovalClose::Withdrawn) => self.state = ApprovalState::Withdrawn,
            (ApprovalState::Open, ApprovalClose::Expired) => self.state = ApprovalState::Expired,
            (
                ApprovalState::Withdrawn | ApprovalState::Expired,
                ApprovalClose::Withdrawn | ApprovalClose::Expired,
            ) => {}
            (_, ApprovalClose::Used) => return Err(Error::NoApproval(self.asked.id.clone())),
        }
        Ok(CloseResult::Closed)
    }
}

/// What came of closing an approval. Exhaustive: it is closed, or its decision came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseResult {
    /// It is closed.
    Closed,
    /// It was decided before, and that stands.
    TooLate,
}
