//! Approvals as durable objects: opened by the holder, decided by whoever, exactly once (S8.1, S8.2).

use jiff::Timestamp;

use crate::value::ids::{ApprovalId, CallId, RunId};

use super::error::Error;

/// An approval that the holder asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApproval {
    /// Names the question, within the session.
    pub id: ApprovalId,
    /// Whose call it is.
    pub run: RunId,
    /// The call that waits.
    pub call: CallId,
    /// Binds a decision to the arguments.
    pub digest: String,
    /// When it is over without an answer.
    pub expires: Timestamp,
    /// The question, opaque.
    pub bytes: Vec<u8>,
}

/// An answer on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The question.
    pub id: ApprovalId,
    /// The arguments that the answer is about.
    pub digest: String,
    /// Who decides.
    pub principal: String,
    /// The answer, opaque.
    pub bytes: Vec<u8>,
}

/// What came of a decision. Exhaustive: whoever decides must know whether it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It counts.
    Taken,
    /// Somebody was first.
    AlreadyDecided {
        /// Who.
        principal: String,
        /// When.
        at: Timestamp,
        /// What they said.
        bytes: Vec<u8>,
    },
    /// A stop took the question back.
    Withdrawn,
    /// Its time is over.
    Expired,
    /// It is about other arguments than these.
    OtherArguments {
        /// The digest of those it is about.
        digest: String,
    },
    /// There is no such question.
    Unknown,
}

/// Where an approval stands. Exhaustive: whoever lists them shows each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// It waits.
    Open,
    /// Somebody decided.
    Decided {
        /// Who.
        principal: String,
        /// When.
        at: Timestamp,
        /// What they said.
        bytes: Vec<u8>,
        /// Whether the holder has acted on it.
        used: Use,
    },
    /// A stop took it back.
    Withdrawn,
    /// Nobody decided in time.
    Expired,
}

/// Whether a decision was acted on. Exhaustive: yes or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Not yet.
    Waiting,
    /// It was.
    Used,
}

/// How the holder closes an approval. Exhaustive: the three ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Its decision is acted on. Refused if there is none.
    Used,
    /// A stop takes it back. If it is decided, the decision stands, and [`super::Appended::decided`] names it.
    Withdrawn,
    /// Nobody decided in time. If somebody did, the decision stands, and [`super::Appended::decided`] names it.
    Expired,
}

/// An approval as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// What was asked.
    pub asked: NewApproval,
    /// When.
    pub at: Timestamp,
    /// Where it stands.
    pub state: ApprovalState,
}

impl ApprovalRow {
    /// What comes of a decision now; `Taken` if it is to be stored.
    #[must_use]
    pub fn judge(&self, decision: &Decision, now: Timestamp) -> Decided {
        match &self.state {
            ApprovalState::Decided { principal, at, bytes, .. } => {
                Decided::AlreadyDecided { principal: principal.clone(), at: *at, bytes: bytes.clone() }
            }
            ApprovalState::Withdrawn => Decided::Withdrawn,
            ApprovalState::Expired => Decided::Expired,
            ApprovalState::Open if self.asked.expires <= now => Decided::Expired,
            ApprovalState::Open if self.asked.digest != decision.digest => {
                Decided::OtherArguments { digest: self.asked.digest.clone() }
            }
            ApprovalState::Open => Decided::Taken,
        }
    }
    /// Goes where the holder closes it to.
    ///
    /// # Errors
    /// [`Error::NoApproval`] if a decision is to be acted on and there is none.
    pub fn close(&mut self, closed: Closed) -> Result<Closing, Error> {
        match (&mut self.state, closed) {
            (ApprovalState::Decided { used, .. }, Closed::Used) => *used = Use::Used,
            (ApprovalState::Decided { .. }, Closed::Withdrawn | Closed::Expired) => {
                return Ok(Closing::TooLate);
            }
            (ApprovalState::Open, Closed::Withdrawn) => self.state = ApprovalState::Withdrawn,
            (ApprovalState::Open, Closed::Expired) => self.state = ApprovalState::Expired,
            (ApprovalState::Withdrawn | ApprovalState::Expired, Closed::Withdrawn | Closed::Expired) => {}
            (_, Closed::Used) => return Err(Error::NoApproval(self.asked.id.clone())),
        }
        Ok(Closing::Closed)
    }
}

/// What came of closing an approval. Exhaustive: it is closed, or its decision came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is closed.
    Closed,
    /// It was decided before, and that stands.
    TooLate,
}
