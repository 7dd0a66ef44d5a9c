//! One request as a node's log has it, and what became of it.

use tokio::time::Instant;

use crate::{
    reason::Reason,
    request::{Onset, demand::Demand},
};

/// What became of a request. Exhaustive: S1.9 names these four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAck {
    /// It was the first.
    First,
    /// It made the demand stronger.
    Strengthened,
    /// All of it had been asked before.
    Unchanged,
    /// The end had come first.
    TooLate,
}

/// One entry of a node's log of requests.
#[derive(Clone, Debug)]
pub struct LoggedRequest {
    /// Its place, from 0.
    pub seq: u64,
    /// When it was made.
    pub at: Instant,
    /// Why.
    pub reason: Reason,
    /// What it added.
    pub asked: StopAck,
    /// This request alone.
    pub demand: Demand,
    /// All requests up to it.
    pub joined: Demand,
    /// Whether an actor asked, or a grace that was counted elsewhere was over.
    pub onset: Onset,
}
