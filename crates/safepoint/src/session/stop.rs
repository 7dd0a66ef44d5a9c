//! How a session is asked to stop (S6.7, S6.8).

use std::time::Duration;

use safepoint_scope::{Grace, Reach, Reason, StopRequest};
use serde::{Deserialize, Serialize};

use super::machine::Strength;

/// A stop of a session. Stops can be requested many times: a later one may strengthen the demand and never
/// weakens it.
#[derive(Clone, Debug)]
#[must_use = "hand it to `SessionHandle::stop`"]
pub struct SessionStop {
    pub(super) how: How,
    pub(super) request: StopRequest,
    pub(super) cause: Option<String>,
    pub(super) after: StoppedTurn,
}

/// Exhaustive: by strength, or once it was idle for long enough. Both at once cannot be written (S6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Strength(Strength),
    WhenIdle(Duration),
}

/// Whether the turn that is stopped may be resumed later. Exhaustive: it may, or it will not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedTurn {
    /// It may.
    #[default]
    Resumable,
    /// It will not: records and items stay, the turn is given up.
    Abandoned,
}

impl SessionStop {
    fn new(how: How, request: StopRequest) -> Self {
        Self { how, request, cause: None, after: StoppedTurn::Resumable }
    }

    /// After the running turn has ended.
    pub fn at_turn_end() -> Self {
        Self::new(How::Strength(Strength::AtTurnEnd), StopRequest::graceful_unbounded())
    }

    /// At the next safe point of the running turn and of everything that it has begun.
    pub fn graceful() -> Self {
        Self::new(How::Strength(Strength::Graceful), StopRequest::graceful_unbounded())
    }

    /// At the next safe point, or after `grace` now.
    pub fn graceful_within(grace: Grace) -> Self {
        Self::new(How::Strength(Strength::Graceful), StopRequest::graceful(grace))
    }

    /// Everything, now.
    pub fn now() -> Self {
        Self::new(How::Strength(Strength::Now), StopRequest::now().with_reach(Reach::Tree))
    }

    /// Once the session was idle for `idle`: no turn, nothing queued, nothing suspended, and no background
    /// run alive, whether it runs or waits for a person. A running turn is not touched (S6.8).
    pub fn when_idle_for(idle: Duration) -> Self {
        Self::new(How::WhenIdle(idle), StopRequest::graceful_unbounded())
    }

    /// Bounds all clean-ups of the running turn.
    pub fn cleanup_cap(mut self, cap: Duration) -> Self {
        self.request = self.request.with_cleanup_cap(cap);
        self
    }

    /// Sets who requests the stop and why, as the turn's receipt reports it.
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.request = self.request.with_reason(reason);
        self
    }

    /// Who requested the stop and why, as far as given.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        self.request.reason()
    }

    /// Sets the cause, for people; the first cause given stays.
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into()).filter(|cause| !cause.trim().is_empty());
        self
    }

    /// Declares that the running turn will not be resumed. A later request does not change that.
    pub fn abandon(mut self) -> Self {
        self.after = StoppedTurn::Abandoned;
        self
    }

    pub(super) fn is_when_idle(&self) -> bool {
        matches!(self.how, How::WhenIdle(_))
    }
}
