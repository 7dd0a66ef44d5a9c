//! Stop intents: requested by any process, durable, and in force until the holder has applied them (S7.5).

use jiff::Timestamp;

use crate::value::ids::ApprovalId;

/// A stop intent to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopIntent {
    /// The request, opaque.
    pub bytes: Vec<u8>,
    /// What happens to open approvals.
    pub approvals: ApprovalsToWithdraw,
}

/// What a stop intent does to open approvals (S8.3). Exhaustive: it withdraws none, all, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalsToWithdraw {
    /// They stay open: the session's loop ends, the run stays suspended.
    Stay,
    /// They are withdrawn in the same transaction: a later answer is refused, whether an owner is alive or
    /// not.
    Withdrawn,
    /// Only these are withdrawn, if they are open.
    Only(Vec<ApprovalId>),
}

/// A stop intent as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRow {
    /// Its number within the session, counted from 1.
    pub number: u64,
    /// When it was requested.
    pub at: Timestamp,
    /// Whether a holder has applied it.
    pub seen: bool,
    /// The request, opaque.
    pub bytes: Vec<u8>,
}
