//! Stop intents: asked by whoever, durable, and holding until the holder has seen to them (S7.5).

use jiff::Timestamp;

use crate::value::ids::ApprovalId;

/// A wish for a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopIntent {
    /// The request, opaque.
    pub bytes: Vec<u8>,
    /// What becomes of approvals that wait.
    pub approvals: ApprovalsToWithdraw,
}

/// What a stop intent does to approvals that wait (S8.3). Exhaustive: it reaches none of them, all, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalsToWithdraw {
    /// They stay open: the session's loop ends, the run stays suspended.
    Stay,
    /// They are withdrawn in the same transaction: a later answer is refused, whether an owner lives or not.
    Withdrawn,
    /// The same of these alone, as far as they are open.
    Only(Vec<ApprovalId>),
}

/// A stop intent as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRow {
    /// Its number within the session, counted from 1.
    pub number: u64,
    /// When it was asked.
    pub at: Timestamp,
    /// Whether a holder has seen to it.
    pub seen: bool,
    /// The request, opaque.
    pub bytes: Vec<u8>,
}
